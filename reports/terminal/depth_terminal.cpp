#include "reports/terminal/depth_terminal.h"

#include "analyses/depth.h"
#include "core/counted.h"
#include "core/quantity.h"

#include <fmt/format.h>

namespace gainlens::reports {
namespace {

using analyses::DepthAtLength;
using analyses::DepthRow;
using runfile::depth_median;
using runfile::depth_start;

constexpr std::size_t filter = static_cast<std::size_t>(runfile::DepthReading::filter),
                      gain_one = static_cast<std::size_t>(runfile::DepthReading::gain_one);

std::string in_percent(const runfile::DepthQuantiles& errors) {
  return fmt::format("{:+.0f}% [{:+.0f}, {:+.0f}]", 100 * errors[depth_median], 100 * errors.front(),
                     100 * errors.back());
}

std::string row_text(const DepthRow& row) {
  std::string text = fmt::format("{:>5}  {:>9.3g}  {:>7.3g}  {:>8.3g}  {:>6.3f}  {:>9.3g}  {:>9.3g}  {:>+7.3f}",
                                 row.layer, row.observed, row.bound / row.observed, row.gain[filter][depth_start],
                                 row.gain[gain_one][depth_start], 1 / row.variance[filter][depth_start],
                                 1 / row.variance[gain_one][depth_start], row.jacobian[depth_median]);
  if (row.truth) {
    text += fmt::format("  {:>18}  {:>8.3g}  {:>8.3g}", in_percent(row.truth->rule_error),
                        row.truth->of_sum[depth_median], row.truth->of_carried[depth_median]);
  }
  return text + "\n";
}

}  // namespace

std::string print_depth(const runfile::DepthRun& run) {
  const std::vector<DepthAtLength> lengths = analyses::depth_by_length(run);
  const DepthAtLength& longest = lengths.back();
  std::string text = fmt::format(
      "\nPrecision through the depth, {} tokens, {}: medians over coordinates and queries of the last quarter; the "
      "first P is the variance of the embedded text\n",
      format_count(longest.tokens), counted(longest.samples, "chunk"));
  text += fmt::format("{:>5}  {:>9}  {:>7}  {:>16}  {:>20}  {:>7}  {:>18}  {:>18}\n", "", "", "", "K", "lambda", "",
                      "diagonal rule", "drawn errors over");
  text += fmt::format("{:>5}  {:>9}  {:>7}  {:>8}  {:>6}  {:>9}  {:>9}  {:>7}  {:>18}  {:>8}  {:>8}\n", "layer", "O",
                      "bound/O", "filter", "gain-1", "filter", "gain-1", "J", "error [5%, 95%]", "P gain-1", "MLPs");
  for (const DepthRow& row : longest.layers) text += row_text(row);
  text += fmt::format("after  {:>9}  {:>7}  {:>8}  {:>6}  {:>9.3g}  {:>9.3g}\n", "", "", "", "",
                      1 / longest.last[filter][depth_start], 1 / longest.last[gain_one][depth_start]);
  text += "K of the last layer where the first P is";
  for (std::size_t start = 0; start < runfile::depth_starts.size(); ++start) {
    text += fmt::format("{} {:g} times that: {:.3g} (filter), {:.3g} (gain-one)", start == 0 ? "" : ";",
                        runfile::depth_starts[start], longest.layers.back().gain[filter][start],
                        longest.layers.back().gain[gain_one][start]);
  }
  return text + "\n";
}

}  // namespace gainlens::reports
