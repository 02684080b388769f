#include "cli/commands.h"

#include "analyses/attention_evidence.h"
#include "analyses/recommender_results.h"
#include "analyses/selection.h"
#include "analyses/series.h"
#include "analyses/theory_equivalence.h"
#include "cli/finetuned_run.h"
#include "cli/given_run.h"
#include "cli/intervention_runs.h"
#include "cli/name_list.h"
#include "cli/written_report.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/quantity.h"
#include "recommend/settings.h"
#include "reports/attention/attention_report.h"
#include "reports/figures/style.h"
#include "reports/finetune/finetune_report.h"
#include "reports/recommend/recommend_report.h"
#include "reports/series/series_report.h"
#include "reports/sweep/sweep_report.h"
#include "runfile/attention_run.h"
#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_kind.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  std::vector<std::string> names;
  std::optional<std::string> at;
  std::optional<std::int64_t> deep_layers;
  double theory_margin = analyses::Options{}.theory_margin;
  std::optional<std::string> lengths;
  std::string style;
  std::string axis;
  /// Of a sweep without a value: the option alone asks for a page. Of a recommender run the name of a data set.
  std::optional<std::string> paper;
};

/// The folder of a run, given as the folder or as its run.h5.
fs::path folder_of(const std::string& run) {
  const fs::path path = fs::weakly_canonical(run);
  return fs::is_regular_file(path) ? path.parent_path() : path;  // what is missing is told where it is opened
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
  if (!arguments.out.empty()) {
    for (const std::string& run : arguments.runs)
      CHECK(fs::weakly_canonical(arguments.out) != folder_of(run),
            "--out: {} is the folder of a run; give a folder of its own, for instance {}/report",
            printable(arguments.out), printable(arguments.out));
    check_holds_no_run(arguments.out);
    return arguments.out;
  }
  CHECK(arguments.runs.size() == 1, "--out: is missing; a report of several runs needs a folder of its own");
  const fs::path run = arguments.runs.front();  // the path as given, so that the user can use the printed path
  return (fs::is_directory(run) ? run : run.parent_path()) / "report";
}

/// Says what was written, and ends with an error if a section is missing.
void finish(const reports::WrittenReport& written, const fs::path& out, bool json) {
  tell_left_out(written);
  if (json) {
    print_result("{}\n",
                 json_text({{"report", (out / "report.html").string()}, {"summary", (out / "summary.json").string()}}));
  } else {
    print_result("{}\n", (out / "report.html").string());
  }
  check_made(written, "report");
}

/// Refuses options that only sweeps of language models have.
/// @param what  "a recommender run"
void refuse_options_for_sweeps(const ReportArguments& arguments, const std::string& run, std::string_view what) {
  const bool for_sweeps[] = {
      !arguments.names.empty(),      arguments.at.has_value(),
      arguments.lengths.has_value(), arguments.deep_layers.has_value(),
      !arguments.axis.empty(),       arguments.theory_margin != analyses::Options{}.theory_margin};
  const char* const options[] = {"--names", "--at", "--lengths", "--deep-layers", "--axis", "--theory-margin"};
  for (std::size_t i = 0; i < std::size(options); ++i)
    CHECK(!for_sweeps[i], "{}: is for sweeps, and {} is {}; leave it out", options[i], run, what);
}

/// Whether the run is a sweep of recommenders.
/// @throws InvalidArgument  beside other runs; an option that is for others
bool asks_for_swept_recommenders(const ReportArguments& arguments) {
  for (const std::string& run : arguments.runs) {
    if (!runfile::is_run_of(run, {runfile::RunKind::recommender_sweep})) continue;
    CHECK(arguments.runs.size() == 1, "report: {} is a sweep of recommenders; give it alone", printable(run));
    CHECK(!arguments.paper, "--paper: is for other runs, and {} is a sweep of recommenders; leave it out",
          printable(run));
    refuse_options_for_sweeps(arguments, printable(run), "a sweep of recommenders");
    return true;
  }
  return false;
}

/// Whether the runs are recommender runs.
/// @throws InvalidArgument  several of them, or beside sweeps; an option that is for sweeps
bool asks_for_recommenders(const ReportArguments& arguments) {
  std::vector<std::string> recommenders, others;
  for (const std::string& run : arguments.runs)
    (runfile::is_run_of(run, {runfile::RunKind::recommenders}) ? recommenders : others).push_back(printable(run));
  CHECK(!recommenders.empty() || arguments.paper.value_or("").empty(),
        "--paper: '{}' names a data set, which is for recommender runs, and {} is a sweep; leave the name out",
        printable(*arguments.paper, 60), others.front());
  if (recommenders.empty()) return false;
  CHECK(others.empty(),
        "report: {} is a recommender run, and {} is not; give one recommender run alone, or sweeps alone",
        recommenders.front(), others.front());
  CHECK(recommenders.size() == 1, "report: {} are recommender runs; compare them: gainlens compare {} --out FOLDER",
        fmt::join(recommenders, ", "), fmt::join(recommenders, " "));
  refuse_options_for_sweeps(arguments, recommenders.front(), "a recommender run");
  return true;
}

