#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace gainlens {

/// What interventions would change by the slope of the output alone, and the exact change of some of them.
struct Attribution {
  struct Exact {
    std::size_t intervention;     ///< its place in the list
    std::vector<double> changes;  ///< [document]
  };

  std::vector<std::string> interventions;
  std::vector<std::string> kinds;  ///< [intervention] what is written where, in whichever layer: "attn.hook_z=zero"
  std::vector<bool> acts;          ///< [intervention] whether its estimate is more than rounding in some document
  std::vector<double> native;      ///< [document] the number that changes, of the model as it is
  std::vector<std::vector<double>> estimates;  ///< [intervention][document]
  std::vector<Exact> exact;                    ///< those that were drawn
  std::optional<double> other = {};            ///< of two prompts: the number of the run that values come from
};

}  // namespace gainlens
