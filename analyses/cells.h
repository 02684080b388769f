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

/// One dataset of a sweep with the axes [length, sample, layer, head], and for some a last axis of keys or bins.
class Cells {
 public:
  /// Missing, with the reason, if the run does not have the dataset.
  /// @throws InvalidArgument  the dataset has other axes
  static Maybe<Cells> read(const runfile::RunReader& reader, std::string_view name);

  /// @param values  [length, sample, layer, head] of the run, row-major
  static Cells of(const runfile::RunReader& reader, std::vector<double> values);

  std::size_t heads() const { return extent_[3]; }  ///< or KV heads
  std::size_t last() const { return extent_[4]; }   ///< extent of the fifth axis; 1 if there are only four axes
  /// NaN if the sweep has no value.
  double at(std::size_t length, std::int64_t sample, std::size_t layer, std::size_t head, std::size_t last = 0) const;

 private:
  std::size_t extent_[5] = {1, 1, 1, 1, 1};
  std::vector<double> values_;
};

/// Mean over the complete chunks of one length; NaN if no chunk has a value.
/// @param left_out  is increased by the number of complete chunks without a value
double mean_over_samples(const Cells& cells, const Length& length, std::size_t layer, std::size_t head,
                         std::size_t last, std::size_t& left_out);
/// Mean over lengths of the means over chunks, each length with the same weight; NaN if one of the lengths has no
/// value.
double mean_over_lengths(const Cells& cells, const std::vector<Length>& lengths, std::size_t layer, std::size_t head,
                         std::size_t last, std::size_t& left_out);

/// A statistic at one length over chunks x layers x heads x queries.
struct Aggregate {
  double mean;                       ///< mean over chunks of the mean over a chunk's cells: the interval is for this
  Measured deviation;                ///< population standard deviation over chunk x layer x head x query
  Maybe<Interval> interval;          ///< Student interval of the mean, from chunk means
  std::vector<double> chunk_means;   ///< [chunk of Length::samples with a value]
  std::vector<std::int64_t> chunks;  ///< sample numbers of chunk_means
  std::size_t left_out;              ///< cells without a value
};

/// Aggregates `summary/<name>` over the layers at the given positions. The deviation joins `<name>_var` and the spread
/// of the cell means by the law of total variance: Var = mean of cell variances + variance of cell means. Missing if
/// the run does not have the statistic, or has no value of it at this length.
Maybe<Aggregate> aggregate(const runfile::RunReader& reader, std::string_view name, const Length& length,
                           const std::vector<std::size_t>& layers);

}  // namespace gainlens::analyses
