#pragma once

#include "bft/filter_pass.h"
#include "models/decoder/decoder.h"
#include "models/decoder/key_value_cache.h"
#include "models/decoder/rope.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::models {

/// @throws InvalidArgument  ids that are no int64 [batch, position], none, or one outside the vocabulary
void check_ids(const at::Tensor& ids, std::int64_t vocabulary);

/// Positions [begin, begin + count) of a sequence: those of some consecutive rows of a pass.
struct PositionRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;

  std::int64_t end() const { return begin + count; }
};

/// The state of one request during the pass.
struct Decoder::Pass {
  const hooks::ForwardRequest& request;
  const hooks::Hooks& hooks;
  hooks::AttentionOp& attention;
  std::vector<RopeTables> ropes = {};            // [0] of global layers, [1] of layers with a window
  at::Tensor key_bias = {}, distance_bias = {};  // ALiBi: one of the two, or neither
  at::Tensor hidden = {};
  std::vector<PositionRange> ranges = {};        // of the positions of a sequence; several in a cached pass
  std::span<const CachedSegment> segments = {};  // of a cached pass; else empty
  bft::FilterState filter = {};                  // its rows are the positions of all sequences
  bft::ObservedMoments observed = {};            // of this layer, for a gain that acts in the stream
  std::shared_ptr<TrainingRun> recomputed = {};  // of a pass whose layers run again in the backward pass; else null

  at::Tensor at(std::int64_t layer, std::string_view site, at::Tensor tensor) const {
    return hooks.at(hooks::block_site(layer, site), std::move(tensor));
  }
};

/// The sites of the filter in a layer of a pass. Rows become [batch, position, ..].
class Decoder::LayerSites : public bft::FilterSites {
 public:
  LayerSites(const Pass& pass, std::int64_t layer) : pass_(pass), layer_(layer) {}
  /// @throws RunFailed  a precision is NaN or infinite (names the layer)
  at::Tensor at(std::string_view site, const at::Tensor& rows) const override;
  bool wants(std::string_view site) const override { return pass_.hooks.wants(hooks::block_site(layer_, site)); }
  bool replaces(std::string_view site) const override { return pass_.hooks.replaces(hooks::block_site(layer_, site)); }

 private:
  const Pass& pass_;
  std::int64_t layer_;
};

}  // namespace gainlens::models
