#pragma once

#include "hooks/site.h"
#include "interventions/write.h"
#include "models/decoder/decoder_config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gainlens::interventions {

/// Where a write acts in a model.
struct Place {
  hooks::Site site;
  /// The layer that computes the site; -1: the embedding; the number of layers: the final norm.
  std::int64_t layer = 0;
  std::int64_t position_axis = 1;
  std::optional<std::int64_t> head_axis;
  std::int64_t heads = 0;      ///< along head_axis: KV heads at the sites of keys and values, else query heads
  bool kv_heads = false;       ///< which of the two
  bool sums_positions = true;  ///< whether the site has a mean over positions: hook_pattern has none
  bool sink_logits = false;    ///< whether the weights of a query and the mass of a learned sink sum to 1

  /// The part of the site's tensor that the write changes: a view. A knockout changes the weights of all keys.
  at::Tensor part(const at::Tensor& tensor, const Write& write) const;
};

/// Finds the place of a write, and checks that it can act there.
/// @param sites   of the model
/// @param length  tokens of a document
/// @throws InvalidArgument  no such site (nearest named), a layer of linear attention, a gate in a model without gates,
///     hook_logits, a head, position or key out of range, a head at a site without heads, a key at
///     another site than hook_pattern, a mean of hook_pattern, a knockout without keys
Place place_of(const Write& write, const models::DecoderConfig& config, const std::vector<hooks::SiteShape>& sites,
               std::int64_t length);

/// Whether a site can be replaced by what stands there without changing a bit of the result. At other sites a pass that
/// is watched takes another way, which rounds otherwise.
bool replacing_keeps_bits(const hooks::Site& site);

}  // namespace gainlens::interventions
