#include "cli/findings.h"
#include "cli/ignored_keys.h"
#include "cli/inspect_parts.h"
#include "cli/interaction_options.h"
#include "core/check.h"
#include "core/quantity.h"
#include "formats/hub_cache.h"
#include "models/checkpoint/compute_dtype.h"
#include "recommend/recommender_files.h"
#include "runfile/attention_run.h"
#include "runfile/experiment_run.h"
#include "runfile/gate_arms_run.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_kind.h"

#include <filesystem>
#include <memory>

namespace gainlens::cli {
namespace {

struct InspectArguments {
  std::string path;
  MemoryQuestion memory{"", "float32", {}};
  InteractionPolicy interactions;
};

bool looks_like_run(const std::filesystem::path& path) {
  return path.extension() == ".h5" || std::filesystem::exists(path / "run.h5") ||
         std::filesystem::exists(path / "request.json");
}

void inspect(const InspectArguments& arguments, const InspectComputations& computations, bool json) {
  // Checked first: a misspelt option does not make the checkpoint or the data unusable.
  models::parse_compute_dtype(arguments.memory.dtype, "--dtype");
  if (!arguments.memory.length.empty()) parse_count(arguments.memory.length, "--length");
  const data::InteractionOptions interactions = arguments.interactions.options();
  CHECK(std::filesystem::exists(arguments.path), "{}: no such file or folder", printable(arguments.path));
  const auto refuse_keys = [&](std::string_view what) {
    refuse_ignored_keys(arguments.memory.ignored_config_keys, what);
  };
  Findings findings;
  try {
    if (runfile::is_run_of(arguments.path, {runfile::RunKind::recommenders})) {
      refuse_keys("a run");
      inspect_recommend_run(arguments.path, findings);
    } else if (runfile::is_run_of(arguments.path, {runfile::RunKind::experiment})) {
      refuse_keys("a run");
      inspect_experiment_run(arguments.path, findings);
    } else if (runfile::is_run_of(arguments.path, {runfile::RunKind::recommender_sweep})) {
      refuse_keys("a run");
      inspect_attention_run(arguments.path, findings);
    } else if (runfile::is_run_of(arguments.path, {runfile::RunKind::interventions})) {
      refuse_keys("a run");
      inspect_intervention_run(arguments.path, findings);
    } else if (runfile::is_run_of(arguments.path, {runfile::RunKind::gate_arms})) {
      refuse_keys("a run");
      inspect_gate_arms_run(arguments.path, findings);
    } else if (runfile::is_run_of(arguments.path, {runfile::RunKind::patching})) {
      refuse_keys("a run");
      inspect_patching_run(arguments.path, findings);
    } else if (looks_like_run(arguments.path)) {
      refuse_keys("a run");
      inspect_run(arguments.path, findings);
    } else if (looks_like_data_set(arguments.path)) {
      refuse_keys("a data set");
      inspect_data(arguments.path, interactions, findings);
    } else if (recommend::is_recommender(arguments.path)) {
      refuse_keys("a recommender");
      computations.inspect_recommender(arguments.path, findings);
    } else {
      inspect_checkpoint(arguments.path, arguments.memory, computations, findings);
    }
  } catch (const InvalidArgument& error) {
    findings.conclude(error.what());
    findings.print(json);
    throw;
  }
  findings.conclude("");
  findings.print(json);
}

}  // namespace

void add_inspect_with(CLI::App& app, const GlobalOptions& global, Action& action,
                      const InspectComputations& computations) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("inspect"), "gainlens inspect MODEL --length 8k",
      "Of a checkpoint it reads headers and configuration, but no weights: time and memory do not grow with the\n"
      "files. Sizes are sizes on disk. 'weights' shows the bytes of each type and, in brackets, its number of\n"
      "tensors. 'filled in' shows settings that a GGUF file leaves out and that gainlens adds from its knowledge of\n"
      "the family. --json lists the attention of every layer. 'memory' is an estimate. 'time' is added with\n"
      "--length: the speed of this machine is measured, which takes half a second.\n"
      "Of a run it compares every shard and run.h5 with their checksums; 'checksums' says what was compared.\n"
      "A data set holds interactions of users with items: CSV or TSV with a header, Parquet, JSON lines, RecBole's\n"
      ".inter, lines `user item item ...` or MovieLens ratings, plain or gzipped. Of each user the last item is for\n"
      "the test, the one before it for validation. Users with fewer than 3 interactions are dropped. 'split\n"
      "checksum' shows whether two programs use the same split. The quintiles group the tests by how often their\n"
      "item occurs in training, and by how many training items their user has. 'target count' is how often the\n"
      "test item of a user occurs in training.");
  auto arguments = std::make_shared<InspectArguments>();
  command
      ->add_option("path", arguments->path, "Checkpoint (folder or GGUF file), run folder, run.h5 or data set (file)")
      ->required();
  command->add_option(
      "--length", arguments->memory.length,
      "Context length in tokens for the estimates of memory and time; 1k is 1024 (default: the model's number of "
      "positions, and no time)");
  command
      ->add_option("--dtype", arguments->memory.dtype,
                   "Compute dtype for the estimates of memory and time: float64, float32, bfloat16 or float16 (or "
                   "fp64, fp32, bf16, fp16)")
      ->capture_default_str();
  add_ignored_keys(*command, arguments->memory.ignored_config_keys);
  add_interaction_policy(*command, arguments->interactions, "Of a data set: ");
  command->callback([arguments, computations, &global, &action] {
    action = [arguments, computations, &global] {
      arguments->path = formats::locate_checkpoint(arguments->path);
      inspect(*arguments, computations, global.json);
    };
  });
}

}  // namespace gainlens::cli
