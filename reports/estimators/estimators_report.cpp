#include "reports/estimators/estimators_report.h"

#include "reports/estimators/estimator_words.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/page/page_style.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>

#include <array>

namespace gainlens::reports {
namespace {

using analyses::EstimatorAccuracy, analyses::EstimatorTruth, analyses::TruthCell, analyses::TruthScenario;

/// What the report of `gainlens estimators` is about.
struct JudgedEstimators {
  const EstimatorTruth* truth;

  std::string label() const { return "estimators"; }
};
using Judged = std::span<const JudgedEstimators>;

PaperTable trust_table(const EstimatorTruth& truth) {
  PaperTable table{"estimators-trust",
                   "At which n_eff an estimator can be trusted. Variance: the mean of V is within 10% of the true "
                   "variance. Interval: e ± 1.96 sqrt(V) holds the target in 93% to 97% of draws.",
                   {{"", true}},
                   {}};
  for (const bft::Estimator estimator : bft::all_estimators)
    table.columns.push_back({estimator_in_words(estimator), true});
  for (const TruthScenario scenario : analyses::truth_scenarios) {
    if (scenario == TruthScenario::equal_values) continue;
    table.rows.push_back({scenario_in_words(scenario)});
    std::vector<std::string> variance = {"variance"}, interval = {"interval"};
    for (const bft::Estimator estimator : bft::all_estimators) {
      const analyses::TrustedAt& at = truth.trusted(scenario, estimator);
      variance.push_back(n_eff_in_words(at.unbiased, truth.options.n_eff));
      interval.push_back(n_eff_in_words(at.covering, truth.options.n_eff));
    }
    table.rows.push_back(std::move(variance));
    table.rows.push_back(std::move(interval));
  }
  return table;
}

std::vector<Block> trust_blocks(Judged judged) {
  const EstimatorTruth& truth = *judged.front().truth;
  std::vector<Block> all = {trust_table(truth)};
  const std::size_t last = truth.options.n_eff.size() - 1;
  all.push_back(paragraph(fmt::format(
      "dependent: at n_eff = {:g} the mean of e is {:+.2f} deviations of the values above their mean, because the "
      "query "
      "gives more weight to larger values. The intervals are judged about the mean of e. They say nothing of the mean "
      "of the values.",
      truth.options.n_eff[last], truth.cell(TruthScenario::dependent, last).shift)));
  all.push_back(paragraph(fmt::format(
      "noisy tokens: at n_eff = {:g} the noise moves the mean of e by {:+.3f} deviations of the values, because it "
      "reaches scores and values together. This is part of the error of e. No estimator of a variance sees it.",
      truth.options.n_eff[last], truth.cell(TruthScenario::noisy_tokens, last).shift)));
  return all;
}

const Section<JudgedEstimators> trust_section = {.name = "trust",
                                                 .title = "Which to trust when",
                                                 .question = "Which estimator is right at which n_eff?",
                                                 .files = {"estimators-trust"},
                                                 .blocks = trust_blocks};

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

Caption caption_of() {
  return {
      "Above: mean of the estimated variance V over draws, divided by the true variance of e. Below: share of draws in "
      "which e ± 1.96 sqrt(V) holds the target; the grey band is 93% to 97%. V = 0 and what lies outside the axes is "
      "not drawn. Where scores have no noise, the weight-free delta method is REML.",
      "It shows which estimator is right on average, and whose interval holds its level, at which n_eff.",
      "The scenarios are simple: values of different keys are independent. A trained model is none of them."};
}

/// "bias" or "coverage" at some n_eff, and then the spread at the same.
PaperTable accuracy_table(const EstimatorTruth& truth) {
  const auto positions = shown_positions(truth.options.n_eff);
  PaperTable table{"estimators",
                   "Bias: mean of V less the true variance, as a share of the latter; ×N where V is above three times "
                   "the true variance. Coverage: share of draws in which e ± 1.96 sqrt(V) holds the target. Spread: "
                   "standard deviation of V over draws, divided by the true variance. Columns are n_eff.",
                   {{"estimator", true}},
                   {},
                   {{"", 1}}};
  for (const char* const heading : {"bias", "coverage", "spread"}) {
    table.spans.push_back({heading, positions.size()});
    for (const std::size_t i : positions) table.columns.push_back({n_eff_number(truth.options.n_eff[i])});
  }
  for (const TruthScenario scenario : analyses::truth_scenarios) {
    if (scenario == TruthScenario::equal_values) continue;
    table.rows.push_back({fmt::format("{}: {}; target: {}", scenario_in_words(scenario), description_of(scenario),
                                      target_of(scenario))});
    for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
      std::vector<std::string> row = {estimator_in_words(bft::all_estimators[estimator])};
      const auto at = [&](std::size_t i) -> const EstimatorAccuracy& {
        return truth.cell(scenario, i).estimators[estimator];
      };
      for (const std::size_t i : positions) row.push_back(bias_number(at(i).bias));
      for (const std::size_t i : positions) row.push_back(coverage_number(at(i).coverage));
      for (const std::size_t i : positions) row.push_back(spread_number(at(i).spread));
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

PaperTable equal_values_table(const EstimatorTruth& truth) {
  const auto positions = shown_positions(truth.options.n_eff);
  PaperTable table{"equal-values",
                   "All values are equal, so the true variance is 0. V divided by sigma0^2: what the prior alone "
                   "gives. Columns are n_eff.",
                   {{"estimator", true}},
                   {}};
  for (const std::size_t i : positions) table.columns.push_back({n_eff_number(truth.options.n_eff[i])});
  for (std::size_t estimator = 0; estimator < bft::all_estimators.size(); ++estimator) {
    std::vector<std::string> row = {estimator_in_words(bft::all_estimators[estimator])};
    for (const std::size_t i : positions) {
      const auto& v = truth.cell(TruthScenario::equal_values, i).estimators[estimator].mean_variance;
      // Rounding of a sum of weights leaves about 1e-32.
      row.push_back(v && *v < 1e-20 * truth.prior_variance ? "0" : v ? shown(*v / truth.prior_variance) : "–");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::vector<Block> accuracy_blocks(Judged judged) {
  const EstimatorTruth& truth = *judged.front().truth;
  return {CaptionedFigure{"estimators", "Estimated and true variance", caption_of(), estimators_figure(truth)},
          accuracy_table(truth), equal_values_table(truth)};
}

std::vector<CsvTable> accuracy_tables(const JudgedEstimators& judged) {
  CsvTable table{"estimators",
                 {"scenario", "n_eff", "true_variance", "true_variance_error", "shift", "estimator", "undefined",
                  "mean_variance", "bias", "bias_error", "spread", "coverage", "coverage_error"},
                 {}};
  for (const TruthCell& one : judged.truth->cells) {
    for (const EstimatorAccuracy& accuracy : one.estimators)
      table.rows.push_back({std::string(name_of(one.scenario)), one.n_eff, one.true_variance, one.truth_error,
                            one.shift, std::string(bft::name_of(accuracy.estimator)), accuracy.undefined,
                            cell(accuracy.mean_variance), cell(accuracy.bias), cell(accuracy.bias_error),
                            cell(accuracy.spread), cell(accuracy.coverage), cell(accuracy.coverage_error)});
  }
  return {table};
}

const Section<JudgedEstimators> accuracy_section = {
    .name = "accuracy",
    .title = "Bias, coverage and spread",
    .question = "Is the estimated variance right?",
    .files = {"estimators", "equal-values"},
    .keys = {"estimators"},
    .blocks = accuracy_blocks,
    .add_json = [](const JudgedEstimators& judged, OrderedJson& json) { json["estimators"] = to_json(*judged.truth); },
    .tables = accuracy_tables};

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

WrittenReport write_estimators_report(const analyses::EstimatorTruth& truth, const std::filesystem::path& out) {
  const JudgedEstimators judged[] = {{&truth}};
  const Section<JudgedEstimators>* const sections[] = {&accuracy_section, &trust_section};
  MadeReport report = make_report<JudgedEstimators>(sections, judged);
  report.title = page_title("estimates of the variance", "simulated queries");
  report.header = fmt::format(
      "<header>\n<h1>Which estimate of the variance is right?</h1>\n<p class=\"lead\">Seven estimators on simulated "
      "queries that see {} keys: {} draws of each scenario and effective number of keys, head size {}, seed {}."
      "</p>\n</header>\n",
      analyses::truth_keys, truth.options.draws, truth.options.dimensions, truth.options.seed);
  return write_files(report, out);
}

}  // namespace gainlens::reports
