#include "reports/error_order/error_order_report.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ErrorBin;
using analyses::ErrorOrderReading;

constexpr std::size_t max_arms = 4;

/// A metric of a bin.
struct Metric {
  const char* name;  ///< of its data
  const char* title;
  double ErrorBin::*mean;
  Maybe<Interval> ErrorBin::*interval;
};
constexpr Metric metrics[] = {{"hit", "HR@10", &ErrorBin::hit, &ErrorBin::hit_interval},
                              {"gain", "NDCG@10", &ErrorBin::gain, &ErrorBin::gain_interval}};

/// percentile, mean, ends of the interval
Rows rows_of(const std::vector<ErrorBin>& bins, const Metric& metric, bool with_interval) {
  Rows rows;
  for (const ErrorBin& bin : bins) {
    rows.push_back(barred_point(100 * bin.percentile, bin.*metric.mean,
                                with_interval ? bin.*metric.interval : Maybe<Interval>::none("not drawn")));
  }
  return rows;
}

/// The precision is drawn last, above its rivals.
std::string curves(PlotScript& script, const ErrorOrderReading& reading, std::size_t arm, const Metric& metric) {
  std::string plot;
  for (std::size_t i = analyses::error_quantities; i-- > 0;) {
    const bool own = i == 0;
    const Rows rows = rows_of(reading.bins[i], metric, own);
    const std::string block = fmt::format("{}_{}_{}", metric.name, arm, i);
    script.data(block, rows);
    plot += barred_curve(block, rows, run_style(i), own ? BarredCurve{1.2, 0.6, 2.2} : BarredCurve{1.0, 0.35, 0.9});
  }
  plot.resize(plot.size() - 2);
  return plot;
}

}  // namespace

Maybe<Figure> error_order_figure(std::span<const ReadErrorOrder> arms) {
  if (arms.size() > max_arms)
    return Maybe<Figure>::none(fmt::format("{} arms; {} fit one figure", arms.size(), max_arms));
  std::vector<std::string> names;
  for (const std::string_view name : analyses::error_quantity_names) names.emplace_back(name);
  const auto rows = static_cast<double>(arms.size());
  PanelGrid grid{page_width, 0.3 + 2.05 * rows};
  grid.rows = static_cast<int>(arms.size());
  grid.columns = 2;
  grid.left = 0.6;
  grid.right = 0.16;
  grid.across = 0.7;
  grid.bottom = 0.42;
  PanelFigure script(grid, name_runs(names));
  script.line("set xlabel 'place of the users by the quantity, %' offset 0,0.5");
  script.line("set xrange [0:100]").line("set yrange [0:*]");
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    for (std::size_t i = 0; i < std::size(metrics); ++i) {
      const std::string arm_label = arms.size() > 1 ? ", " + plain(arms[arm].label()) : std::string();
      script.panel(std::size(metrics) * arm + i, plain(metrics[i].title) + arm_label);
      script.line("plot {}", curves(script, *arms[arm].reading, arm, metrics[i]));
    }
  }
  return script.figure("error-by-precision");
}

}  // namespace gainlens::reports
