#include "cli/training_options.h"

#include "analyses/seed_comparison.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"

#include <algorithm>
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

void add_spread_option(CLI::App& command, std::string& spread) {
  command
      .add_option("--spread", spread,
                  "What several processes share (torchrun, srun): batches (each works on a part of every batch), or "
                  "seeds (each does whole trainings)")
      ->capture_default_str();
}

experiment::Spread parse_spread(const std::string& spread) {
  CHECK(spread == "batches" || spread == "seeds", "--spread: '{}'; must be batches or seeds", printable(spread, 60));
  return spread == "seeds" ? experiment::Spread::seeds : experiment::Spread::batches;
}

std::string knob_option(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Json knob_value(const std::string& text) {
  // JSON has no number that begins with its point.
  const std::string number = text.starts_with('.') ? "0" + text : text;
  const Json parsed = Json::parse(number, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
}

void add_no_jacobian(CLI::App& command, bool& given, const std::string& group) {
  command.add_flag("--no-jacobian", given, "The same as --jacobian none")->group(group);
}

void read_short_form(bool given, const std::string& flag, const std::string& key, const std::string& value,
                     std::map<std::string, std::string>& knobs) {
  if (!given) return;
  std::string& text = knobs[key];
  CHECK(text.empty() || text == value, "{}: {} {} is given too", flag, knob_option(key), printable(text, 60));
  text = value;
}

void read_no_jacobian(bool given, std::map<std::string, std::string>& knobs) {
  read_short_form(given, "--no-jacobian", "jacobian", "none", knobs);
}

std::string filter_option(const std::string& key, bool no_jacobian) {
  return no_jacobian && key == "jacobian" ? "--no-jacobian" : knob_option(key);
}

}  // namespace gainlens::cli
