#include "cli/commands.h"

#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "reports/report.h"
#include "runfile/run_reader.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct ReportArguments {
  std::string run;
  std::string out;
  std::string at;
  std::int64_t deep_layers = 0;
};

void report(const ReportArguments& arguments, bool json) {
  const auto run = runfile::RunReader::open(arguments.run);
  analyses::Options options;
  if (!arguments.at.empty()) options.at = parse_counts(arguments.at, "--at");
  if (arguments.deep_layers != 0) options.deep_layers = arguments.deep_layers;
  const std::filesystem::path out = arguments.out.empty() ? run.path().parent_path() / "report" : std::filesystem::path(arguments.out);
  const reports::WrittenReport written = reports::write_report(run, out, options);
  for (const std::string& reason : written.left_out) fmt::print(stderr, "gainlens: left out: {}\n", reason);
  if (json) {
    fmt::print("{}\n", Json{{"report", (out / "report.html").string()}, {"summary", (out / "summary.json").string()}}.dump());
  } else {
    fmt::print("{}\n", (out / "report.html").string());
  }
}

}  // namespace

void add_report(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, "report", "Draw every figure and table of a run: SVG, PDF, PNG, CSV, summary.json and one report.html", "gainlens report RUN");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("run", arguments->run, "Run folder or run.h5")->required();
  command->add_option("--out", arguments->out, "Folder to write (default: RUN/report)");
  command->add_option("--at", arguments->at,
                      "Lengths in tokens of the sink figures (default: 4k and 8k where present, else the two longest)");
  command->add_option("--deep-layers", arguments->deep_layers,
                      "How many of the last layers count as deep (default: a quarter, rounded up)");
  command->callback([arguments, &global, &action] { action = [arguments, &global] { report(*arguments, global.json); }; });
}

}  // namespace gainlens::cli
