#pragma once

#include "reports/results.h"

#include <string>

namespace gainlens::reports {

/// What a figure shows, with its numbers, and what it cannot show: plain sentences.
struct Caption {
  std::string shows;
  std::string cannot;
};

Caption context_caption(const Results& results);
Caption gain_theory_caption(const Results& results);
Caption sink_vs_k_caption(const Results& results);
Caption heatmap_caption(const HeatmapGroup& group, const Results& results);
Caption value_norms_caption(const Results& results);

}  // namespace gainlens::reports
