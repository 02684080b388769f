#pragma once

#include "analyses/measured.h"
#include "analyses/selection.h"
#include "runfile/run_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// One dataset of a sweep by its axes [length, sample, layer, head], or with a last axis of keys or bins more.
class Cells {
 public:
  /// Missing, with the reason, where the run does not have the dataset.
  /// @throws InvalidArgument  the dataset has other axes
  static Maybe<Cells> read(const runfile::RunReader& reader, std::string_view name);

  std::size_t heads() const { return extent_[3]; }  ///< or KV heads
  std::size_t last() const { return extent_[4]; }   ///< extent of the last axis; 1 where there are only four
  /// NaN where the sweep has no value.
  double at(std::size_t length, std::int64_t sample, std::size_t layer, std::size_t head, std::size_t last = 0) const;

 private:
  std::size_t extent_[5] = {1, 1, 1, 1, 1};
  std::vector<double> values_;
};

/// Mean over the complete chunks of one length; NaN where none has a value.
/// @param left_out  grows by the number of chunks that are complete and have no value
double mean_over_samples(const Cells& cells, const Length& length, std::size_t layer, std::size_t head,
                         std::size_t last, std::size_t& left_out);
/// Mean over lengths of the means over chunks, each length with the same weight; NaN where one of the lengths has no
/// value.
double mean_over_lengths(const Cells& cells, const std::vector<Length>& lengths, std::size_t layer, std::size_t head,
                         std::size_t last, std::size_t& left_out);

/// Cells whose column mean at one key makes them sinks on that key (Gu et al.), among those that have one.
struct SinkCount {
  std::size_t cells = 0, sinks = 0;

  /// @param column_mean  of one (chunk, layer, head) and key; NaN is not counted
  void add(double column_mean);
  /// Every head of `layers` in one chunk. @param column_means summary/column_mean @param length on the run's length
  /// axis
  void add(const Cells& column_means, std::size_t length, std::int64_t sample, const std::vector<std::size_t>& layers,
           std::size_t key);
  /// sinks / cells. Requires cells > 0.
  double share() const { return static_cast<double>(sinks) / static_cast<double>(cells); }
};

/// A statistic at one length over chunks x layers x heads x queries.
struct Aggregate {
  double mean;                       ///< over chunks, of the mean over the cells of each: what the interval is of
  Measured deviation;                ///< population standard deviation over chunk x layer x head x query
  Maybe<Interval> interval;          ///< Student interval of the mean, from chunk means
  std::vector<double> chunk_means;   ///< [chunk of Length::samples that has a value]
  std::vector<std::int64_t> chunks;  ///< sample numbers of chunk_means
  std::size_t left_out;              ///< cells without a value
};

/// Aggregates `summary/<name>` over the layers at the given positions. The deviation joins `<name>_var` and the spread
/// of the cell means by the law of total variance: Var = mean of cell variances + variance of cell means. Missing where
/// the run has no such statistic or no value of it at this length.
Maybe<Aggregate> aggregate(const runfile::RunReader& reader, std::string_view name, const Length& length,
                           const std::vector<std::size_t>& layers);

}  // namespace gainlens::analyses
