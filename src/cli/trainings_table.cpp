#include "cli/trainings_table.h"

#include "analyses/seed_comparison.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"

#include <map>

namespace gainlens::cli {
namespace {

/// What follows the name of a metric without the units that chose the best epoch.
constexpr std::string_view not_selected = "_not_selected";

}  // namespace

std::string mean_and_deviation(const std::vector<double>& values) {
  const analyses::ArmSummary summary = analyses::arm_summary(values);
  return fmt::format("{:.4f} ± {}", summary.mean, summary.deviation ? fmt::format("{:.4f}", *summary.deviation) : "-");
}

void print_trainings(std::span<const experiment::Outcome> outcomes, const TrainingsTable& table, bool json) {
  const auto& [metrics, unit, out] = table;
  if (json) {
    OrderedJson jobs = OrderedJson::array();
    for (const experiment::Outcome& one : outcomes)
      jobs.push_back({{"arm", one.job.label()},
                      {"seed", one.job.seed},
                      {"best_epoch", one.result.best_epoch},
                      {"metrics", one.result.test},
                      {"seconds", one.seconds}});
    write_result(json_text({{"run", out}, {"trainings", jobs}}) + "\n");
    return;
  }
  std::vector<std::string> labels;
  std::map<std::string, std::map<std::string, std::vector<double>>> values;
  std::map<std::string, double> seconds;
  for (const experiment::Outcome& one : outcomes) {
    if (!values.contains(one.job.label())) labels.push_back(one.job.label());
    for (const auto& [name, value] : one.result.test) values[one.job.label()][name].push_back(value);
    seconds[one.job.label()] += one.seconds;
  }
  std::string heading;
  for (const TrainedMetric& metric : metrics) heading += fmt::format("{:<16} ", metric.heading);
  print_result("{:<20} {:>5}  {}{}\n", "arm", "seeds", heading, "seconds");
  for (const std::string& label : labels) {
    const auto& of = values.at(label);
    std::string all;
    for (const TrainedMetric& metric : metrics)
      all += fmt::format("{:<16} ", mean_and_deviation(of.at(std::string(metric.name))));
    const std::string last(metrics.back().name);
    print_result("{:<20} {:>5}  {}{:.0f}\n", label, of.at(last).size(), all, seconds.at(label));
    const auto rest = of.find(last + std::string(not_selected));
    if (rest == of.end()) continue;
    if (metrics.size() == 1) {
      print_result("{:<20} {:>5}  {}, not selected on\n", "", "", mean_and_deviation(rest->second));
    } else {
      print_result("{:<20} {:>5}  {:<16} {}\n", "", "", "  not selected on", mean_and_deviation(rest->second));
    }
  }
  print_result("scores of every {}: {}/run.h5, which gainlens compare, report and check read\n", unit, printable(out));
}

}  // namespace gainlens::cli
