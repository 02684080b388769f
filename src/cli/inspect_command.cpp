#include "cli/command_options.h"
#include "cli/inspect_parts.h"
#include "core/check.h"
#include "core/console.h"
#include "core/error.h"
#include "core/quantity.h"
#include "core/terminal_text.h"
#include "formats/hub_cache.h"
#include "models/checkpoint/compute_dtype.h"
#include "recommend/recommender_files.h"
#include "runfile/run_kind.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

namespace gainlens::cli {
namespace {

constexpr const char* checkpoint_options[] = {"--ignore-config-key", "--length", "--dtype"};

struct InspectArguments {
  std::string path;
  MemoryQuestion memory{"", "float32", {}};
  InteractionPolicy interactions;
};

/// What is inspected, and how.
struct Inspected {
  std::string_view words;                 ///< "a data set"
  std::vector<std::string_view> options;  ///< those that it takes, of what not everything takes
  std::function<void(Findings& findings)> inspect;
};

/// The options that not everything takes.
std::vector<OptionFor> inspect_options() {
  std::vector<OptionFor> options;
  for (const char* name : checkpoint_options) options.push_back({name, "the checkpoint of a decoder"});
  for (const char* name : interaction_policy_options) options.push_back({name, "data sets"});
  return options;
}

RunInspection inspection_of(runfile::RunKind kind) {
#define GAINLENS_INSPECTION(kind) kind##_inspection,
  static const RunInspection all[] = {GAINLENS_RUN_KINDS(GAINLENS_INSPECTION)};
#undef GAINLENS_INSPECTION
  return all[static_cast<std::size_t>(kind)];
}

Inspected what_is_at(const InspectArguments& arguments, const InspectComputations& computations) {
  const std::filesystem::path path = arguments.path;
  const auto found = runfile::identify(path);
  if (const RunInspection run = found ? inspection_of(found->kind) : nullptr)
    return {"a run", {}, [=](Findings& findings) { run(path, findings); }};
  if (looks_like_data_set(path)) {
    return {
        "a data set",
        {std::begin(interaction_policy_options), std::end(interaction_policy_options)},
        [=, options = arguments.interactions.options()](Findings& findings) { inspect_data(path, options, findings); }};
  }
  if (recommend::is_recommender(path))
    return {"a recommender", {}, [&, path](Findings& findings) { computations.inspect_recommender(path, findings); }};
  return {"a checkpoint",
          {std::begin(checkpoint_options), std::end(checkpoint_options)},
          [&, path](Findings& findings) { inspect_checkpoint(path, arguments.memory, computations, findings); }};
}

void inspect(const InspectArguments& arguments, const CLI::App& command, const InspectComputations& computations,
             bool json) {
  // Checked first: a misspelt option does not make the checkpoint or the data unusable.
  models::parse_compute_dtype(arguments.memory.dtype, "--dtype");
  if (!arguments.memory.length.empty()) parse_count(arguments.memory.length, "--length");
  arguments.interactions.options();
  CHECK(std::filesystem::exists(arguments.path), "{}: no such file or folder", printable(arguments.path));
  Findings findings;
  /// What is refused here is said on stdout too.
  const auto judged = [&](const auto& step) {
    try {
      step();
    } catch (const InvalidArgument& error) {
      findings.conclude(error.what());
      findings.print(json);
      throw;
    }
  };
  Inspected inspected;
  judged([&] { inspected = what_is_at(arguments, computations); });
  refuse_options(command, inspect_options(), inspected.options, fmt::format("; this is {}", inspected.words));
  judged([&] { inspected.inspect(findings); });
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
  set_action(*command, action, [arguments, command, computations, &global] {
    arguments->path = formats::locate_checkpoint(arguments->path);
    inspect(*arguments, *command, computations, global.json);
  });
}

void Findings::add(const std::string& name, const std::string& text, const Json& value) {
  add_line(name, text);
  std::string key = name;
  std::replace(key.begin(), key.end(), ' ', '_');
  add_json(key, value);
}

void Findings::conclude(const std::string& reason) {
  add_line("usable", !reason.empty() ? "no: " + reason : how_.empty() ? "yes" : "yes " + how_);
  add_json("usable", reason.empty());
  if (!reason.empty()) add_json("reason", reason);
}

void Findings::print(bool json) const {
  if (json) {
    print_result("{}\n", json_text(json_, 2));
    return;
  }
  for (const auto& [name, text] : lines_) print_result("{:<18} {}\n", name, terminal_line(text));
}

}  // namespace gainlens::cli
