#include "cli/application.h"

#include "analyses/depth.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/inspect_parts.h"
#include "cli/interruption.h"
#include "cli/model_options.h"
#include "cli/sweep_recommenders.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/quantity.h"
#include "depth/carried_variance.h"
#include "depth/run_depth.h"
#include "experiment/proven_run.h"
#include "formats/hub_cache.h"
#include "kernels/compute_device.h"
#include "kernels/linear/product_kernel.h"
#include "models/checkpoint/read_config.h"
#include "models/checkpoint/torch_dtype.h"
#include "reports/sweep/depth_section.h"
#include "runfile/process_group.h"
#include "sweep/moments.h"
#include "sweep/run_sweep.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

namespace gainlens::cli {
namespace {

struct SweepArguments {
  sweep::SweepOptions options;  ///< those that are given as they are
  std::string model;
  TextOptions text;
  std::string out;
  std::optional<std::string> lengths;  ///< absent: chosen for the model
  std::string dtype = "float32";
  std::string statistics = "all";
  std::string kernel = "auto";
  std::string estimator = "reml";
  std::optional<double> score_noise;
  bool no_nll = false;
  bool depth_precision = false;
  std::string layers;
};

/// Parses "A:B" as the half-open range [A, B).
std::pair<std::int64_t, std::int64_t> parse_layers(const std::string& text) {
  std::pair<std::int64_t, std::int64_t> range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  const bool colon = first.ec == std::errc() && first.ptr != end && *first.ptr == ':';
  const auto second = colon ? std::from_chars(first.ptr + 1, end, range.second) : first;
  CHECK(colon && second.ec == std::errc() && second.ptr == end, "--layers: '{}'; write A:B for the layers A to B - 1",
        printable(text, 40));
  return range;
}

/// The kernel that has this name on the command line.
kernels::AttentionBackend parse_kernel(const std::string& name) {
  static const std::map<std::string, kernels::AttentionBackend> kernels{
      {"auto", kernels::AttentionBackend::automatic},
      {"streaming", kernels::AttentionBackend::streaming},
      {"composed", kernels::AttentionBackend::composed},
      {"fused-cuda", kernels::AttentionBackend::fused_cuda}};
  const auto found = kernels.find(name);
  CHECK(found != kernels.end(), "--kernel: '{}'; must be auto, streaming, composed or fused-cuda", printable(name, 40));
  return found->second;
}

/// The estimator of the options, with what it needs.
ChosenEstimator estimator_of(const SweepArguments& arguments) {
  ChosenEstimator chosen{parse_estimator(arguments.estimator, "--estimator")};
  CHECK(chosen.name != Estimator::delta,
        "--estimator: delta needs the noise of every token and the projections, which a frozen model does not give; "
        "take delta_weight_free with --score-noise");
  const bool takes_noise = chosen.name == Estimator::delta_weight_free;
  CHECK(takes_noise == arguments.score_noise.has_value(), "--score-noise: {}",
        takes_noise
            ? "missing; delta_weight_free needs the standard deviation of a score, and a model does not show it"
            : fmt::format("belongs to --estimator delta_weight_free; the estimator is {}", arguments.estimator));
  chosen.score_noise = arguments.score_noise.value_or(0);
  CHECK(chosen.score_noise >= 0 && chosen.score_noise <= 1e6, "--score-noise: {}; must be between 0 and 1e6",
        chosen.score_noise);
  CHECK(chosen.name == Estimator::reml || arguments.kernel == "auto" || arguments.kernel == "composed",
        "--kernel: '{}' computes reml alone; with --estimator {} take auto or composed",
        printable(arguments.kernel, 40), arguments.estimator);
  return chosen;
}

sweep::SweepOptions options_of(const SweepArguments& arguments, const GlobalOptions& global) {
  sweep::SweepOptions options = arguments.options;
  options.model = formats::locate_checkpoint(arguments.model);
  options.source = arguments.text.source();
  check_can_be_run_folder(arguments.out);
  options.out = arguments.out;
  if (arguments.lengths) options.lengths = parse_counts(*arguments.lengths, "--lengths", sweep::min_length);
  options.dtype = models::parse_dtype(arguments.dtype, "--dtype");
  options.device = kernels::compute_device(global.device);
  CHECK(arguments.statistics == "all" || arguments.statistics == "none", "--statistics: '{}'; must be all or none",
        printable(arguments.statistics, 40));
  options.statistics = arguments.statistics == "all";
  CHECK(options.statistics || !options.per_query, "--per-query: needs --statistics all");
  options.kernel = parse_kernel(arguments.kernel);
  CHECK(options.kernel != kernels::AttentionBackend::fused_cuda || options.device.is_cuda(),
        "--kernel: 'fused-cuda' computes on a GPU; give --device cuda:0, or take auto");
  options.estimator = estimator_of(arguments);
  CHECK(options.statistics || arguments.estimator == "reml", "--estimator: needs --statistics all");
  CHECK(options.statistics || arguments.kernel == "auto", "--kernel: needs --statistics all");
  options.nll = !arguments.no_nll;
  if (!arguments.layers.empty()) options.layers = parse_layers(arguments.layers);
  experiment::prove_checkpoint_files(options.model);
  options.group = runfile::read_process_group();
  options.quiet = global.quiet;
  options.log = {{"command", "sweep"},
                 {"model", arguments.model},
                 {"text", arguments.text.text},
                 {"tokens", arguments.text.tokens},
                 {"processes", options.group.size},
                 {"processor", kernels::describe_processor()},
                 {"gainlens", GAINLENS_VERSION}};
  if (options.stop_at_layer) options.log["stop_at_layer"] = *options.stop_at_layer;
  return options;
}

void warn(const sweep::SweepOutcome& outcome) {
  if (outcome.queries_without_keys > 0)
    print_notice("gainlens: warning: {} queries saw no key; their statistics are NaN, and means leave them out\n",
                 outcome.queries_without_keys);
  if (outcome.queries_undefined > 0)
    print_notice(
        "gainlens: note: {} queries have no lambda_obs, such as those that see one key: V is not defined, or too small "
        "to be given; means leave them out\n",
        outcome.queries_undefined);
}

/// Refuses what stands in the way of --depth-precision before any work is done.
void check_depth(const SweepArguments& arguments, const sweep::SweepOptions& options) {
  CHECK(options.group.size == 1,
        "--depth-precision: {} processes share this run; give it to a process alone, after them", options.group.size);
  CHECK(options.device.is_cpu(), "--device: --depth-precision computes on the CPU; use --device cpu");
  CHECK(
      arguments.layers.empty(),
      "--layers: a precision is carried from layer 0 on; with --depth-precision leave it out, or take --stop-at-layer");
  const auto config = models::read_decoder_config(options.model, options.ignored_config_keys);
  depth::check_carries(config, std::min(options.stop_at_layer.value_or(config.layers), config.layers),
                       "--depth-precision");
}

/// Measures what --depth-precision asks for on the chunks of the sweep.
runfile::DepthRun depth_of(const sweep::SweepOptions& options, const sweep::SweptText& swept) {
  return depth::run_depth({.checkpoint = swept.checkpoint,
                           .ignored_config_keys = options.ignored_config_keys,
                           .dtype = options.dtype,
                           .stream_weights = options.stream_weights,
                           .allow_extrapolation = options.allow_extrapolation,
                           .layers = swept.layers,
                           .chunks = swept.chunks,
                           .folder = options.out,
                           .quiet = options.quiet});
}

void print(const sweep::SweepOutcome& outcome, const std::optional<runfile::DepthRun>& depth, bool json) {
  if (json) {
    Json result = {{"run", outcome.run.string()},
                   {"chunks", outcome.shards},
                   {"computed", outcome.computed},
                   {"run_file_written", outcome.run_file_written},
                   {"queries_without_keys", outcome.queries_without_keys},
                   {"queries_undefined", outcome.queries_undefined},
                   {"bos_policy", outcome.bos_policy}};
    if (depth) {
      result["depth"] = (outcome.run.parent_path() / runfile::depth_file).string();
      result["depth_precision"] = analyses::to_json(analyses::depth_by_length(*depth));
    }
    print_result("{}\n", json_text(result));
  } else if (outcome.computed == 0 && outcome.run_file_written) {
    print_result("{}: written from its shards; no chunk was missing ({} chunks)\n", outcome.run.string(),
                 outcome.shards);
  } else if (outcome.computed == 0) {
    print_result("{}: complete, nothing to do ({} chunks)\n", outcome.run.string(), outcome.shards);
  } else {
    print_result("{}: {} of {} chunks computed; {}\n", outcome.run.string(), outcome.computed, outcome.shards,
                 outcome.bos_policy);
  }
  if (depth && !json) print_result("{}", reports::print_depth(*depth));
}

void say_what_cannot_be_tested(const sweep::SweepOptions& options) {
  const auto config = models::read_decoder_config(options.model, options.ignored_config_keys);
  if (const std::string doubt = sink_test_doubt(config); !doubt.empty()) print_notice("gainlens: note: {}\n", doubt);
}

/// If several processes share the run, only rank 0 prints the result. Each process prints its own warning.
void sweep_and_print(const SweepArguments& arguments, const GlobalOptions& global) {
  sweep::SweepOptions options = options_of(arguments, global);
  std::optional<runfile::DepthRun> depth;
  if (arguments.depth_precision) {
    check_depth(arguments, options);
    options.then = [&](const sweep::SweptText& swept) { depth = depth_of(options, swept); };
  }
  const ScopedInterruption told(arguments.out, "every finished chunk", options.group.rank == 0);
  if (options.group.rank == 0 && options.statistics && !global.quiet) say_what_cannot_be_tested(options);
  const sweep::SweepOutcome outcome = sweep::run_sweep(options);
  if (!global.json) warn(outcome);
  if (options.group.rank == 0) print(outcome, depth, global.json);
}

/// The options that both kinds of sweep have are those of the language models.
void sweep(const CLI::App& command, const SweepArguments& arguments, RecommenderSweepArguments& recommenders,
           const GlobalOptions& global) {
  recommenders.model = arguments.model;
  recommenders.out = arguments.out;
  if (is_recommender_sweep(arguments.model)) {
    CHECK(global.device == "cpu", "--device: recommenders are run on the CPU; use --device cpu");
    return sweep_recommenders(command, recommenders, global);
  }
  refuse_recommender_sweep_options(command, recommenders);
  CHECK(command.get_parent()->count("--seed") == 0,
        "--seed: a sweep of a language model draws nothing at random; leave it out");
  sweep_and_print(arguments, global);
}

}  // namespace

void add_sweep(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("sweep"), "gainlens sweep MODEL --text wiki.txt --lengths 1k,2k,4k --samples 5 --out RUN",
      "Chunk c of length T holds the tokens [cT, (c+1)T) of the text. If there is a BOS, it takes position 0 of every\n"
      "chunk, and the stride is T - 1. --spread and --nested place the chunks differently.\n"
      "Averages: n_eff, entropy, S, lambda_obs, K and gate over the last quarter of the queries; BOS mass over the\n"
      "second half.\n"
      "Writes RUN/run.h5 (HDF5, opens in xarray), one shard per chunk under RUN/shards, RUN/request.json and\n"
      "RUN/log.json.\n"
      "Memory grows with T, not with T x T. A sweep may be killed at any moment. The same command called again\n"
      "continues it and gives the same bytes.\n"
      "MODEL can be a run of gainlens train recommend too, or one of its trainings (RUN/plain/seed-0). Then --data\n"
      "takes the place of --text: for each user of the test, the attention of every head at the position that ranks.\n"
      "docs/analyses/user-attention.md says what is measured.\n"
      "torchrun or srun can start several processes (RANK and WORLD_SIZE, or SLURM_PROCID and SLURM_NTASKS). They\n"
      "share the chunks through the run folder. The run is byte for byte the run of one process with as many threads\n"
      "as each of them has.");
  auto arguments = std::make_shared<SweepArguments>();
  add_model_option(*command, arguments->model, "; or the folder of a recommender run");
  add_text_options(*command, arguments->text);
  command
      ->add_option("--out", arguments->out,
                   "Run folder. The same request resumes the run in it. More lengths or samples extend it (with "
                   "--spread only more lengths)")
      ->required();
  command->add_option("--lengths", arguments->lengths,
                      "Context lengths in tokens, comma-separated; 1k is 1024 (default: 1k,2k,4k,6k,8k,10k as far as "
                      "the model has positions and the text has tokens for all samples; if fewer than three fit, a "
                      "quarter, half and all of the longest that fits)");
  command->add_option("--samples", arguments->options.samples, "Number of chunks per length")->capture_default_str();
  command->add_flag("--nested", arguments->options.nested,
                    "Cut the shorter chunks from the start of the longest, to compare lengths on the same text");
  command->add_flag("--spread", arguments->options.spread,
                    "Divide the text into equal parts, one for each chunk of a length, and place each chunk in the "
                    "middle of its part, instead of one after the other from the start of the text. With --nested this "
                    "places the longest chunks. More samples move every chunk, so they need another folder");
  add_dtype_option(*command, arguments->dtype);
  command
      ->add_option("--statistics", arguments->statistics,
                   "all, or none: run the model alone, with fused attention, for timing")
      ->capture_default_str();
  command
      ->add_option(
          "--kernel", arguments->kernel,
          "What computes the statistics: auto (the fastest on the device), streaming (vector code for the CPU), "
          "composed (library calls, any device), fused-cuda (one kernel for GPUs, products in bfloat16; only in builds "
          "with "
          "CUDA)")
      ->capture_default_str();
  command
      ->add_option("--estimator", arguments->estimator,
                   "What lambda_obs and K are estimated by: reml (the paper's), reml_naive, reml_conjugate, sandwich, "
                   "kish or delta_weight_free. All but reml take the composed kernel, which is slower. The "
                   "command `gainlens estimators` compares them with the truth")
      ->capture_default_str();
  command->add_option("--score-noise", arguments->score_noise,
                      "Standard deviation of the noise of a score, for --estimator delta_weight_free");
  command->add_flag("--no-nll", arguments->no_nll, "Do not compute the output head and the negative log likelihood");
  command->add_flag("--per-query", arguments->options.per_query,
                    "Store the numbers of every query, not only their means");
  command->add_option("--layers", arguments->layers,
                      "Layers to measure, as A:B for the layers A to B - 1 (default: all layers that run)");
  command->add_option("--stop-at-layer", arguments->options.stop_at_layer,
                      "Run only the layers 0 to N - 1 (default: all). Without the last layer there is no likelihood");
  command->add_flag("--stream-weights", arguments->options.stream_weights,
                    "For models larger than memory: read each layer from the files when it runs, once for a group of "
                    "chunks with up to 128k tokens. The numbers are the same. An interruption loses the current group");
  command->add_flag("--depth-precision", arguments->depth_precision,
                    "Then carry the precision of the residual stream from layer to layer on the same chunks, print it "
                    "and write RUN/depth.json (docs/analyses/depth.md)");
  command->add_flag("--allow-extrapolation", arguments->options.allow_extrapolation,
                    "Allow lengths above the model's number of positions");
  add_ignored_keys(*command, arguments->options.ignored_config_keys);
  auto recommenders = std::make_shared<RecommenderSweepArguments>();
  add_recommender_sweep_options(*command, *recommenders);
  set_action(*command, action,
             [command, arguments, recommenders, &global] { sweep(*command, *arguments, *recommenders, global); });
}

}  // namespace gainlens::cli
