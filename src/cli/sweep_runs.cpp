// What the commands for every kind of run do with sweeps of language models.
#include "analyses/checks/sweep_checks.h"
#include "analyses/selection.h"
#include "analyses/series.h"
#include "analyses/sink_keys.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/quantity.h"
#include "reports/series/series_report.h"
#include "reports/sweep/sweep_report.h"

#include <algorithm>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

std::vector<analyses::CheckResult> check_sweep(const fs::path& path) {
  const DoubtfulRun found = open_doubtful_run(path);
  // Refuses sinks that cannot be, as every command does that shows them.
  if (analyses::has_sink_keys(found.run.reader)) analyses::sink_keys(found.run.reader);
  return analyses::run_checks(analyses::sweep_checks(),
                              analyses::CheckedSweep{found.run.reader, found.run.proof, found.changed});
}

/// The names given with --names, else the names of the runs' folders. Folders of the same name get the name of their
/// parent folder in front.
std::vector<std::string> labels(const ReportArguments& arguments) {
  if (!arguments.names.empty()) {
    CHECK(arguments.names.size() == arguments.runs.size(),
          "--names: {} names for {} runs; give one for each, separated by commas", arguments.names.size(),
          arguments.runs.size());
    for (const std::string& name : arguments.names)
      CHECK(!name.empty() && printable(name) == name,
            "--names: '{}'; a name must be UTF-8 without control characters, 1 to 200 bytes long", printable(name));
    return arguments.names;
  }
  std::vector<std::string> names;
  for (const std::string& run : arguments.runs) names.push_back(printable(folder_of_run(run).filename().string()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const fs::path folder = folder_of_run(arguments.runs[i]);
    const auto same = [&](const std::string& other) { return folder_of_run(other).filename() == folder.filename(); };
    if (std::count_if(arguments.runs.begin(), arguments.runs.end(), same) > 1)
      names[i] = printable((folder.parent_path().filename() / folder.filename()).string());
  }
  return names;
}

/// The lengths that --lengths names.
/// @throws InvalidArgument  one that the run does not have, or of which it has no complete chunk
void keep_lengths(runfile::RunReader& reader, const std::string& asked) {
  const std::vector<std::int64_t> tokens = parse_counts(asked, "--lengths");
  reader.keep_lengths(tokens);
  for (const analyses::Length& length : analyses::all_lengths(reader))
    CHECK(!length.samples.empty(), "--lengths: {} has no complete chunk of {} tokens",
          printable(reader.path().string()), format_count(length.tokens));
}

void check_axis(const ReportArguments& arguments) {
  if (arguments.axis.empty()) return;
  CHECK(arguments.axis == "step" || arguments.axis == "name", "--axis: '{}'; must be step or name",
        printable(arguments.axis, 40));
  CHECK(!arguments.at && !arguments.paper && arguments.theory_margin == analyses::Options{}.theory_margin,
        "--axis: a series has no sink figures and no page of the paper; leave --at, --paper and --theory-margin out");
}

void report_sweeps(const ReportArguments& arguments, const GlobalOptions& global) {
  CHECK(arguments.paper.value_or("").empty(),
        "--paper: '{}' names a data set, which is for recommender runs, and {} is a sweep; leave the name out",
        printable(*arguments.paper, 60), printable(arguments.runs.front()));
  check_axis(arguments);
  analyses::Options options;
  options.resampling.seed = global.seed;
  if (arguments.at) options.at = parse_counts(*arguments.at, "--at");
  options.deep_layers = arguments.deep_layers;
  options.theory_margin = arguments.theory_margin;
  const std::vector<std::string> names = labels(arguments);
  const fs::path out = folder_to_write(arguments);
  const reports::Writing writing = writing_of(arguments);

  std::vector<GivenRun> given;
  for (const std::string& run : arguments.runs) given.push_back(open_begun_run(run));
  if (arguments.lengths) {
    for (GivenRun& run : given) keep_lengths(run.reader, *arguments.lengths);
  }
  std::vector<reports::RunInput> runs;
  for (std::size_t i = 0; i < given.size(); ++i) runs.push_back({names[i], given[i].reader, given[i].proof});
  if (!arguments.axis.empty()) {
    std::vector<analyses::SeriesRun> series;
    for (std::size_t i = 0; i < given.size(); ++i) series.push_back({names[i], given[i].reader});
    finish_report(
        reports::write_series_report(analyses::series(series, arguments.axis == "step", options), runs, out, writing),
        out, global.json);
    return;
  }
  finish_report(reports::write_report(runs, out, options, writing), out, global.json);
}

}  // namespace

// What is no run is read by these functions too. `compare` reads files of ranks so, and refuses a sweep.
const RunCommands sweep_commands = {.kind = runfile::RunKind::sweep,
                                    .check = check_sweep,
                                    .report = report_sweeps,
                                    .compare = compare_recommenders,
                                    .compare_options = options_of_recommenders};

}  // namespace gainlens::cli
