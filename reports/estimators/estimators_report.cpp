#include "reports/estimators/estimators_report.h"

#include "reports/estimators/sections.h"
#include "reports/page/page_style.h"

namespace gainlens::reports {

std::span<const Section<JudgedEstimators>* const> estimator_sections() {
  static const Section<JudgedEstimators>* const sections[] = {&accuracy_section, &trust_section};
  return sections;
}

WrittenReport write_estimators_report(const analyses::EstimatorTruth& truth, const std::filesystem::path& out) {
  const JudgedEstimators judged[] = {{&truth}};
  MadeReport report = make_report<JudgedEstimators>(estimator_sections(), judged);
  report.title = page_title("estimates of the variance", "simulated queries");
  report.header = fmt::format(
      "<header>\n<h1>Which estimate of the variance is right?</h1>\n<p class=\"lead\">Seven estimators on simulated "
      "queries that see {} keys: {} draws of each scenario and effective number of keys, head size {}, seed {}."
      "</p>\n</header>\n",
      analyses::truth_keys, truth.options.draws, truth.options.dimensions, truth.options.seed);
  return write_files(report, out);
}

}  // namespace gainlens::reports
