#include "reports/recommend/compare_report.h"

#include "core/counted.h"
#include "reports/page/typography.h"
#include "reports/recommend/sections.h"

#include <algorithm>

namespace gainlens::reports {

std::span<const Section<ComparedArms>* const> compare_sections() {
  static const Section<ComparedArms>* const sections[] = {
      &gains_section(), &learning_curves_section(), &strata_section(), &pooled_section(), &reading_section(),
  };
  return sections;
}

WrittenReport write_compare_report(std::span<const analyses::ArmComparison> comparisons,
                                   const std::vector<analyses::PooledComparison>& pooled,
                                   const std::filesystem::path& out) {
  std::vector<ComparedArms> arms;
  std::string list;
  for (const analyses::ArmComparison& comparison : comparisons) {
    const auto same = [&](const analyses::ArmComparison& other) { return other.title() == comparison.title(); };
    const bool several = std::count_if(comparisons.begin(), comparisons.end(), same) > 1;
    arms.push_back({comparison, &pooled, several ? comparison.title_with_split() : comparison.title()});
    list += fmt::format("{}{}", list.empty() ? "" : "; ", escape_html(arms.back().title));
  }
  MadeReport report = make_report<ComparedArms>(compare_sections(), arms);
  report.title = "gainlens compare";
  report.header = fmt::format(
      "<header>\n<h1>Does one arm recommend better?</h1>\n<p class=\"lead\">{} of recommenders, paired by seed: {}."
      "</p>\n</header>\n",
      counted(comparisons.size(), "comparison"), list);
  return write_files(report, out);
}

}  // namespace gainlens::reports
