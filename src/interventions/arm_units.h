#pragma once

#include "interventions/arm.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// The units of work of one document or prompt: the arms that start in one layer, together. The embedding is layer -1.
class ArmUnits {
 public:
  /// @param arms  must outlive this
  explicit ArmUnits(const std::vector<Arm>& arms);

  /// The places of a unit's arms among all.
  const std::vector<std::size_t>& places(std::int64_t layer) const { return units_.at(layer); }
  std::vector<const Arm*> arms(std::int64_t layer) const;
  /// The sites of arms with a mode. @param layers  empty: of all arms
  std::set<std::string> sites(Mode mode, const std::set<std::int64_t>& layers) const;
  /// Number of arms in these units.
  double work(const std::set<std::int64_t>& layers) const;

  /// Hands on the units that an earlier call has stored.
  /// @param stored  (layer) a std::optional with the unit
  /// @param take    (unit)
  /// @returns  the layers of the others
  template <typename Stored, typename Take>
  std::set<std::int64_t> take_stored(const Stored& stored, const Take& take) const {
    std::set<std::int64_t> missing;
    for (const auto& [layer, places] : units_) {
      if (const auto unit = stored(layer))
        take(*unit);
      else
        missing.insert(layer);
    }
    return missing;
  }

 private:
  const std::vector<Arm>& arms_;
  std::map<std::int64_t, std::vector<std::size_t>> units_;
};

/// "embedding", "layer 3".
std::string unit_words(std::int64_t layer);

}  // namespace gainlens::interventions
