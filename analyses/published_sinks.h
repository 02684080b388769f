#pragma once

#include "analyses/cells.h"
#include "analyses/measured.h"
#include "analyses/options.h"
#include "runfile/run_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// Counts the cells that are sinks on one key: those whose column mean at the key exceeds `column_mean_threshold`
/// (Gu et al.).
struct SinkCount {
  std::size_t cells = 0;  ///< with a column mean
  std::size_t sinks = 0;

  /// @param column_mean  of one (chunk, layer, head) at the key; NaN is not counted
  void add(double column_mean);
  /// Adds every head of `layers` in one chunk.
  /// @param column_means  summary/column_mean   @param length  position on the run's length axis
  /// @param layers        positions on the layer axis
  void add(const Cells& column_means, std::size_t length, std::int64_t sample, const std::vector<std::size_t>& layers,
           std::size_t key);
  /// sinks / cells. Requires cells > 0.
  double share() const { return static_cast<double>(sinks) / static_cast<double>(cells); }
};

/// Length in tokens of the texts in which Gu et al. count sinks. A column mean is a mean over all later queries, so it
/// shrinks with the context: published percentages hold for this length alone.
inline constexpr std::int64_t published_sink_length = 64;

/// Counts the sinks on key 0 at published_sink_length, over chunks and heads of the layers that see it there. Missing
/// if the run has no complete chunk of this length, or no column mean.
Maybe<SinkCount> published_sinks(const runfile::RunReader& reader, const Options& options = {});

/// "12 of 72 (head, chunk) pairs (16.67%) at 64 tokens, ...", to be set beside percentages that others publish.
std::string published_sinks_in_words(const SinkCount& count);

}  // namespace gainlens::analyses
