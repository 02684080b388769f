#pragma once

#include "analyses/attributions.h"
#include "reports/page/csv_table.h"

#include <span>
#include <string>

namespace gainlens::reports {

/// The largest estimates as a table. Before it stands how well estimates of each kind order the exact changes.
/// @param number  what changes: "mean loss in nats"
std::string print_attributions(const analyses::Attributions& attributions, const std::string& number);

/// Estimates of a text, or of one direction of two prompts.
struct NamedAttributions {
  std::string direction;  ///< "denoising"; of a text: ""
  analyses::Attributions estimates;
};

/// All estimates, in the order of the interventions.
CsvTable attributions_table(std::span<const NamedAttributions> all);

}  // namespace gainlens::reports
