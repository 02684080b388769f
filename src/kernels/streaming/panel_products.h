#pragma once

#include "kernels/extrema.h"
#include "kernels/row_alignment.h"
#include "kernels/streaming/row_kernels.h"

#include <cstdint>

// The two matrix products of a tile. They use a register-blocked micro-kernel over packed operands (Highway, which
// chooses the instruction set at run time). `Real` is float or double.
//
// The left operand (queries, weights) is stored in rows. A strip is the number of rows for which the registers hold
// sums. The right operand is packed in panels: for each inner index in turn, a panel holds the columns of two vector
// registers. So the inner loop reads one contiguous panel from the first-level cache, and broadcasts a few numbers of
// the strip.

namespace gainlens::kernels {

/// The range [begin, end) of the inner index or of the columns that one strip of rows needs. Empty if begin >= end.
struct StripRange {
  std::int64_t begin;
  std::int64_t end;
  bool first = false;  ///< this is the strip's first range: sums are set, not added to
};

/// Products over this many keys are summed in Real before they are added to the sum of their tile. The rounding error
/// of a sum of nearly equal terms grows with their number.
inline constexpr std::int64_t chain_keys = 64;

/// Sums over some keys of the packed values u = (v - c) scale, for every dimension.
template <typename Real>
struct PackedSums {
  double* offsets;  ///< [padded dims] sum u
  double* squares;  ///< [padded dims] sum u^2
  Real* largest;    ///< [padded dims] max |u|
};

/// The products and packing of tiles, compiled for one instruction set.
template <typename Real>
struct PanelKernels {
  std::int64_t columns;  ///< of a panel; a power of two, at most tile_keys
  std::int64_t rows;     ///< of a strip

  /// `count` columns rounded up to whole panels.
  std::int64_t padded(std::int64_t count) const { return rounded_up(count, columns); }

  /// scores = queries keys^T. Each strip is computed for the panels that its range of keys touches; other panels are
  /// not written.
  /// @param queries  [strips * strip rows, dims]
  /// @param strips   [strip] range of keys, counted from the first panel
  /// @param keys     [panel, dims, panel columns]
  /// @param scores   [strips * strip rows, panels * panel columns], rows aligned
  void (*score_tile)(std::int64_t strip_count, const StripRange* strips, std::int64_t dims, Rows<const Real> queries,
                     const Real* keys, Rows<Real> scores);

  /// sums += weights values, or sums = weights values if the range is a strip's first. Each strip is computed over its
  /// range of keys. Chains of `chain_keys` products, and their sum over the range, are in Real. Sums over ranges are in
  /// double. So the error of a sum grows with the size of a range, but not with the number of ranges.
  /// @param weights  [strips * strip rows, keys]
  /// @param strips   [strip] range of keys
  /// @param values   [panel, panel_keys, panel columns]
  /// @param sums     [strips * strip rows, panels * panel columns], rows aligned
  void (*add_weighted_values)(std::int64_t strip_count, const StripRange* strips, std::int64_t panels,
                              std::int64_t panel_keys, Rows<const Real> weights, const Real* values, Rows<double> sums);

  /// Packs rows of keys into one panel, transposed: [dims, panel columns]. Columns after the last key are zero.
  /// @param keys  [count, dims], count at most the number of panel columns
  void (*pack_key_panel)(Rows<const Real> keys, std::int64_t count, std::int64_t dims, Real* panel, Extrema& extrema);

  /// Copies a row times `factor`.
  void (*load_query)(const Real* source, std::int64_t dims, Real factor, Real* row, Extrema& extrema);

  /// Packs u = (v - c) scale and u^2 of some keys, in the form that add_weighted_values reads: the panels of u, then
  /// the panels of u^2. Sets `sums`. The sums over keys are computed in double.
  /// @param values         [count, dims]
  /// @param centre, scale  [padded dims], zero after dims
  /// @param packed         [2 * panels, panel_keys, panel columns], the place of the first key
  void (*pack_value_rows)(Rows<const Real> values, std::int64_t count, std::int64_t dims, const Real* centre,
                          const Real* scale, std::int64_t panel_keys, Real* packed, const PackedSums<Real>& sums,
                          Extrema& extrema);
};

/// The table for the best instruction set of this machine.
template <typename Real>
const PanelKernels<Real>& panel_kernels();

}  // namespace gainlens::kernels
