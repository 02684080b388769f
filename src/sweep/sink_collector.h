#pragma once

#include "hooks/hooked_model.h"
#include "kernels/attention_statistics.h"
#include "runfile/shard.h"
#include "tokenizers/tokenizer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// The kernel's choice of keys for a SinkCollector: those that a run may store.
inline constexpr kernels::KeyMeans collected_keys = kernels::KeyMeans::above;

/// Finds the keys of one chunk that many queries attend to, and measures what makes them sinks: the datasets /sinks and
/// /stream of a shard (docs/run-file.md). For each layer the calls come in the order of the class.
class SinkCollector {
 public:
  /// @param layers  original indices of the layers that are measured, in order
  /// @param tokens  of the chunk
  SinkCollector(std::vector<std::int64_t> layers, std::int64_t heads, std::span<const tokenizers::TokenId> tokens);

  /// @param hidden  [1, position, width], before the layer
  void see_stream_before(const at::Tensor& hidden);
  /// @param statistics  with `key_mean` of the keys from runfile::min_stored_mean on
  /// @param qkv         of one sequence; queries and keys as the scores use them
  void see_attention(std::int64_t layer, const kernels::QueryStatistics& statistics, const hooks::Qkv& qkv);
  /// n_eff and K of the keys that are no sinks (runfile::sink_threshold), [head, query] each. A query that sees no
  /// other key has NaN. Where key 0 is the only sink, these are the statistics without key 0; other sinks take a second
  /// pass over the kv heads that have them.
  /// @param options  those that `statistics` were computed with
  struct WithoutSinks {
    at::Tensor n_eff, kalman_gain;
  };
  WithoutSinks without_sinks(std::int64_t layer, const kernels::QueryStatistics& statistics, const hooks::Qkv& qkv,
                             const kernels::AttentionOptions& options) const;
  /// @param hidden  [1, position, width], after the layer
  void see_stream_after(std::int64_t layer, const at::Tensor& hidden);

  /// Moves what was collected into the shard.
  /// @param text_of  of a token id
  void finish(const std::function<std::string(tokenizers::TokenId)>& text_of, runfile::ShardResult& shard) &&;

 private:
  /// The stream at one place between layers, for each position.
  struct StreamPeaks {
    std::vector<double> largest;          ///< max_i |h_i|
    std::vector<std::int64_t> dimension;  ///< the first i of it
    std::vector<double> cosine;           ///< to the hidden state of position 0
    double median = 0;                    ///< of `largest`
  };
  static StreamPeaks peaks_of(const at::Tensor& hidden);
  std::size_t row_of(std::int64_t layer) const;
  std::size_t first_cell(std::int64_t layer, std::int64_t head) const {
    return (row_of(layer) * static_cast<std::size_t>(heads_) + static_cast<std::size_t>(head)) * runfile::stored_sinks;
  }
  double& sink(const char* name, std::size_t cell) { return sinks_.at(name).values[cell]; }

  std::vector<std::int64_t> layers_;
  std::int64_t heads_;
  std::span<const tokenizers::TokenId> tokens_;
  StreamPeaks before_;
  std::map<std::string, runfile::Array> sinks_, stream_;
};

}  // namespace gainlens::sweep
