#include "reports/recommend/paper_numbers.h"

#include <cmath>
#include <string_view>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::CrossedEstimate;

constexpr const char* missing_number = "–";

/// A number without the 0 before the point, and with a minus that is as wide as a plus.
std::string without_zero(std::string text) {
  const std::size_t start = text.find_first_of("0123456789");
  if (text.compare(start, 2, "0.") == 0) text.erase(start, 1);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

}  // namespace

std::string backbone_title(const std::string& backbone) {
  constexpr std::pair<std::string_view, std::string_view> titles[] = {
      {"sasrec", "SASRec"}, {"bert4rec", "BERT4Rec"}, {"hstu", "HSTU"}};
  for (const auto& [name, title] : titles) {
    if (backbone == name) return std::string(title);
  }
  return printable(backbone, 60);
}

std::string shown_title(const analyses::ArmComparison& comparison) {
  return fmt::format("{} against {} on {} ({})", comparison.candidate, comparison.baseline,
                     printable(comparison.data_set, 60), backbone_title(comparison.backbone));
}

std::string metric_number(double value) {
  return without_zero(fmt::format("{:.4f}", value));
}

std::string metric_number(double mean, double deviation) {
  return fmt::format("{} ({})", metric_number(mean), metric_number(deviation));
}

std::string metric_number(const analyses::ArmSummary& arm) {
  return arm.deviation ? metric_number(arm.mean, *arm.deviation) : metric_number(arm.mean);
}

std::string metric_number(const Maybe<analyses::ArmSummary>& arm, bool trained) {
  if (!arm) return missing_number;
  return trained ? metric_number(*arm) : metric_number(arm->mean);
}

std::string change_number(const Measured& share) {
  if (!share) return missing_number;
  std::string text = fmt::format("{:+.1f}%", 100 * *share);
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

std::string change_of_log(const Maybe<CrossedEstimate>& log_ratio) {
  return log_ratio ? change_number(std::expm1(log_ratio->value)) : missing_number;
}

std::string change_interval(const Interval& log_ratio) {
  return fmt::format("[{}, {}]", change_number(std::expm1(log_ratio.low)), change_number(std::expm1(log_ratio.high)));
}

std::string change_interval(const Maybe<CrossedEstimate>& log_ratio) {
  if (!log_ratio) return missing_number;
  if (log_ratio->interval) return change_interval(*log_ratio->interval);
  if (log_ratio->range) return change_interval(*log_ratio->range) + " (range)";
  return log_ratio->over_units ? change_interval(*log_ratio->over_units) + " (users alone)" : missing_number;
}

Maybe<Interval> change_ends(const Maybe<CrossedEstimate>& log_ratio) {
  const Maybe<Interval> ends = analyses::shown_ends(log_ratio);
  return ends ? Interval{std::expm1(ends->low), std::expm1(ends->high)} : ends;
}

std::string p_number(const Measured& p) {
  if (!p) return missing_number;
  if (*p < 0.0001) return "<.0001";
  return without_zero(fmt::format("{:.{}f}", *p, *p < 0.001 ? 4 : 3));
}

std::string p_number(const Maybe<CrossedEstimate>& estimate) {
  return p_number(stated_p(estimate));
}

}  // namespace gainlens::reports
