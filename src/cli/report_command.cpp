#include "cli/application.h"

#include "analyses/gain_theory.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "reports/figures/figure.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

/// The options that not every kind of run takes.
constexpr OptionFor report_options[] = {{"--paper", "other runs"},    {"--names", "sweeps"},       {"--at", "sweeps"},
                                        {"--lengths", "sweeps"},      {"--deep-layers", "sweeps"}, {"--axis", "sweeps"},
                                        {"--theory-margin", "sweeps"}};

void refuse_repeats(const std::vector<std::string>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j)
      CHECK(folder_of_run(runs[i]) != folder_of_run(runs[j]), "report: {} and {} are one run; give it once",
            printable(runs[j]), printable(runs[i]));
  }
}

/// The commands for the runs that are given.
/// @throws InvalidArgument  they do not go together; an option that is for others
const RunCommands& find_commands(const ReportArguments& arguments, const CLI::App& command) {
  std::vector<const RunCommands*> kinds;
  for (const std::string& run : arguments.runs) kinds.push_back(&commands_of(run));
  for (const RunCommands* kind : run_kinds().subspan(1)) {
    std::vector<std::string> own, others;
    for (std::size_t i = 0; i < kinds.size(); ++i)
      (kinds[i] == kind ? own : others).push_back(printable(arguments.runs[i]));
    if (kind->report == nullptr || own.empty()) continue;
    const std::string_view words = runfile::mark_of(kind->kind).words;
    if (kinds.size() > 1 && kind->refuse_several != nullptr) kind->refuse_several(own, others);
    CHECK(kinds.size() == 1, "report: {} is {}; give it alone", own.front(), words);
    refuse_options(command, report_options, kind->report_options,
                   fmt::format(", and {} is {}; leave it out", own.front(), words));
    return *kind;
  }
  return *run_kinds().front();
}

void report(const ReportArguments& arguments, const CLI::App& command, const GlobalOptions& global) {
  CHECK(!arguments.runs.empty(), "report: RUN is missing{}",
        arguments.paper.value_or("").empty()
            ? ""
            : fmt::format("; --paper took '{}' as its value, so give RUN first: gainlens report RUN --paper",
                          printable(*arguments.paper, 60)));
  refuse_repeats(arguments.runs);
  find_commands(arguments, command).report(arguments, global);
}

}  // namespace

fs::path folder_of_run(const std::string& run) {
  const fs::path path = fs::weakly_canonical(run);
  return fs::is_regular_file(path) ? path.parent_path() : path;  // what is missing is told where it is opened
}

fs::path folder_to_write(const ReportArguments& arguments) {
  if (!arguments.out.empty()) {
    for (const std::string& run : arguments.runs)
      CHECK(fs::weakly_canonical(arguments.out) != folder_of_run(run),
            "--out: {} is the folder of a run; give a folder of its own, for instance {}/report",
            printable(arguments.out), printable(arguments.out));
    check_holds_no_run(arguments.out);
    return arguments.out;
  }
  CHECK(arguments.runs.size() == 1, "--out: is missing; a report of several runs needs a folder of its own");
  const fs::path run = arguments.runs.front();  // the path as given, so that the user can use the printed path
  return (fs::is_directory(run) ? run : run.parent_path()) / "report";
}

void finish_report(const reports::WrittenReport& written, const fs::path& out, bool json) {
  tell_left_out(written);
  if (json) {
    print_result("{}\n",
                 json_text({{"report", (out / "report.html").string()}, {"summary", (out / "summary.json").string()}}));
  } else {
    print_result("{}\n", (out / "report.html").string());
  }
  check_made(written, "report");
}

reports::Writing writing_of(const ReportArguments& arguments) {
  return {arguments.style.empty() ? reports::Style{} : reports::read_style(arguments.style),
          arguments.paper.has_value()};
}

void add_report(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("report"), "gainlens report RUN",
      "Writes report.html, summary.json, and the figures and tables as SVG, PDF, PNG, CSV and LaTeX. Figures overlay\n"
      "several runs, and tables show their differences. A run that is being written is refused, and so is a run\n"
      "with a shard that differs from its checksum.\n"
      "RUN can be one recommender run too. The page shows what its arms reach on the test items, the learning curves,\n"
      "and who is recommended well. With several arms, it compares the later arms with the first.\n"
      "gainlens compare compares several such runs. Or RUN is a sweep of recommenders: what the attention of\n"
      "each head rests on, and for which users. Or a run of intervene: its table and maps of layers and heads. Or one "
      "of\n"
      "gate-arms: what each arm does to the loss. Or one of train finetune: scores and gains by the share of wrong\n"
      "answer words, and what the arms learned. Or one of train language-model: its losses.");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option(
      "runs", arguments->runs,
      "Run folders or run.h5 files of sweeps, at most 6 (with --axis 50); later ones are compared with the first.\n"
      "Or one recommender run, one sweep of recommenders, one run of intervene or gate-arms, or one of train finetune\n"
      "or train language-model");
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
  set_action(*command, action, [arguments, command, &global] { report(*arguments, *command, global); });
}

}  // namespace gainlens::cli
