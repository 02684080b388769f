#pragma once

#include "interventions/place.h"
#include "interventions/write.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// Tensors of sites, by name.
using SiteValues = std::map<std::string, at::Tensor>;

/// A write that has found its place.
struct PlacedWrite {
  Write write;
  Place place;
  at::Tensor values;  ///< of Mode::file: the whole site, [1, position, ..] in the compute dtype; else undefined
};

/// An intervention on a model: one row of the result.
struct Arm {
  std::string text;
  std::vector<PlacedWrite> writes;
  bool control = false;         ///< nobody asked for it
  bool may_do_nothing = false;  ///< one of many units, of which some may be dead: it is measured as 0, and no error

  /// "intervention 'TEXT'", for messages.
  std::string named() const;

  /// The layer whose start a pass with this arm can be continued from: all before it is as without the arm.
  std::int64_t start() const;
  /// The first position whose stream may change.
  std::int64_t first_position() const;
  /// What the writes put where, in whichever layer: arms of one kind are compared with each other.
  std::string kind() const;
  /// The sites of writes with this mode.
  std::set<std::string> sites(Mode mode) const;
};

/// @param length  tokens of a document
/// @param dtype   of the computation
/// @throws InvalidArgument  as place_of(); a file without the site, or of another shape, NaN in it
Arm place_arm(const Intervention& intervention, const models::DecoderConfig& config,
              const std::vector<hooks::SiteShape>& sites, std::int64_t length, at::ScalarType dtype);

/// What stands at the place of a write instead of its present values, of the same shape and type.
/// @param part   of the site, as Place::part() gives it
/// @param means  of sites, [1, 1, ..]
/// @param donor  sites of another document, or of the other prompt, whole
/// @throws InvalidArgument  a knockout leaves a query no key (names it)
at::Tensor new_values(const PlacedWrite& placed, const at::Tensor& part, const SiteValues& means,
                      const SiteValues& donor);

}  // namespace gainlens::interventions
