#include "reports/sweep/sections.h"

namespace gainlens::reports {

std::span<const Section<SweepRun>* const> sweep_sections() {
  static const Section<SweepRun>* const sections[] = {
      &summary_section(),     &runs_section(),     &verdicts_section(), &context_section(),     &neighbours_section(),
      &gain_theory_section(), &sinks_section(),    &heads_section(),    &value_norms_section(), &audit_section(),
      &differences_section(), &policies_section(), &checks_section(),   &caveats_section(),     &files_section(),
  };
  return sections;
}

}  // namespace gainlens::reports
