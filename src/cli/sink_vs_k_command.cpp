#include "cli/commands.h"

#include "analyses/sink_vs_k.h"
#include "cli/given_run.h"
#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "reports/terminal/sinks_terminal.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct Arguments {
  std::string run, at;
  analyses::Options options;
};

void correlate(Arguments arguments, std::uint64_t seed, bool json) {
  const GivenRun run = open_given_run(arguments.run);
  if (!arguments.at.empty()) arguments.options.at = parse_counts(arguments.at, "--at");
  arguments.options.resampling.seed = seed;
  const analyses::SinkVsK result = analyses::sink_vs_k(run.reader, arguments.options);
  if (json) {
    print_result("{}\n", json_text(analyses::to_json(result), 2));
  } else {
    print_result("{}", reports::print_sink_vs_k(result));
  }
}

}  // namespace

void add_sink_vs_k(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(app, subcommand_named("sink-vs-k"), "gainlens sink-vs-k RUN");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option(
      "--at", arguments->at,
      "Context lengths in tokens to average over, comma-separated; 1k is 1024 (default: the two longest of the run)");
  analyses::Resampling& resampling = arguments->options.resampling;
  command
      ->add_option("--permutations", resampling.permutations,
                   "Number of random arrangements in a permutation test; if fewer exist, all of them are used")
      ->capture_default_str();
  command->callback([arguments, &global, &action] {
    action = [arguments, &global] { correlate(*arguments, global.seed, global.json); };
  });
}

}  // namespace gainlens::cli
