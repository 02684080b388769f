#include "reports/estimators/estimator_words.h"
#include "reports/estimators/sections.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"

#include <array>

namespace gainlens::reports {
namespace {

using analyses::EstimatorAccuracy;
using analyses::EstimatorTruth;
using analyses::TruthScenario;

constexpr std::array drawn_scenarios = {TruthScenario::independent, TruthScenario::unit_variance,
                                        TruthScenario::dependent, TruthScenario::heavy_tails,
                                        TruthScenario::noisy_tokens};

struct EstimatorStyle {
  std::string_view colour;
  int marker;
  int dash;
};

/// In the order of bft::all_estimators.
constexpr std::array<EstimatorStyle, bft::all_estimators.size()> styles = {{
    {colour::blue, 7, 1},
    {colour::vermillion, 5, 2},
    {colour::green, 9, 1},
    {colour::orange, 11, 4},
    {colour::purple, 13, 1},
    {colour::ink, 6, 1},
    {colour::grey, 4, 3},
}};

std::vector<LegendEntry> legend_of() {
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < styles.size(); ++i)
    legend.push_back(
        {plain(estimator_in_words(bft::all_estimators[i])), styles[i].colour, styles[i].marker, styles[i].dash});
  return legend;
}

std::string block_name(TruthScenario scenario, std::size_t estimator) {
  return fmt::format("{}_{}", name_of(scenario), estimator);
}

/// n_eff, mean V / true variance (NaN where it is 0 or missing), coverage.
void add_data(PlotScript& script, const EstimatorTruth& truth, TruthScenario scenario) {
  for (std::size_t estimator = 0; estimator < styles.size(); ++estimator) {
    Rows rows;
    for (std::size_t i = 0; i < truth.options.n_eff.size(); ++i) {
      const EstimatorAccuracy& accuracy = truth.cell(scenario, i).estimators[estimator];
      const double ratio = 1 + value_or_nan(accuracy.bias);
      rows.push_back({truth.options.n_eff[i], ratio > 0 ? ratio : value_or_nan(Measured::none("V is 0")),
                      value_or_nan(accuracy.coverage)});
    }
    script.data(block_name(scenario, estimator), rows);
  }
}

/// @param column  2: ratio, 3: coverage
std::string plotted(TruthScenario scenario, int column) {
  std::string plot;
  for (std::size_t estimator = styles.size(); estimator-- > 0;) {  // reml, the paper's, on top
    const EstimatorStyle& style = styles[estimator];
    plot += fmt::format(
        ", ${} using 1:{} with linespoints pointtype {} pointsize 0.35 linewidth 1.1 dashtype {} linecolor rgb '{}' "
        "notitle",
        block_name(scenario, estimator), column, style.marker, style.dash, style.colour);
  }
  return plot;
}

}  // namespace

Maybe<Figure> estimators_figure(const EstimatorTruth& truth) {
  if (truth.options.n_eff.size() < 2) return Maybe<Figure>::none("one n_eff alone");
  PanelGrid grid{page_width, 3.4};
  grid.rows = 2;
  grid.columns = static_cast<int>(drawn_scenarios.size());
  grid.left = 0.56;
  grid.across = 0.14;
  grid.down = 0.34;
  PanelFigure script(grid, legend_of());
  for (const TruthScenario scenario : drawn_scenarios) add_data(script, truth, scenario);
  const double low = truth.options.n_eff.front(), high = truth.options.n_eff.back();
  script.data("band", {{low / 2, 0.95 - analyses::coverage_margin, 0.95 + analyses::coverage_margin},
                       {high * 2, 0.95 - analyses::coverage_margin, 0.95 + analyses::coverage_margin}});
  script.line("set logscale x").line("set xrange [{:.9g}:{:.9g}]", low / 1.25, high * 1.25);
  script.line("set logscale y").line("set yrange [0.1:100]").line("set xtics (1, 10, 100)");
  for (std::size_t i = 0; i < drawn_scenarios.size(); ++i) {
    script.panel(i, scenario_in_words(drawn_scenarios[i]));
    script.line("set ytics (\"0.1\" 0.1, \"1\" 1, \"10\" 10, \"100\" 100)");
    if (i == 0) script.line("set ylabel 'mean {{/:Italic V}} / true variance' offset 1.6,0");
    if (i > 0)
      script.line("set format y ''").line("set ytics (\"\" 0.1, \"\" 1, \"\" 10, \"\" 100)").line("unset ylabel");
    script.line("plot 1 with lines linewidth 0.8 linecolor rgb '{}' notitle{}", colour::grey,
                plotted(drawn_scenarios[i], 2));
  }
  script.line("unset logscale y").line("set yrange [0.5:1.0]");
  script.line("set xlabel '{{/:Italic n}}_{{eff}}' offset 0,0.5");
  for (std::size_t i = 0; i < drawn_scenarios.size(); ++i) {
    script.line("unset label");
    if (i == 0) {
      script.line("set ytics (\"50%%\" 0.5, \"75%%\" 0.75, \"95%%\" 0.95)");
      script.line("set ylabel 'coverage' offset 1.4,0");
    } else {
      script.line("set ytics (\"\" 0.5, \"\" 0.75, \"\" 0.95)").line("unset ylabel");
    }
    script.line("plot $band using 1:2:3 with filledcurves linecolor rgb '{}' notitle{}", colour::faint,
                plotted(drawn_scenarios[i], 3));
  }
  return script.figure("estimators");
}

}  // namespace gainlens::reports
