#include "cli/commands.h"

#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "reports/report.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <algorithm>
#include <memory>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  std::vector<std::string> names;
  std::string at;
  std::int64_t deep_layers = 0;
  double theory_margin = analyses::Options{}.theory_margin;
};

/// The run's folder, whether it or its run.h5 was given.
fs::path folder_of(const std::string& run) {
  const fs::path path = fs::weakly_canonical(run);
  return fs::is_directory(path) ? path : path.parent_path();
}

/// Names of the runs as asked for, else those of their folders; where folders of one name lie in different places, with
/// the one above.
std::vector<std::string> labels(const ReportArguments& arguments) {
  if (!arguments.names.empty()) {
    CHECK(arguments.names.size() == arguments.runs.size(),
          "--names: {} names for {} runs; give one for each, separated by commas", arguments.names.size(),
          arguments.runs.size());
    for (const std::string& name : arguments.names)
      CHECK(!name.empty() && printable(name) == name,
            "--names: '{}'; must be UTF-8 without control characters, at most 200 bytes", printable(name));
    return arguments.names;
  }
  std::vector<std::string> names;
  for (const std::string& run : arguments.runs) names.push_back(printable(folder_of(run).filename().string()));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const fs::path folder = folder_of(arguments.runs[i]);
    const auto same = [&](const std::string& other) { return folder_of(other).filename() == folder.filename(); };
    if (std::count_if(arguments.runs.begin(), arguments.runs.end(), same) > 1)
      names[i] = printable((folder.parent_path().filename() / folder.filename()).string());
  }
  return names;
}

void refuse_repeats(const std::vector<std::string>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      CHECK(folder_of(runs[i]) != folder_of(runs[j]), "report: {} and {} are one run; give it once", printable(runs[j]),
            printable(runs[i]));
  }
}

fs::path folder_to_write(const ReportArguments& arguments) {
  if (!arguments.out.empty()) return arguments.out;
  CHECK(arguments.runs.size() == 1, "--out: is missing; a report of several runs needs a folder of its own");
  const fs::path run = arguments.runs.front();  // as it was given: so the printed path can be used as it is
  return (fs::is_directory(run) ? run : run.parent_path()) / "report";
}

void report(const ReportArguments& arguments, const GlobalOptions& global) {
  analyses::Options options;
  options.resampling.seed = global.seed;
  if (!arguments.at.empty()) options.at = parse_counts(arguments.at, "--at");
  if (arguments.deep_layers != 0) options.deep_layers = arguments.deep_layers;
  options.theory_margin = arguments.theory_margin;
  refuse_repeats(arguments.runs);
  const std::vector<std::string> names = labels(arguments);
  const fs::path out = folder_to_write(arguments);

  std::vector<runfile::RunReader> readers;
  std::vector<runfile::RunProof> proofs;
  for (const std::string& run : arguments.runs) {
    proofs.push_back(runfile::prove_run(run));  // before anything is read from it
    readers.push_back(runfile::RunReader::open(run));
  }
  std::vector<reports::RunInput> runs;
  for (std::size_t i = 0; i < readers.size(); ++i) runs.push_back({names[i], readers[i], proofs[i]});

  const reports::WrittenReport written = reports::write_report(runs, out, options);
  for (const std::string& reason : written.left_out) print_notice("gainlens: left out: {}\n", reason);
  if (global.json) {
    print_result("{}\n",
                 Json{{"report", (out / "report.html").string()}, {"summary", (out / "summary.json").string()}}.dump());
  } else {
    print_result("{}\n", (out / "report.html").string());
  }
}

}  // namespace

void add_report(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(app, "report",
                                     "Write every figure and table of a run as a page that reads like a paper's "
                                     "results: report.html, SVG, PDF, PNG, CSV, LaTeX and "
                                     "summary.json. Several runs are overlaid, and their differences tabulated. A run "
                                     "that is being written, or a shard that differs "
                                     "from its checksum, is refused.",
                                     "gainlens report RUN");
  auto arguments = std::make_shared<ReportArguments>();
  command
      ->add_option("runs", arguments->runs,
                   "Run folders or run.h5 files, at most 6; later ones are compared with the first")
      ->required();
  command->add_option("--out", arguments->out, "Folder to write (default for one run: RUN/report)");
  command
      ->add_option("--names", arguments->names,
                   "What to call the runs, comma-separated (default: their folders' names)")
      ->delimiter(',');
  command->add_option("--at", arguments->at,
                      "Lengths in tokens of the sink figures (default: 4k and 8k where present, else the two longest)");
  command->add_option("--deep-layers", arguments->deep_layers,
                      "How many of the last layers count as deep (default: a quarter, rounded up)");
  command
      ->add_option(
          "--theory-margin", arguments->theory_margin,
          "Error of the gain theory, as a share of K, that still counts as none; the paper reports 0.0028 at most")
      ->capture_default_str();
  command->callback([arguments, &global, &action] { action = [arguments, &global] { report(*arguments, global); }; });
}

}  // namespace gainlens::cli