/// Whether the run is one of intervene.
/// @throws InvalidArgument  beside other runs; an option that is for others
bool asks_for_interventions(const ReportArguments& arguments) {
  for (const std::string& run : arguments.runs) {
    if (!is_run_of_intervene(run)) continue;
    CHECK(arguments.runs.size() == 1, "report: {} is a run of intervene; give it alone", printable(run));
    CHECK(!arguments.paper, "--paper: is for other runs, and {} is a run of intervene; leave it out", printable(run));
    refuse_options_for_sweeps(arguments, printable(run), "a run of intervene");
    return true;
  }
  return false;
}

/// Whether the run is one of an experiment.
/// @throws InvalidArgument  beside other runs; an option that is for others
bool asks_for_experiment(const ReportArguments& arguments) {
  for (const std::string& run : arguments.runs) {
    if (!runfile::is_run_of(run, {runfile::RunKind::experiment})) continue;
    CHECK(arguments.runs.size() == 1, "report: {} is the run of an experiment; give it alone", printable(run));
    CHECK(!arguments.paper, "--paper: is for other runs, and {} is the run of an experiment; leave it out",
          printable(run));
    refuse_options_for_sweeps(arguments, printable(run), "the run of an experiment");
    return true;
  }
  return false;
}

reports::Writing writing_of(const ReportArguments& arguments) {
  return {arguments.style.empty() ? reports::Style{} : reports::read_style(arguments.style),
          arguments.paper.has_value()};
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

void report_recommender(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments), path = arguments.runs.front();
  analyses::RecommenderOptions options;
  options.resampling.seed = options.resamples.seed = global.seed;
  CHECK(!arguments.paper || !arguments.paper->empty(),
        "--paper: needs the name of a data set, since {} is a recommender run", printable(path.string()));
  if (arguments.paper) options.paper = analyses::parse_paper_data_set(*arguments.paper);
  const auto run = given_recommend_run(path);
  const recommend::BackboneKind& backbone = recommend::backbone_named(run->backbone(), printable(path.string()));
  const Json preset =
      Json(recommend::to_json(recommend::settings_of(recommend::preset("paper", backbone), "--preset", backbone)));
  const reports::TrainedRun trained{printable(folder_of(path).filename().string()),
                                    analyses::recommender_results(path, run, options), preset};
  finish(reports::write_recommend_report(trained, out, writing_of(arguments)), out, global.json);
}

void report_experiment(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments), path = arguments.runs.front();
  analyses::ExperimentOptions options;
  options.resampling.seed = options.resamples.seed = global.seed;
  finish(
      reports::write_finetune_report(read_finetuned_run(path, printable(folder_of(path).filename().string()), options),
                                     out, writing_of(arguments)),
      out, global.json);
}

void report_swept_recommenders(const ReportArguments& arguments, const GlobalOptions& global) {
  const fs::path out = folder_to_write(arguments);
  analyses::AttentionOptions options;
  options.seed = global.seed;
  options.threads = static_cast<std::size_t>(std::max(at::get_num_threads(), 1));
  const runfile::AttentionRun run = runfile::read_attention_run(arguments.runs.front());
  finish(reports::write_attention_report(run, analyses::attention_evidence(run, options), out, writing_of(arguments)),
         out, global.json);
}

void check_axis(const ReportArguments& arguments) {
  if (arguments.axis.empty()) return;
  CHECK(arguments.axis == "step" || arguments.axis == "name", "--axis: '{}'; must be step or name",
        printable(arguments.axis, 40));
  CHECK(!arguments.at && !arguments.paper && arguments.theory_margin == analyses::Options{}.theory_margin,
        "--axis: a series has no sink figures and no page of the paper; leave --at, --paper and --theory-margin out");
}

