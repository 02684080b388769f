#include "cli/commands.h"

#include "analyses/arm_pairs.h"
#include "analyses/experiment_comparison.h"
#include "analyses/gain_decisions.h"
#include "analyses/recommender_comparison.h"
#include "cli/given_run.h"
#include "cli/interaction_options.h"
#include "cli/intervention_runs.h"
#include "cli/name_list.h"
#include "cli/written_report.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/nearest.h"
#include "core/quantity.h"
#include "core/strata.h"
#include "data/item_ranks.h"
#include "data/leave_one_out.h"
#include "reports/comparison/experiment_page.h"
#include "reports/recommend/compare_report.h"
#include "reports/terminal/compare_terminal.h"
#include "reports/terminal/experiment_terminal.h"
#include "runfile/experiment_run.h"
#include "runfile/run_kind.h"
#include "runfile/validation_ranks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

struct CompareArguments {
  std::vector<std::string> runs;
  std::vector<std::string> metrics;  // none: those of default_metrics, or all scores of an experiment
  std::string edges = "quintiles";
  std::vector<std::string> paper;
  analyses::Pairing pairing;
  std::string out;
  std::int64_t resamples = analyses::Resamples{}.count;
  std::optional<double> margin;
  bool validation = false;
  InteractionArguments data;  // of files of ranks
};

/// The metrics of recommenders, unless others are named.
const std::vector<std::string> default_metrics = {"hr@10", "ndcg@10", "mrr"};

