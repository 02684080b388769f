#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/selection.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gainlens::analyses {

/// A number over the splits of the chunks.
struct OverSplits {
  double mean;
  double least;
  double largest;
};

/// lambda fitted on one half of the chunks, its errors taken on the other half.
struct SplitHalf {
  std::int64_t chunks;     ///< that every length has
  std::int64_t fitted_on;  ///< chunks of the half that lambda comes from
  std::int64_t splits;     ///< tried
  bool all;                ///< every split; otherwise random ones
  std::uint64_t seed;
  OverSplits max_relative_error;
  OverSplits max_constant_error;  ///< of the other half's K predicted by its own K(T_min)
  Maybe<OverSplits> skill;        ///< 1 - mean relative error / mean constant error, as in GainTheory; missing if it is for one split
};
inline constexpr std::int64_t least_split_chunks = 4;
/// Largest error on other chunks, relative to K, with which K still counts as following from n_eff and S.
inline constexpr double theory_margin = 0.01;

/// The theory for one head: its own K, n_eff and S over all chunks, its own lambda.
struct CellError {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  double max_relative_error;
  double max_constant_error;
};

/// The theory head by head, over the deep layers: what the mean over heads may hide.
struct CellErrors {
  std::vector<CellError> cells;  ///< layer by layer
  std::size_t left_out;          ///< heads without a lambda or without a value at every length
  double median_error;
  double median_constant_error;
  CellError worst;
  std::size_t better_than_constant;  ///< heads whose largest error is below that of the constant
};

/// Missing below `least_split_chunks` common chunks, with one length, or where a half has no 0 < K < 1.
/// Source: inference.md, K theory v. measured.
Maybe<SplitHalf> split_half(const runfile::RunReader& reader, const Options& options);
/// Missing with one length, or where no head has a fit.
Maybe<CellErrors> cell_errors(const runfile::RunReader& reader, const Options& options);

OrderedJson to_json(const SplitHalf& split);
OrderedJson to_json(const CellErrors& errors);

}  // namespace gainlens::analyses
