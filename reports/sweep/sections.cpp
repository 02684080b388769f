#include "reports/sweep/sections.h"

namespace gainlens::reports {

std::span<const Section<SweepRun>* const> sweep_sections() {
  static const Section<SweepRun>* const sections[] = {
      &summary_section,     &explore_section, &heads_section,       &context_section,    &sinks_section,
      &value_norms_section, &depth_section,   &differences_section, &neighbours_section, &checks_section,
      &caveats_section,     &runs_section,    &policies_section,    &files_section,      &verdicts_section,
      &gain_theory_section, &audit_section,
  };
  return sections;
}

}  // namespace gainlens::reports
