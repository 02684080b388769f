#include "cli/application.h"

#include "analyses/sink_keys.h"
#include "analyses/sink_vs_k.h"
#include "cli/given_run.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/quantity.h"
#include "reports/terminal/sinks_terminal.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct SinksArguments {
  std::string run, at, csv;
  double threshold = analyses::column_mean_threshold;
};

void list_sinks(const SinksArguments& arguments, bool json) {
  if (!arguments.csv.empty()) check_is_new_file("--csv", arguments.csv, csv_file);
  CHECK(arguments.threshold >= runfile::min_stored_mean && arguments.threshold <= 1,
        "--threshold: {}; must be from {} to 1, because runs store no keys with smaller column means",
        arguments.threshold, runfile::min_stored_mean);
  const GivenRun run = open_given_run(arguments.run);
  std::vector<std::int64_t> at;
  if (!arguments.at.empty()) at = parse_counts(arguments.at, "--at");
  const analyses::SinkKeys sinks = analyses::sink_keys(run.reader, arguments.threshold, at);
  if (!arguments.csv.empty()) write_file_atomically(arguments.csv, reports::to_csv(reports::sinks_csv(sinks)));
  if (json) {
    if (sinks.first_keys_only) {
      print_notice("gainlens: note: the run is of statistics version {}: its sinks are those of keys 0 to 7\n",
                   run.reader.request().version);
    }
    print_result("{}\n", json_text(analyses::to_json(sinks), 2));
  } else {
    print_result("{}", reports::print_sinks(sinks, run.reader, !at.empty()));
  }
}

struct SinkVsKArguments {
  std::string run, at;
  analyses::Options options;
};

void correlate(SinkVsKArguments arguments, std::uint64_t seed, bool json) {
  const GivenRun run = open_given_run(arguments.run);
  if (!arguments.at.empty()) arguments.options.at = parse_counts(arguments.at, "--at");
  arguments.options.resampling.seed = seed;
  const analyses::SinkVsK result = analyses::sink_vs_k(run.reader, arguments.options);
  print_result("{}", json ? json_text(analyses::to_json(result), 2) + "\n" : reports::print_sink_vs_k(result));
}

}  // namespace

void add_sinks(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("sinks"), "gainlens sinks RUN",
      "A key is a sink of a head if its column mean, the mean weight over the queries that see it, is at least the\n"
      "threshold, and enough queries see it: 16, and an eighth of the context or the window. A line names the layer,\n"
      "the token, the positions, the share of attention that each head gives it, |v| by the median of the values, and\n"
      "the largest entry of the hidden state by its median over positions. A run made before sweeps stored these keys\n"
      "shows the sinks at keys 0 to 7.");
  auto arguments = std::make_shared<SinksArguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option("--threshold", arguments->threshold, "Smallest column mean of a sink, from 0.1 to 1")
      ->capture_default_str();
  command->add_option("--at", arguments->at,
                      "Context lengths in tokens, comma-separated; 1k is 1024 (default: all; as text the longest "
                      "and 64)");
  command->add_option("--csv", arguments->csv, "CSV file to write every sink to; must not exist yet");
  set_action(*command, action, [arguments, &global] { list_sinks(*arguments, global.json); });
}

void add_sink_vs_k(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(app, subcommand_named("sink-vs-k"), "gainlens sink-vs-k RUN");
  auto arguments = std::make_shared<SinkVsKArguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option(
      "--at", arguments->at,
      "Context lengths in tokens to average over, comma-separated; 1k is 1024 (default: the two longest of the run)");
  analyses::Resampling& resampling = arguments->options.resampling;
  command
      ->add_option("--permutations", resampling.permutations,
                   "Number of random arrangements in a permutation test; if fewer exist, all of them are used")
      ->capture_default_str();
  set_action(*command, action, [arguments, &global] { correlate(*arguments, global.seed, global.json); });
}

}  // namespace gainlens::cli