/// "RUN" or "RUN:ARM". A path that exists is a run, whatever it contains.
std::pair<std::string, std::string> parse_run(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || fs::exists(text)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// The arms that the command line names, and what could not be proven of their runs.
template <typename Run>
struct GivenArms {
  std::vector<analyses::ArmOf<Run>> arms;
  std::vector<std::pair<fs::path, std::vector<std::string>>> unproven;  ///< of each run, once

  /// "RUN: sentence" of all runs.
  std::vector<std::string> sentences() const {
    std::vector<std::string> all;
    for (const auto& [path, own] : unproven)
      for (const std::string& sentence : own) all.push_back(printable(path.string()) + ": " + sentence);
    return all;
  }
  /// To be called when nothing is refused any more.
  void tell() const {
    for (const auto& [path, sentences] : unproven) tell_unproven(path, sentences);
  }
};

/// In the order of the command line; all arms of a run that is given without one.
template <typename Run>
GivenArms<Run> read_arms(const std::vector<std::string>& texts,
                         const std::function<ProvenTrainings<Run>(const fs::path&)>& read) {
  GivenArms<Run> given;
  std::map<fs::path, std::shared_ptr<const Run>> runs;
  for (const std::string& text : texts) {
    const auto [path, wanted] = parse_run(text);
    auto& run = runs[fs::weakly_canonical(path)];
    if (run == nullptr) {
      ProvenTrainings<Run> proven = read(path);
      run = proven.run;
      given.unproven.emplace_back(path, std::move(proven.unproven));
    }
    CHECK(wanted.empty() || std::find(run->arms.begin(), run->arms.end(), wanted) != run->arms.end(),
          "{}: has no arm '{}', but {}{}", printable(path), printable(wanted, 60), fmt::join(run->arms, ", "),
          did_you_mean(wanted, run->arms));
    for (std::size_t i = 0; i < run->arms.size(); ++i) {
      if (!wanted.empty() && run->arms[i] != wanted) continue;
      given.arms.push_back({path, run, i});
    }
  }
  analyses::name_arms(given.arms);
  return given;
}

std::vector<std::int64_t> edges_of(const std::string& text) {
  if (text == "quintiles") return {};
  if (text == "paper") return printed_item_edges();
  CHECK(text.find_first_not_of("0123456789,") == std::string::npos,
        "--edges: '{}'; must be quintiles, paper, or whole numbers that rise, such as 4,6,8,15", printable(text, 60));
  return parse_counts(text, "--edges", {.count = 0, .reason = {}});
}

analyses::RecommenderOptions options_of(const CompareArguments& arguments, std::uint64_t seed) {
  analyses::RecommenderOptions options;
  options.metrics.clear();
  for (const std::string& metric : arguments.metrics.empty() ? default_metrics : arguments.metrics) {
    options.metrics.push_back(parse_ranking_metric(metric));
  }
  options.item_edges = edges_of(arguments.edges);
  options.resampling.seed = seed;
  options.resamples = {arguments.resamples, seed};
  return options;
}

/// The paper's data set of each split, in the order of the pairs; empty: by the size of the data.
/// @throws InvalidArgument  not one name for each split, an unknown name
std::map<std::string, std::string> paper_names(const std::vector<std::string>& given,
                                               const std::vector<analyses::ArmPair>& pairs) {
  std::map<std::string, std::string> names;
  if (given.empty()) return names;
  std::vector<std::string> splits, data_sets;
  for (const analyses::ArmPair& pair : pairs) {
    const runfile::RecommendRun& run = *pair.baseline.run;
    if (std::find(splits.begin(), splits.end(), run.split()) != splits.end()) continue;
    splits.push_back(run.split());
    data_sets.push_back(printable(run.data_name(), 60));
  }
  CHECK(given.size() == splits.size(),
        "--paper: {} for {} ({}); give one name for each, in this order, with commas; none stands for no data set",
        counted(given.size(), "name"), counted(splits.size(), "data set"), fmt::join(data_sets, ", "));
  for (std::size_t i = 0; i < splits.size(); ++i) names[splits[i]] = analyses::parse_paper_data_set(given[i]);
  return names;
}

/// @throws RunFailed  a section could not be made; the others are written
void write_report(const std::vector<analyses::ArmComparison>& comparisons,
                  const std::vector<analyses::PooledComparison>& pooled, const std::vector<std::string>& notes,
                  const fs::path& out) {
  const reports::WrittenReport written = reports::write_compare_report(comparisons, pooled, out, notes);
  tell_written(written, out, "compare");
}

/// Whether the text on the command line is a file of ranks, and no run.
bool is_ranks(const std::string& text) {
  return data::is_ranks_file(parse_run(text).first);
}

/// Reads runs, and files of ranks against the data.
class GivenRanks {
 public:
  /// @throws InvalidArgument  there are files of ranks and no --data, or --data or --deterministic and no such files
  explicit GivenRanks(const CompareArguments& arguments)
      : data_(arguments.data),
        held_out_(arguments.validation ? data::HeldOut::validation : data::HeldOut::test),
        deterministic_(arguments.pairing.deterministic) {
    const std::vector<std::string>& texts = arguments.runs;
    const InteractionArguments& data = arguments.data;
    const auto found = std::ranges::find_if(texts, is_ranks);
    CHECK(found != texts.end() || !deterministic_,
          "--deterministic: is for files of ranks (*.csv or *.tsv), and none is given; leave it out");
    CHECK(found == texts.end() || !data.path.empty(),
          "{}: is a file of ranks, whose users and targets are compared with those of the data; give --data too",
          found == texts.end() ? "" : printable(*found));
    CHECK(found != texts.end() || data.path.empty(),
          "--data: is for files of ranks (*.csv or *.tsv), and none is given; leave it out");
    if (!data.path.empty()) split_.emplace(data.read());
  }
  ProvenTrainings<runfile::RecommendRun> read(const fs::path& path) {
    if (!data::is_ranks_file(path)) {
      ProvenTrainings<runfile::RecommendRun> proven = prove_recommend_run(path);
      if (held_out_ == data::HeldOut::validation)
        proven.run = std::make_shared<const runfile::RecommendRun>(
            runfile::on_validation_items(*proven.run, printable(path.string())));
      return proven;
    }
    const data::ItemRanks ranks = data::read_item_ranks(path, *split_, held_out_);
    if (!ranks.seeded) seedless_.push_back(path);
    return {std::make_shared<const runfile::RecommendRun>(
        data::run_of_ranks(ranks, *split_, printable(data::stem_of_table(path), 60), data_.name(), held_out_))};
  }
  /// Says how many users the data leave out.
  void tell() const {
    if (split_) data_.tell_left_out(split_->interactions());
  }
  /// @throws InvalidArgument  --deterministic, and every file names its seeds
  void check_deterministic() const {
    CHECK(!deterministic_ || !seedless_.empty(),
          "--deterministic: is for ranks that name no seed, and every file of ranks here has the column seed; leave it "
          "out");
  }
  bool is_seedless(const fs::path& path) const { return std::ranges::count(seedless_, path) > 0; }

 private:
  const InteractionArguments& data_;
  data::HeldOut held_out_;
  bool deterministic_;
  std::vector<fs::path> seedless_;
  std::optional<data::LeaveOneOut> split_;
};

/// What the numbers are of, where it is not what they are of without options. A sentence each.
std::vector<std::string> notes_of(const CompareArguments& arguments,
                                  const std::vector<analyses::RecommenderArm>& arms) {
  std::vector<std::string> notes;
  if (arguments.validation) notes.emplace_back(of_validation_items);
  for (const analyses::RecommenderArm& arm : arms) {
    if (arguments.pairing.deterministic && arm.seedless)
      notes.push_back(fmt::format(
          "{} is one list of ranks, which stands for every seed of the other arm (--deterministic).", arm.label));
  }
  return notes;
}

void compare_recommenders(const CompareArguments& arguments, const GlobalOptions& global) {
  CHECK(!arguments.margin, "--margin: is for experiments whose units are no users of recommenders; leave it out");
  CHECK(!arguments.validation || arguments.paper.empty(),
        "--paper: the paper's numbers are of test items; leave out this option or --validation");
  const analyses::RecommenderOptions options = options_of(arguments, global.seed);
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  GivenRanks ranks(arguments);
  auto given = read_arms<runfile::RecommendRun>(arguments.runs, [&](const fs::path& path) { return ranks.read(path); });
  ranks.check_deterministic();
  for (analyses::RecommenderArm& arm : given.arms) arm.seedless = ranks.is_seedless(arm.path);
  const std::vector<analyses::ArmPair> pairs = analyses::pair_arms(given.arms, arguments.pairing);
  auto names = paper_names(arguments.paper, pairs);
  std::vector<analyses::ArmComparison> comparisons;
  for (const analyses::ArmPair& pair : pairs) {
    analyses::RecommenderOptions own = options;
    own.paper = arguments.validation ? "none" : names[pair.baseline.run->split()];
    comparisons.push_back(analyses::compare_arms(pair, own));
  }
  const std::vector<analyses::PooledComparison> pooled = analyses::pool_comparisons(comparisons, options);
  const std::vector<std::string> notes = notes_of(arguments, given.arms);
  given.tell();
  ranks.tell();
  if (!arguments.out.empty()) write_report(comparisons, pooled, notes, arguments.out);
  if (!global.json) {
    for (const std::string& note : notes) print_result("{}\n", note);
    print_result("{}", reports::print_comparisons(comparisons, pooled));
    return;
  }
  OrderedJson json = {{"held_out", arguments.validation ? "validation" : "test"},
                      {"notes", notes},
                      {"comparisons", OrderedJson::array()},
                      {"pooled", OrderedJson::array()}};
  for (const analyses::ArmComparison& comparison : comparisons) json["comparisons"].push_back(to_json(comparison));
  for (const analyses::GainDecision& row : analyses::decide(comparisons))
    json["comparisons"][row.comparison]["metrics"][comparisons[row.comparison].metrics[row.metric].metric.name()]
        ["decision"] = to_json(row);
  for (const analyses::PooledComparison& entry : pooled) json["pooled"].push_back(to_json(entry));
  print_result("{}\n", json_text(json, 2));
}

/// Refuses what only comparisons of recommenders have.
void check_experiment_arguments(const CompareArguments& arguments) {
  const bool given[] = {arguments.edges != CompareArguments{}.edges, !arguments.paper.empty(),
                        !arguments.data.path.empty(), arguments.validation, arguments.pairing.deterministic};
  const char* const options[] = {"--edges", "--paper", "--data", "--validation", "--deterministic"};
  for (std::size_t i = 0; i < std::size(options); ++i)
    CHECK(!given[i], "{}: is for recommender runs, and {} is the run of an experiment; leave it out", options[i],
          printable(arguments.runs.front()));
}

void compare_experiments(const CompareArguments& arguments, const GlobalOptions& global) {
  check_experiment_arguments(arguments);
  analyses::ExperimentOptions options{.scores = arguments.metrics, .margin = arguments.margin};
  options.resampling.seed = global.seed;
  options.resamples = {arguments.resamples, global.seed};
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  const auto given = read_arms<runfile::ExperimentRun>(arguments.runs, &prove_experiment_run);
  std::vector<analyses::ExperimentComparison> comparisons;
  for (const analyses::ExperimentPair& pair : analyses::pair_arms(given.arms, arguments.pairing))
    comparisons.push_back(analyses::compare_arms(pair, options));
  given.tell();
  if (!arguments.out.empty())
    tell_written(reports::write_experiment_page(comparisons, given.sentences(), arguments.out), arguments.out,
                 "compare");
  if (!global.json) {
    print_result("{}", reports::print_comparisons(comparisons));
    return;
  }
  OrderedJson json = {{"comparisons", OrderedJson::array()}};
  for (const analyses::ExperimentComparison& comparison : comparisons)
    json["comparisons"].push_back(to_json(comparison));
  for (const analyses::GainDecision& row : analyses::decide(comparisons))
    json["comparisons"][row.comparison]["scores"][comparisons[row.comparison].scores[row.metric].score.name]
        ["decision"] = to_json(row);
  print_result("{}\n", json_text(json, 2));
}

void compare(const CompareArguments& arguments, const GlobalOptions& global) {
  for (const std::string& text : arguments.runs)
    if (!is_ranks(text)) refuse_run_of_intervene(parse_run(text).first, "compare");
  std::vector<std::string> experiments, others;
  for (const std::string& text : arguments.runs)
    (!is_ranks(text) && runfile::is_run_of(parse_run(text).first, {runfile::RunKind::experiment}) ? experiments
                                                                                                  : others)
        .push_back(printable(text));
  CHECK(experiments.empty() || others.empty(),
        "compare: {} is the run of an experiment, and {} is not; give recommender runs alone, or experiments alone",
        experiments.front(), others.front());
  if (experiments.empty())
    compare_recommenders(arguments, global);
  else
    compare_experiments(arguments, global);
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
  command->callback([arguments, command, &global, &action] {
    action = [arguments, command, &global] {
      if (arguments->data.path.empty()) refuse_interaction_policy(*command, "is an option of --data");
      compare(*arguments, global);
    };
  });
}

}  // namespace gainlens::cli
