#include "cli/application.h"

#include "cli/command_options.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "data/item_ranks.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

/// The options that not every comparison has.
constexpr OptionFor compare_options[] = {{"--margin", "experiments whose units are no users of recommenders"},
                                         {"--edges", "recommender runs"},
                                         {"--paper", "recommender runs"},
                                         {"--data", "recommender runs"},
                                         {"--validation", "recommender runs"},
                                         {"--deterministic", "recommender runs"}};

/// The commands for what the text names. Files of ranks are compared as what is no run.
const RunCommands& commands_of_text(const std::string& text) {
  if (is_ranks(text)) return *run_kinds().front();
  const std::string run = printable(parse_run(text).first);
  const RunCommands& commands = commands_of(parse_run(text).first);
  CHECK(commands.instead_of_compare.empty(), "compare: {} {}", run,
        fmt::format(fmt::runtime(commands.instead_of_compare), run));
  return commands;
}

void compare(const CompareArguments& arguments, const CLI::App& command, const GlobalOptions& global) {
  const RunCommands *usual = run_kinds().front(), *other = nullptr;
  std::vector<std::string> others, usual_ones;
  for (const std::string& text : arguments.runs) {
    const RunCommands& commands = commands_of_text(text);
    const bool is_usual = commands.compare == nullptr || commands.compare == usual->compare;
    if (!is_usual && other == nullptr) other = &commands;
    (!is_usual && other == &commands ? others : usual_ones).push_back(printable(text));
  }
  if (other == nullptr) {
    refuse_options(command, compare_options, usual->compare_options, "; leave it out");
    return usual->compare(arguments, global);
  }
  const std::string shown = fmt::format("{} is {}", others.front(), runfile::mark_of(other->kind).words);
  CHECK(usual_ones.empty(), "compare: {}, and {} is not; give recommender runs alone, or experiments alone", shown,
        usual_ones.front());
  refuse_options(command, compare_options, other->compare_options, fmt::format(", and {}; leave it out", shown));
  other->compare(arguments, global);
}

void add_options(CLI::App& command, CompareArguments& arguments) {
  command
      .add_option("runs", arguments.runs,
                  "Run folders or run.h5 files of train recommend or of another experiment, or RUN:ARM for one arm of "
                  "a run; or CSV files of ranks made elsewhere, with --data")
      ->required();
  command.add_option("--baseline", arguments.pairing.baseline,
                     "Name of the arm that the others are compared with (default: the first arm of each split)");
  add_name_list(command, "--metrics", arguments.metrics,
                fmt::format("Metrics to compare, separated by commas (default: {}; of an experiment all of its scores)",
                            fmt::join(default_metrics, ",")));
  command.add_option("--margin", arguments.margin,
                     "Experiments: also test whether the arms are equivalent, that is, whether the means of a score\n"
                     "differ by less than this, in the unit of the score");
  command.add_option("--out", arguments.out,
                     "Folder for report.html, summary.json, and tables as LaTeX and CSV; made if it does not exist");
  command
      .add_option("--edges", arguments.edges,
                  "Strata of items, by training count: quintiles (equally many items in each), paper (the edges that "
                  "the paper prints for Sports: 43,84,126,198), or the largest count of each stratum but the last: 0,5 "
                  "has a stratum of the items that are never in training")
      ->capture_default_str();
  command
      .add_option("--resamples", arguments.resamples,
                  "Number of draws of the bootstrap over seeds and users, which --json shows")
      ->capture_default_str();
  add_interaction_options(command, arguments.data);
  CLI::Option* data = command.get_option("--data");
  data->required(false);
  data->description("For files of ranks: the data set whose test items they rank. " + data->get_description());
  add_name_list(command, "--paper", arguments.paper,
                "The paper's data set beside which the data stand, one for each data set: ML-1M, Instruments, Beauty,\n"
                "Sports, Toys, Games, or none (default: the one with as many users, items and interactions)");
  command.add_flag("--validation", arguments.validation,
                   "Compare the ranks of the validation items, to choose settings by, and not those of the test items");
  command.add_flag("--deterministic", arguments.pairing.deterministic,
                   "Nothing random made the files of ranks without a column seed: pair them with every seed");
  command.add_flag("--by-position", arguments.pairing.by_position,
                   "Pair the seeds of two arms in order although they differ. For a check: two runs of one arm that\n"
                   "differ in --seed alone should not differ");
}

}  // namespace

std::pair<std::string, std::string> parse_run(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(text)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

bool is_ranks(const std::string& text) {
  return data::is_ranks_file(parse_run(text).first);
}

void add_compare(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("compare"), "gainlens compare RUN",
      "Arms on the same split are compared with the first of them; a run without an arm stands for all of its\n"
      "arms. Every number comes from the ranks of the test items. If two arms are compared on several data sets,\n"
      "the results are pooled. Of another experiment the units are questions or documents in the place of users,\n"
      "and changes are differences of their scores.\n"
      "A file of ranks has the columns user, target, rank, and seed if there are several; it is one arm.\n"
      "  95%, p    of the relative change, over other seeds and other users; users with the same test item count\n"
      "            as one. This p decides, at 5%\n"
      "  Holm p    p, corrected for all rows of the first table\n"
      "  naive p   paired t over the seeds, the usual test; it takes the test users as fixed\n"
      "  signs p   sign test over the seeds\n"
      "  paper     what the paper prints for plain against bft with this backbone, if the data have as many users,\n"
      "            items and interactions as one of its data sets, or if --paper names it\n"
      "docs/inference.md says how often each of them is wrong.");
  auto arguments = std::make_shared<CompareArguments>();
  add_options(*command, *arguments);
  set_action(*command, action, [arguments, command, &global] {
    if (arguments->data.path.empty()) refuse_interaction_policy(*command, "is an option of --data");
    compare(*arguments, *command, global);
  });
}

}  // namespace gainlens::cli
