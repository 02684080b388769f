#include "cli/commands.h"

#include "analyses/sink_vs_k.h"
#include "core/console.h"
#include "core/error.h"
#include "core/quantity.h"
#include "reports/terminal.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct Arguments {
  std::string run, at;
  analyses::Options options;
};

void correlate(Arguments arguments, std::uint64_t seed, bool json) {
  runfile::prove_run(arguments.run);  // before anything is read from it
  const auto run = runfile::RunReader::open(arguments.run);
  if (!arguments.at.empty()) arguments.options.at = parse_counts(arguments.at, "--at");
  arguments.options.resampling.seed = seed;
  const analyses::SinkVsK result = analyses::sink_vs_k(run, arguments.options);
  if (json) {
    print_result("{}\n", analyses::to_json(result).dump(2));
  } else {
    print_result("{}", reports::print_sink_vs_k(result));
  }
}

}  // namespace

void add_sink_vs_k(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, "sink-vs-k", "Do heads that watch the first key have a gain near 1? BOS mass against K over heads",
      "gainlens sink-vs-k RUN");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option("--at", arguments->at,
                      "Lengths in tokens to average over (default: 4k and 8k where present, else the two longest)");
  analyses::Resampling& resampling = arguments->options.resampling;
  command
      ->add_option("--permutations", resampling.permutations,
                   "Arrangements a permutation test draws; all where there are no more")
      ->capture_default_str();
  command->callback([arguments, &global, &action] {
    action = [arguments, &global] { correlate(*arguments, global.seed, global.json); };
  });
}

}  // namespace gainlens::cli
