#pragma once

#include "analyses/paired_units.h"

#include <cstddef>
#include <vector>

namespace gainlens::testing {

/// The runs of two arms of which only the means are known. @param baseline, candidate  [seed] same size
inline analyses::SeedMeans means_of_runs(const std::vector<double>& baseline, const std::vector<double>& candidate) {
  analyses::SeedMeans means{baseline, candidate, {}};
  for (std::size_t seed = 0; seed < baseline.size(); ++seed)
    means.differences.push_back(candidate.at(seed) - baseline[seed]);
  return means;
}

}  // namespace gainlens::testing
