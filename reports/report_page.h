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
std::vector<FigureSlot> figure_slots(const Report& report);

/// report.html: one file that needs nothing else, neither files nor network nor scripts; light or dark as the reader's
/// system says, light in print.
std::string report_page(const Report& report, const std::vector<FigureSlot>& figures);

}  // namespace gainlens::reports
