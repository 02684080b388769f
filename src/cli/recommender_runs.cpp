// What the commands for every kind of run do with recommender runs.
#include "analyses/gain_decisions.h"
#include "analyses/recommender_comparison.h"
#include "analyses/recommender_results.h"
#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/quantity.h"
#include "core/strata.h"
#include "data/item_ranks.h"
#include "data/leave_one_out.h"
#include "experiment/result_file.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_files.h"
#include "recommend/settings.h"
#include "reports/recommend/compare_report.h"
#include "reports/recommend/recommend_report.h"
#include "reports/terminal/compare_terminal.h"
#include "runfile/recommend_run.h"

#include <fmt/ranges.h>

#include <cstddef>
#include <iterator>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

std::vector<analyses::CheckResult> check_recommend_run(const fs::path& path) {
  const runfile::RecommendRun run = recommend::read_run(path);
  analyses::CheckedRecommenders checked(run);
  note_files(checked, [&](auto& faults) { return recommend::read_proven_run(path, &faults).unproven; });
  return analyses::run_checks(analyses::recommender_checks(), checked);
}

/// A training alone, as a run of one arm and one seed.
std::vector<analyses::CheckResult> check_recommender(const GivenTraining& training) {
  recommend::check_request_of(training.run);
  runfile::RecommendRun run;
  run.arms = {training.label};
  run.seeds = {training.seed};
  run.results.resize(1);
  if (recommend::is_recommender(training.folder))
    run.item_train_count.resize(static_cast<std::size_t>(recommend::catalogue_size(training.folder)));
  analyses::CheckedRecommenders checked(run);
  checked.alone = true;
  const fs::path file = training.folder / experiment::result_name;
  if (fs::exists(file)) {
    const experiment::StoredResult stored = experiment::load_result(file, training.label, training.seed);
    run.results.front() = stored.result;
    note_files(checked, [&](auto& faults) {
      recommend::prove_files(training.folder, stored, &faults);
      return std::string();
    });
  } else {
    checked.unproven = "nothing to compare yet";
  }
  return analyses::run_checks(analyses::recommender_checks(), checked);
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
  const reports::TrainedRun trained{printable(folder_of_run(path).filename().string()),
                                    analyses::recommender_results(path, run, options), preset};
  finish_report(reports::write_recommend_report(trained, out, writing_of(arguments)), out, global.json);
}

void refuse_several_recommenders(const std::vector<std::string>& own, const std::vector<std::string>& others) {
  CHECK(others.empty(),
        "report: {} is a recommender run, and {} is not; give one recommender run alone, or sweeps alone", own.front(),
        others.front());
  throw_invalid("report: {} are recommender runs; compare them: gainlens compare {} --out FOLDER", fmt::join(own, ", "),
                fmt::join(own, " "));
}

constexpr std::string_view recommender_report_options[] = {"--paper"};

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
  if (arguments.validation) notes.emplace_back(validation_items_note);
  for (const analyses::RecommenderArm& arm : arms) {
    if (arguments.pairing.deterministic && arm.seedless)
      notes.push_back(fmt::format(
          "{} is one list of ranks, which stands for every seed of the other arm (--deterministic).", arm.label));
  }
  return notes;
}

}  // namespace

const RunCommands recommenders_commands = {.kind = runfile::RunKind::recommenders,
                                           .check = check_recommend_run,
                                           .check_training = check_recommender,
                                           .report = report_recommender,
                                           .report_options = recommender_report_options,
                                           .refuse_several = refuse_several_recommenders,
                                           .compare = compare_recommenders,
                                           .compare_options = options_of_recommenders};

void compare_recommenders(const CompareArguments& arguments, const GlobalOptions& global) {
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
  if (!arguments.out.empty())
    tell_written(reports::write_compare_report(comparisons, pooled, arguments.out, notes), arguments.out, "compare");
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

}  // namespace gainlens::cli
