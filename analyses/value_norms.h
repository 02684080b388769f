#pragma once

#include "analyses/cells.h"

#include <cstdint>
#include <vector>

namespace gainlens::analyses {

/// L2 norms of the value vectors of one (layer, KV head), means over chunks.
struct ValueNorms {
  std::size_t layer_position;
  std::int64_t layer;           ///< the model's own number
  std::int64_t kv_head;         ///< of those of the layer
  std::vector<double> first;    ///< [key] of keys 0..7
  double rest;                  ///< mean over all other keys of the chunk
  std::vector<double> profile;  ///< [bin] means over 64 bins of keys along the chunk, first keys included; NaN if a
                                ///< bin is empty
};

/// Are the values of the first keys short? (The sink lemma needs the value of the sink to be short.)
struct ValueNormsResult {
  Length length;  ///< the longest with a complete chunk
  std::vector<std::int64_t> layers;
  std::vector<ValueNorms> heads;  ///< layer by layer
  std::size_t left_out;           ///< number of (layer, KV head) without a finite value
  Measured median_ratio;          ///< median over (layer, KV head) of |v_0| / mean |v| beyond the first keys
  std::size_t shorter;            ///< number of (layer, KV head) with a ratio below 1
  std::size_t ratios;             ///< number of (layer, KV head) with a ratio
};

/// Mean of a quantity over all keys after the first `first.size()`, from its values at the first keys and its means
/// over bins.
/// @param bin_means  [bin] key t is in bin floor(bins t / tokens); NaN if a bin is empty
/// @param tokens     more than first.size()
double mean_of_rest(const std::vector<double>& first, const std::vector<double>& bin_means, std::int64_t tokens);

/// Missing if the run has no values/norm or values/first_norm, or if its chunks hold no keys after the first ones.
/// @throws InvalidArgument  see usable_lengths()
Maybe<ValueNormsResult> value_norms(const runfile::RunReader& reader);
OrderedJson to_json(const ValueNormsResult& result);

}  // namespace gainlens::analyses
