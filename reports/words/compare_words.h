#pragma once

#include "analyses/seed_comparison.h"
#include "analyses/seed_unit.h"
#include "reports/measured.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// How a comparison of arms is printed, whatever its units are.
namespace gainlens::reports::compare_words {

/// Reasons of missing numbers, each once.
class Reasons {
 public:
  void add(const std::string& reason);
  std::string text() const;  ///< one line for each

 private:
  std::vector<std::string> reasons_;
};

/// "0.0312", "<.0001"; "-" if it is missing.
std::string p_number(const Measured& p);

/// What this number of seeds allows: an interval, a range without a level, or an interval over units alone.
/// @param ends  prints an interval
std::string ends_of(const Maybe<analyses::CrossedEstimate>& estimate,
                    const std::function<std::string(const Interval&)>& ends);
/// What stands behind an interval that is none of the stated ones: " (range)", " (users alone)".
std::string kind_of(const Maybe<analyses::CrossedEstimate>& estimate);
/// The heading of these intervals. @param noun  what a unit is called
std::string interval_heading(std::size_t seeds, const std::string& noun);
/// A line on what few seeds allow; empty from five on.
std::string notes_on_seeds(std::size_t seeds, const std::string& noun);
/// A score of a comparison and its tests over seeds.
struct NamedSeeds {
  std::string name;
  const analyses::SeedComparison* seeds;
};
/// A sentence on seeds that lie far from the others; empty if none does.
/// @param seeds  of the candidate, in order
std::string far_seeds(const std::vector<NamedSeeds>& scores, const std::vector<std::uint64_t>& seeds);
/// The same of a comparison.
/// @param gains  each with `seeds`, its tests over seeds
/// @param name_of  returns what readers call the score of a gain
template <typename Gain, typename NameOf>
std::string far_seeds(const std::vector<Gain>& gains, const std::vector<std::uint64_t>& seeds, const NameOf& name_of) {
  std::vector<NamedSeeds> scores;
  for (const Gain& gain : gains) scores.push_back({name_of(gain), &gain.seeds});
  return far_seeds(scores, seeds);
}
/// "0 to 2", or "0 to 2 with 7 to 9 in order" where they differ.
std::string paired_seeds(const std::vector<std::uint64_t>& baseline, const std::vector<std::uint64_t>& candidate);

}  // namespace gainlens::reports::compare_words
