#include "cli/application.h"

#include "analyses/arm_pairs.h"
#include "analyses/gain_by_condition.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/nearest.h"
#include "core/plain_text.h"
#include "core/ranking_metrics.h"
#include "reports/recommend/gain_by_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

struct GainByArguments {
  std::vector<std::string> runs;  // "0.25=RUN"
  std::string baseline = "plain";
  std::vector<std::string> arms;  // none: every arm but the baseline
  std::vector<std::string> metrics = {"hr@10", "ndcg@10"};
  std::string axis = "condition";
  std::string out;
};

struct GivenCondition {
  double condition;
  std::string run;
};

GivenCondition parse_condition(const std::string& text) {
  const std::size_t sign = text.find('=');
  const auto condition = sign == std::string::npos ? std::nullopt : finite_number(text.substr(0, sign));
  CHECK(condition, "'{}': must be a number, '=' and the folder of a run, such as 0.25=run", printable(text, 200));
  constexpr double least = 1e-9, most = 1e9;  // a figure has one axis for all
  CHECK(*condition == 0 || (std::abs(*condition) >= least && std::abs(*condition) <= most),
        "'{}': the size of the number must be 0, or {:g} to {:g}", printable(text, 200), least, most);
  return {*condition, text.substr(sign + 1)};
}

/// The pairs of a run: each candidate that was asked for with the baseline.
std::vector<analyses::ArmPair> pairs_of(const GivenCondition& given, const GainByArguments& arguments) {
  const auto run = given_recommend_run(given.run);
  for (const std::string& wanted : arguments.arms) {
    CHECK(std::ranges::count(run->arms, wanted) > 0, "{}: has no arm '{}', but {}{}", printable(given.run),
          printable(wanted, 60), fmt::join(run->arms, ", "), did_you_mean(wanted, run->arms));
  }
  std::vector<analyses::RecommenderArm> arms;
  for (std::size_t i = 0; i < run->arms.size(); ++i) {
    const std::string& name = run->arms[i];
    const bool wanted = arguments.arms.empty() || std::ranges::count(arguments.arms, name) > 0;
    if (wanted || name == arguments.baseline) arms.push_back({given.run, run, i});
  }
  analyses::name_arms(arms);
  return analyses::pair_arms(arms, {.baseline = arguments.baseline});
}

void gain_by(const GainByArguments& arguments, const GlobalOptions& global) {
  CHECK(std::ranges::count(arguments.arms, arguments.baseline) == 0, "--arm: {} is the baseline",
        printable(arguments.baseline, 60));
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  analyses::RecommenderOptions options;
  options.metrics.clear();
  for (const std::string& metric : arguments.metrics) options.metrics.push_back(parse_ranking_metric(metric));
  options.resampling.seed = options.resamples.seed = global.seed;
  options.paper = analyses::parse_paper_data_set("none");
  std::vector<analyses::ConditionGain> gains;
  std::vector<fs::path> known;
  for (const std::string& text : arguments.runs) {
    const GivenCondition given = parse_condition(text);
    known.push_back(fs::weakly_canonical(given.run));
    CHECK(std::ranges::count(known, known.back()) == 1, "{}: is given for two conditions", printable(given.run));
    for (const analyses::ArmPair& pair : pairs_of(given, arguments))
      gains.push_back({given.condition, analyses::compare_arms(pair, options), {}});
  }
  const std::vector<analyses::GainByCondition> all = analyses::gains_by_condition(std::move(gains));
  std::vector<reports::CandidateGains> candidates;
  candidates.reserve(all.size());
  for (const analyses::GainByCondition& one : all) candidates.push_back({&one, arguments.axis});
  if (!arguments.out.empty())
    tell_written(reports::write_gain_by_report(candidates, arguments.out), arguments.out, "gain-by");
  if (!global.json) {
    print_result("{}", reports::print_gain_by(candidates));
    return;
  }
  OrderedJson json = {{"axis", arguments.axis}, {"candidates", OrderedJson::array()}};
  for (const analyses::GainByCondition& one : all) json["candidates"].push_back(to_json(one));
  print_result("{}\n", json_text(json, 2));
}

}  // namespace

void add_gain_by(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("gain-by"), "gainlens gain-by 1=dense 0.25=thin --axis 'share of items kept' --out page",
      "Each run was trained under one condition of its data, which the number in front of it names. All arms of a run\n"
      "are compared with its baseline as `gainlens compare` does it: interval and p are over other seeds and other\n"
      "users. Holm's p counts all rows. make-histories makes such data.\n"
      "docs/analyses/when-does-it-help.md is an example.");
  auto arguments = std::make_shared<GainByArguments>();
  command->add_option("runs", arguments->runs, "NUMBER=RUN: the condition, and the folder of a run or its run.h5")
      ->required();
  command->add_option("--baseline", arguments->baseline, "Arm that the others are compared with")
      ->capture_default_str();
  add_name_list(*command, "--arm", arguments->arms, "Arms to compare, separated by commas (default: all others)");
  add_name_list(*command, "--metrics", arguments->metrics,
                fmt::format("Metrics, separated by commas (default: {})", fmt::join(arguments->metrics, ",")));
  command->add_option("--axis", arguments->axis, "What the numbers are, for figure and table")->capture_default_str();
  command->add_option(
      "--out", arguments->out,
      "Folder for report.html, summary.json, the figure, and a table as CSV; made if it does not exist");
  set_action(*command, action, [arguments, &global] { gain_by(*arguments, global); });
}

}  // namespace gainlens::cli
