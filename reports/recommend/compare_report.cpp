#include "reports/recommend/compare_report.h"

#include "core/counted.h"
#include "reports/comparison/decided_changes.h"
#include "reports/page/typography.h"
#include "reports/recommend/compared_arms.h"

namespace gainlens::reports {

std::span<const Section<ComparedArms>* const> compare_sections() {
  static const Section<ComparedArms>* const sections[] = {
      &decisions_section,       &compare_explorer_section, &gains_section,   &pooled_section,
      &learning_curves_section, &strata_section,           &reading_section,
  };
  return sections;
}

WrittenReport write_compare_report(std::span<const analyses::ArmComparison> comparisons,
                                   const std::vector<analyses::PooledComparison>& pooled,
                                   const std::filesystem::path& out, const std::vector<std::string>& notes) {
  const std::vector<ComparedArms> arms = compared_arms(comparisons, pooled);
  std::string list;
  for (const ComparedArms& one : arms) list += (list.empty() ? "" : "; ") + escape_html(one.title);
  MadeReport report = make_report<ComparedArms>(compare_sections(), arms);
  report.title = comparisons_title(comparisons);
  report.header = fmt::format(
      "<header>\n<h1>Does one arm recommend better?</h1>\n<p class=\"lead\">{} of recommenders, paired by seed: {}."
      "</p>\n{}</header>\n",
      counted(comparisons.size(), "comparison"), list, paragraphs_of(notes));
  if (!notes.empty()) report.summary["notes"] = notes;
  return write_files(report, out);
}

}  // namespace gainlens::reports
