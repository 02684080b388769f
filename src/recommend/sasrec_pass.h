#pragma once

#include "kernels/gradient/dropout.h"
#include "recommend/sasrec.h"

#include <cstdint>
#include <string_view>
#include <vector>

// Inner parts of SasRec, shared by its two source files.

namespace gainlens::recommend {

/// Places of a dropout in the model: numbers within the layer.
inline constexpr std::uint64_t places_per_layer = 4, embedding_place = 0, attention_place = 1, output_place = 2,
                               mlp_place = 3;

/// What goes from layer to layer.
struct SasRec::Stream {
  at::Tensor hidden;     ///< [row, width]
  at::Tensor precision;  ///< [row, width] lambda; undefined without a gain, and while the filter warms up
  at::Tensor key_bias;   ///< [row] log tau, of arms whose precision does not move; else undefined
};

/// Rows of the stream are positions of packed sequences. In a batch, all sequences have one length, and the hooks see
/// [batch, position, ..].
struct SasRec::Pass {
  const hooks::Hooks& hooks;
  const kernels::PackedBounds& bounds;
  std::int64_t batch = 0, positions = 0;    // 0: no batch, and no hooks
  hooks::AttentionOp* operation = nullptr;  // null: packed attention
  TrainingNoise noise = {};
  FilterTrace* trace = nullptr;

  bool is_batch() const { return batch > 0; }
  /// Shows rows [row, ..] to the hooks as [batch, position, ..].
  at::Tensor at(const hooks::Site& site, const at::Tensor& rows) const {
    if (!is_batch() || !hooks.wants(site)) return rows;
    std::vector<std::int64_t> sizes = rows.sizes().vec();
    sizes[0] = batch;
    sizes.insert(sizes.begin() + 1, positions);
    return hooks.at(site, rows.reshape(sizes)).flatten(0, 1);
  }
  at::Tensor at(std::int64_t layer, std::string_view site, const at::Tensor& rows) const {
    return is_batch() ? at(hooks::block_site(layer, site), rows) : rows;
  }
  kernels::Dropout dropout(double rate, std::int64_t layer, std::uint64_t place) const {
    const std::uint64_t number = static_cast<std::uint64_t>(layer) * places_per_layer + place;
    // The key of a place is as unlike those of other places and steps as random numbers are.
    return {rate, kernels::DropoutRow::mixed(noise.key ^ kernels::DropoutRow::mixed(number)), noise.first_row};
  }
  at::Tensor dropped(const at::Tensor& x, std::int64_t layer, std::uint64_t place) const {
    return kernels::dropped(x, dropout(noise.hidden_rate, layer, place));
  }
};

}  // namespace gainlens::recommend
