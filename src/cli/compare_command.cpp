#include "cli/commands.h"

#include "analyses/seed_comparison.h"
#include "analyses/seed_user.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/nearest.h"
#include "core/ranking_metrics.h"
#include "runfile/recommend_run.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::cli {
namespace {

struct CompareArguments {
  std::vector<std::string> runs;
  std::vector<std::string> metrics = {"hr@10", "ndcg@10", "mrr"};
  bool by_position = false;
};

/// One arm of a run with all its seeds.
struct Arm {
  std::string name;  ///< for messages and tables
  std::shared_ptr<const runfile::RecommendRun> run;
  std::size_t arm = 0;

  const runfile::TrainedSeed& seed(std::size_t i) const { return *run->result(arm, i); }
  std::string split() const { return run->request.at("data").value("split", ""); }
};

/// "RUN" or "RUN:ARM". A path that exists is a run, whatever it contains.
std::pair<std::string, std::string> parse_run(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || std::filesystem::exists(text)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// The arms that the command line names, in its order; all arms of a run that is given without one.
std::vector<Arm> read_arms(const std::vector<std::string>& texts) {
  std::vector<Arm> arms;
  for (const std::string& text : texts) {
    const auto [path, wanted] = parse_run(text);
    const auto run = std::make_shared<const runfile::RecommendRun>(runfile::read_recommend_run(path));
    CHECK(wanted.empty() || std::find(run->arms.begin(), run->arms.end(), wanted) != run->arms.end(),
          "{}: has no arm '{}', but {}{}", printable(path), printable(wanted, 60), fmt::join(run->arms, ", "),
          did_you_mean(wanted, run->arms));
    for (std::size_t i = 0; i < run->arms.size(); ++i) {
      if (!wanted.empty() && run->arms[i] != wanted) continue;
      arms.push_back({texts.size() == 1 ? run->arms[i] : path + ":" + run->arms[i], run, i});
      for (std::size_t seed = 0; seed < run->seeds.size(); ++seed) {
        CHECK(run->result(i, seed).has_value(), "{}: arm {} has no result of seed {}; train it, or name another arm",
              printable(path), run->arms[i], run->seeds[seed]);
      }
    }
  }
  CHECK(arms.size() >= 2, "compare: one arm alone ({}); give a run with several arms, or several runs",
        arms.empty() ? "none" : arms.front().name);
  return arms;
}

void check_comparable(const Arm& baseline, const Arm& candidate, bool by_position) {
  CHECK(baseline.split() == candidate.split() && baseline.run->users == candidate.run->users,
        "{} and {}: have different splits, {} and {}; only runs on the same split can be compared", baseline.name,
        candidate.name, baseline.split(), candidate.split());
  const auto& one = baseline.run->seeds;
  const auto& other = candidate.run->seeds;
  if (by_position) {
    CHECK(one.size() == other.size(), "{} and {}: have {} and {} seeds; pairs need as many", baseline.name,
          candidate.name, one.size(), other.size());
  } else {
    CHECK(one == other,
          "{} and {}: have different seeds, {} and {}; arms are paired by seed. --by-position pairs them in order, for "
          "runs that differ in the seed alone",
          baseline.name, candidate.name, fmt::join(one, " "), fmt::join(other, " "));
  }
}

/// One metric of two arms.
struct MetricComparison {
  std::string metric;
  analyses::SeedComparison seeds;
  analyses::Maybe<analyses::CrossedEstimate> gain;      ///< over seeds and users
  analyses::Maybe<analyses::CrossedEstimate> relative;  ///< of the logarithm
};

std::vector<float> ranks_of(const Arm& arm) {
  std::vector<float> ranks;
  for (std::size_t i = 0; i < arm.run->seeds.size(); ++i)
    ranks.insert(ranks.end(), arm.seed(i).rank.begin(), arm.seed(i).rank.end());
  return ranks;
}

MetricComparison compare(const Arm& baseline, const Arm& candidate, const std::string& name, std::uint64_t seed) {
  const RankingMetric metric = parse_ranking_metric(name);
  const std::size_t users = baseline.run->users.size();
  const auto pairs =
      analyses::paired_users(metric, ranks_of(baseline), ranks_of(candidate), baseline.run->seeds.size(), users);
  // Users with the same test item gain together if the model has learned something about this item.
  const std::vector<std::size_t> item(baseline.run->target.begin(), baseline.run->target.end());
  const std::vector<analyses::SignedGroup> all = {analyses::all_users(pairs)};
  analyses::Resampling resampling;
  resampling.seed = seed;
  return {name,
          analyses::compare_seeds(analyses::means_by_seed(pairs.baseline, users),
                                  analyses::means_by_seed(pairs.candidate, users), resampling),
          analyses::crossed_gain(pairs, all, analyses::GainScale::difference, item),
          analyses::crossed_gain(pairs, all, analyses::GainScale::log_ratio, item)};
}

std::string shown(const analyses::Measured& value, const char* format = "{:.4f}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string shown(const analyses::ArmSummary& arm) {
  return fmt::format("{:.4f} ({})", arm.mean, shown(arm.deviation));
}

void print(const Arm& baseline, const Arm& candidate, const std::vector<MetricComparison>& rows) {
  print_result("{} against {}, {} seeds, {} users\n", candidate.name, baseline.name, baseline.run->seeds.size(),
               baseline.run->users.size());
  print_result("{:<8} {:<17} {:<17} {:>8} {:>8} {:>8} {:>22} {:>8}\n", "metric", "baseline (sd)", "candidate (sd)",
               "change", "naive p", "signs p", "95% of the difference", "p");
  std::vector<std::string> missing;
  for (const MetricComparison& row : rows) {
    const auto& seeds = row.seeds;
    const std::string change = seeds.relative ? fmt::format("{:+.1f}%", 100 * *seeds.relative) : "-";
    const std::string interval =
        row.gain ? fmt::format("{:+.4f} to {:+.4f}", row.gain->interval.low, row.gain->interval.high) : "-";
    print_result("{:<8} {:<17} {:<17} {:>8} {:>8} {:>8} {:>22} {:>8}\n", row.metric, shown(seeds.baseline),
                 shown(seeds.candidate), change, shown(seeds.naive_p), shown(seeds.signs.p), interval,
                 row.gain ? fmt::format("{:.4f}", row.gain->p) : "-");
    for (const std::string& reason : {seeds.naive_p.reason(), seeds.signs.p.reason(), row.gain.reason()}) {
      if (!reason.empty() && std::find(missing.begin(), missing.end(), reason) == missing.end())
        missing.push_back(reason);
    }
  }
  for (const std::string& reason : missing) print_result("-: {}\n", reason);
}

OrderedJson to_json(const Arm& baseline, const Arm& candidate, const std::vector<MetricComparison>& rows) {
  OrderedJson metrics = OrderedJson::object();
  for (const MetricComparison& row : rows) {
    OrderedJson object = {{"seeds", analyses::to_json(row.seeds)}};
    analyses::put(object, "difference", row.gain);
    analyses::put(object, "log_ratio", row.relative);
    metrics[row.metric] = object;
  }
  return {{"baseline", baseline.name},
          {"candidate", candidate.name},
          {"seeds", {{"baseline", baseline.run->seeds}, {"candidate", candidate.run->seeds}}},
          {"users", baseline.run->users.size()},
          {"split", baseline.split()},
          {"metrics", metrics}};
}

void run(const CompareArguments& arguments, const GlobalOptions& global) {
  for (const std::string& metric : arguments.metrics) parse_ranking_metric(metric);
  const std::vector<Arm> arms = read_arms(arguments.runs);
  const Arm& baseline = arms.front();
  for (std::size_t i = 1; i < arms.size(); ++i) check_comparable(baseline, arms[i], arguments.by_position);
  OrderedJson all = OrderedJson::array();
  for (std::size_t i = 1; i < arms.size(); ++i) {
    std::vector<MetricComparison> rows;
    for (const std::string& metric : arguments.metrics) rows.push_back(compare(baseline, arms[i], metric, global.seed));
    if (global.json) {
      all.push_back(to_json(baseline, arms[i], rows));
    } else {
      print(baseline, arms[i], rows);
    }
  }
  if (global.json) print_result("{}\n", all.dump());
}

}  // namespace

void add_compare(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command =
      add_subcommand(app, "compare", "Compare the arms of recommender runs, paired by seed, with honest statistics",
                     "gainlens compare run",
                     "The first arm is the baseline of all others. A run without an arm stands for all of its\n"
                     "arms. Every number comes from the ranks of the test items.\n"
                     "  naive p   paired t over the seeds, the usual test; it takes the test users as fixed\n"
                     "  signs p   sign test over the seeds\n"
                     "  95%, p    of the difference, over other trainings and other users; users with the same test "
                     "item count as one\n"
                     "docs/inference.md says how often each of them is wrong.");
  auto arguments = std::make_shared<CompareArguments>();
  command->add_option("runs", arguments->runs, "Run folders or run.h5 files of train recommend, or RUN:ARM")
      ->required();
  command->add_option("--metrics", arguments->metrics, "Metrics to compare, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_flag("--by-position", arguments->by_position,
                    "Pair the seeds of two runs in order although they differ: a check that finds no difference");
  command->callback([arguments, &global, &action] { action = [arguments, &global] { run(*arguments, global); }; });
}

}  // namespace gainlens::cli