void report_sweeps(const ReportArguments& arguments, const GlobalOptions& global) {
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
  for (const std::string& run : arguments.runs) given.push_back(open_given_run(run));
  if (arguments.lengths) {
    for (GivenRun& run : given) keep_lengths(run.reader, *arguments.lengths);
  }
  std::vector<reports::RunInput> runs;
  for (std::size_t i = 0; i < given.size(); ++i) runs.push_back({names[i], given[i].reader, given[i].proof});
  if (!arguments.axis.empty()) {
    std::vector<analyses::SeriesRun> series;
    for (std::size_t i = 0; i < given.size(); ++i) series.push_back({names[i], given[i].reader});
    finish(
        reports::write_series_report(analyses::series(series, arguments.axis == "step", options), runs, out, writing),
        out, global.json);
    return;
  }
  finish(reports::write_report(runs, out, options, writing), out, global.json);
}

void report(const ReportArguments& arguments, const GlobalOptions& global) {
  CHECK(!arguments.runs.empty(), "report: RUN is missing{}",
        arguments.paper.value_or("").empty()
            ? ""
            : fmt::format("; --paper took '{}' as its value, so give RUN first: gainlens report RUN --paper",
                          printable(*arguments.paper, 60)));
  refuse_repeats(arguments.runs);
  if (asks_for_interventions(arguments)) {
    const fs::path out = folder_to_write(arguments);
    finish(report_run_of_intervene(arguments.runs.front(), out, writing_of(arguments)), out, global.json);
  } else if (asks_for_experiment(arguments)) {
    report_experiment(arguments, global);
  } else if (asks_for_swept_recommenders(arguments))
    report_swept_recommenders(arguments, global);
  else if (asks_for_recommenders(arguments))
    report_recommender(arguments, global);
  else
    report_sweeps(arguments, global);
}

}  // namespace

void add_report(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("report"), "gainlens report RUN",
      "Writes report.html, summary.json, and the figures and tables as SVG, PDF, PNG, CSV and LaTeX. Figures overlay\n"
      "several runs, and tables show their differences. A run that is being written is refused, and so is a run\n"
      "with a shard that differs from its checksum.\n"
      "RUN can be one recommender run too. The page shows what its arms reach on the test items, the learning curves,\n"
      "and who is recommended well. With several arms, it compares the later arms with the first.\n"
      "gainlens compare compares several such runs. Or RUN is a sweep of recommenders: what the attention of\n"
      "each head rests on, and for which users. Or a run of intervene: its table and maps of layers and heads. Or a "
      "run\n"
      "of train finetune: scores and gains by the share of wrong answer words, and what the arms learned.");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option(
      "runs", arguments->runs,
      "Run folders or run.h5 files of sweeps, at most 6 (with --axis 50); later ones are compared with the first.\n"
      "Or one recommender run, one sweep of recommenders, one run of intervene, or one of train finetune");
  command->add_option("--out", arguments->out,
                      "Folder to write to (default for one run: RUN/report; several runs need this option)");
  add_name_list(*command, "--names", arguments->names,
                "Names of the runs, comma-separated, one for each run (default: the names of their folders)");
  command->add_option("--at", arguments->at,
                      "Context lengths in tokens for the sink figures, comma-separated; 1k is 1024 (default: the two "
                      "longest of the run)");
  command->add_option("--deep-layers", arguments->deep_layers,
                      "Number of last layers that count as deep (default: a quarter of the run's layers, rounded up)");
  command
      ->add_option(
          "--theory-margin", arguments->theory_margin,
          fmt::format("Largest relative error of the gain theory, as a share of K, that counts as no error; the "
                      "paper reports at most {}",
                      analyses::paper_theory_error))
      ->capture_default_str();
  command->add_option("--lengths", arguments->lengths,
                      "Context lengths in tokens to report on, comma-separated; 1k is 1024 (default: all of the run)");
  command
      ->add_option("--paper", arguments->paper,
                   "Sweeps, without a value: the paper's predictions and theory get a page of their own, paper.html\n"
                   "(default: they are folded at the end of report.html).\n"
                   "Recommender runs: the paper's data set beside which the data stand: ML-1M, Instruments, Beauty,\n"
                   "Sports, Toys, Games, or none (default: the one with as many users, items and interactions)")
      ->expected(0, 1);
  command->add_option("--axis", arguments->axis,
                      "Sweeps of a series, 2 to 50: step (checkpoints of a training; the step is the last number of a "
                      "run's name) or name (in the order given). Every quantity is drawn along the axis");
  command->add_option("--style", arguments->style,
                      "JSON file with font, sizes, colours and formats of the figures, and which of them to draw: see "
                      "docs/report.md");
  command->callback([arguments, &global, &action] { action = [arguments, &global] { report(*arguments, global); }; });
}

}  // namespace gainlens::cli
