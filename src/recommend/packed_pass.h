#pragma once

#include "bft/filter_pass.h"
#include "hooks/hooked_model.h"
#include "hooks/hooks.h"
#include "kernels/gradient/dropout.h"
#include "kernels/gradient/packed_attention.h"
#include "recommend/backbone.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

// One pass of a backbone, and what its layers do with it.

namespace gainlens::recommend {

/// Places of a dropout in the model: numbers within the layer.
inline constexpr std::uint64_t places_per_layer = 4, embedding_place = 0, attention_place = 1, output_place = 2,
                               mlp_place = 3;

/// One pass. Rows of the stream are positions of packed sequences; hooks see them as [batch, position, ..].
struct PackedPass {
  const hooks::Hooks& hooks;
  const kernels::PackedBounds& bounds;
  std::int64_t batch, positions;            // packed sequences: a batch of one, with all their positions
  bool equal_lengths = false;               // every sequence of the batch has `positions`
  hooks::AttentionOp* operation = nullptr;  // null: packed attention
  bool training = false;
  TrainingNoise noise = {};
  std::vector<at::Tensor>* stretch_sums = nullptr;
  const AttentionWatcher* watch = nullptr;
  at::Tensor times = {};      // as in PackedSequences
  at::Tensor last_rows = {};  // int64 [sequence]: the only rows that are wanted, without hooks; undefined: all are

  bool shows(const hooks::Site& site) const { return !hooks.empty() && hooks.wants(site); }
  at::Tensor at(const hooks::Site& site, const at::Tensor& rows) const {
    if (!shows(site)) return rows;
    std::vector<std::int64_t> sizes = rows.sizes().vec();
    sizes[0] = batch;
    sizes.insert(sizes.begin() + 1, positions);
    return hooks.at(site, rows.reshape(sizes)).flatten(0, 1);
  }
  at::Tensor at(std::int64_t layer, std::string_view site, const at::Tensor& rows) const {
    return hooks.empty() ? rows : at(hooks::block_site(layer, site), rows);
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

/// A pass over packed histories.
/// @param sequences, hooks  outlive the pass
inline PackedPass pass_over(const PackedSequences& sequences, const hooks::Hooks& hooks,
                            const RunOptions& options = {}) {
  return {.hooks = hooks,
          .bounds = sequences.begin,
          .batch = 1,
          .positions = sequences.positions(),
          .training = options.training,
          .noise = options.noise,
          .stretch_sums = options.stretch_sums,
          .watch = options.watch,
          .times = sequences.times};
}

/// The rows of queries of a layer: all of them, or the last of each sequence.
inline at::Tensor query_rows(const at::Tensor& rows, const at::Tensor& last_rows) {
  return last_rows.defined() ? rows.index_select(0, last_rows) : rows;
}

/// The sites of the filter in a layer of a pass.
class LayerSites : public bft::FilterSites {
 public:
  LayerSites(const PackedPass& pass, std::int64_t layer) : pass_(pass), layer_(layer) {}
  at::Tensor at(std::string_view site, const at::Tensor& rows) const override { return pass_.at(layer_, site, rows); }
  bool wants(std::string_view site) const override {
    return !pass_.hooks.empty() && pass_.shows(hooks::block_site(layer_, site));
  }
  bool replaces(std::string_view site) const override {
    return !pass_.hooks.empty() && pass_.hooks.replaces(hooks::block_site(layer_, site));
  }

 private:
  const PackedPass& pass_;
  std::int64_t layer_;
};

}  // namespace gainlens::recommend
