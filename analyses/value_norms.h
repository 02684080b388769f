#pragma once

#include "analyses/cells.h"

#include <cstdint>
#include <vector>

namespace gainlens::analyses {

/// L2 norms of the value vectors of one (layer, KV head), means over chunks.
struct ValueNorms {
  std::size_t layer_position;
  std::int64_t layer;  ///< the model's own number
  std::int64_t kv_head;
  std::vector<double> first;    ///< [key] of keys 0..7
  double rest;                  ///< mean over every other key of the chunk
  std::vector<double> profile;  ///< [bin] means over 64 bins of keys along the chunk, the first keys among them; NaN
                                ///< where a bin is empty
};

/// Are the values of the first keys small? (The sink-necessity lemma wants the sink's value to be.)
struct ValueNormsResult {
  Length length;  ///< the longest with a complete chunk
  std::vector<std::int64_t> layers;
  std::vector<ValueNorms> heads;  ///< layer by layer
  std::size_t left_out;           ///< (layer, KV head) without a finite value
  Measured median_ratio;          ///< of |v_0| / mean |v| beyond the first keys, over (layer, KV head)
  std::size_t shorter;            ///< (layer, KV head) whose ratio is below 1
  std::size_t ratios;             ///< (layer, KV head) that have a ratio
};

/// Mean of a quantity over the keys that are not among the first `first.size()`, from its means over the first keys and
/// over bins.
/// @param bin_means  [bin] bin of key t = floor(bins t / tokens); NaN where a bin is empty
/// @param tokens     more than first.size()
double mean_of_rest(const std::vector<double>& first, const std::vector<double>& bin_means, std::int64_t tokens);

/// Missing where the run has no values/norm or values/first_norm, or its chunks hold no more keys than the first ones.
/// @throws InvalidArgument  see usable_lengths()
Maybe<ValueNormsResult> value_norms(const runfile::RunReader& reader);
OrderedJson to_json(const ValueNormsResult& result);

}  // namespace gainlens::analyses
