#pragma once

#include "reports/results.h"

#include <cstddef>
#include <span>
#include <string>

namespace gainlens::reports {

/// What a figure shows, with its numbers, and what it can and cannot show: plain sentences, symbols as in typography.h.
struct Caption {
  std::string shows;
  std::string can;     ///< what the figure is good for
  std::string cannot;  ///< what it must not be read as
};

/// Of one run, or of several overlaid.
Caption context_caption(std::span<const Results> runs);
Caption gain_theory_caption(std::span<const Results> runs);
Caption sink_vs_k_caption(std::span<const Results> runs);
/// @param group  index into Results::heatmaps
Caption heatmap_caption(std::span<const Results> runs, std::size_t group);
Caption value_norms_caption(std::span<const Results> runs);
Caption sink_lemma_caption(std::span<const Results> runs);

}  // namespace gainlens::reports
