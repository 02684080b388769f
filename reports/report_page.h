#pragma once

#include "reports/captions.h"
#include "reports/figure.h"
#include "reports/results.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// A figure's place in the report.
struct FigureSlot {
  std::string name;  ///< stem of its files
  std::string title;
  Caption caption;
  analyses::Maybe<Figure> figure;
  std::string svg;  ///< as rendered; empty where there is no figure
};

/// Every figure of the report in its order, not yet rendered.
std::vector<FigureSlot> figure_slots(const Results& results);

/// report.html: one file that needs nothing else, neither files nor network nor scripts.
std::string report_page(const Results& results, const std::vector<FigureSlot>& figures);

}  // namespace gainlens::reports
