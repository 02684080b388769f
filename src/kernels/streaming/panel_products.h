#pragma once

#include "kernels/attention_inputs.h"
#include "kernels/streaming/attention_workspace.h"
#include "kernels/streaming/row_kernels.h"

#include <cstdint>

// The two matrix products of a tile, by a register-blocked micro-kernel over packed operands (Highway, chosen at run
// time for the machine). `Real` is float or double.
//
// The left operand (queries, weights) lies in rows; a strip is as many rows as the registers hold. The right operand is
// packed in panels: a panel holds a vector register's worth of columns, twice, for every inner index in turn. So the
// inner loop reads one contiguous panel from the first-level cache, and a few numbers of the strip to broadcast.

namespace gainlens::kernels {

/// How the operands are cut on this machine.
struct PanelShape {
  std::int64_t columns;  ///< of a panel; a power of two, at most tile_keys
  std::int64_t rows;     ///< of a strip
};

template <typename Real>
PanelShape panel_shape();

/// `count` columns rounded up to whole panels of this machine.
template <typename Real>
std::int64_t panel_padded(std::int64_t count) {
  const std::int64_t columns = panel_shape<Real>().columns;
  return (count + columns - 1) / columns * columns;
}

/// A range [begin, end) of the inner index or of the columns that one strip of rows needs; empty where begin >= end.
struct StripRange {
  std::int64_t begin;
  std::int64_t end;
  bool first = false;  ///< the strip's sums begin here: they are set, not added to
};

/// scores = queries keys^T, for each strip the panels that its range of keys touches; the others are left as they are.
/// @param queries  [strips * strip rows, dims]   @param strips  [strip] range of keys, counted from the first panel
/// @param keys     [panel, dims, panel columns] @param scores [strips * strip rows, panels * panel columns], rows
///     aligned
template <typename Real>
void score_tile(std::int64_t strip_count, const StripRange* strips, std::int64_t dims, Rows<const Real> queries,
                const Real* keys, Rows<Real> scores);

/// Products over so many keys are summed in Real before they join the sum of their tile: what rounding takes from a sum
/// of nearly equal terms grows with their number.
inline constexpr std::int64_t chain_keys = 64;

/// sums += weights values (or sums = where the range is a strip's first), for each strip over its range of keys: chains
/// of `chain_keys` products and their sum over the range in Real, the ranges in double. So a sum's error grows with the
/// size of a range, not with the number of ranges.
/// @param weights  [strips * strip rows, keys]           @param strips  [strip] range of keys
/// @param values   [panel, panel_keys, panel columns] @param sums [strips * strip rows, panels * panel columns], rows
///     aligned
template <typename Real>
void add_weighted_values(std::int64_t strip_count, const StripRange* strips, std::int64_t panels,
                         std::int64_t panel_keys, Rows<const Real> weights, const Real* values, Rows<double> sums);

/// Packs rows of keys into one panel, transposed: [dims, panel columns], zero beyond the last key.
/// @param keys  [count, dims], count at most panel columns
template <typename Real>
void pack_key_panel(Rows<const Real> keys, std::int64_t count, std::int64_t dims, Real* panel, Extrema& extrema);

/// Copies a row times `factor`.
template <typename Real>
void load_query(const Real* source, std::int64_t dims, Real factor, Real* row, Extrema& extrema);

/// What is known of the packed values u = (v - c) scale of some keys, for every dimension.
template <typename Real>
struct PackedSums {
  double* offsets;  ///< [padded dims] sum u
  double* squares;  ///< [padded dims] sum u^2
  Real* largest;    ///< [padded dims] max |u|
};

/// Packs u = (v - c) scale and u^2 of some keys: panels of the first, then panels of the second, as add_weighted_values
/// reads them. Sets `sums`; those over keys are formed in double.
/// @param values  [count, dims]   @param centre, scale  [padded dims], zero beyond dims
/// @param packed  [2 * panels, panel_keys, panel columns], the first key's place
template <typename Real>
void pack_value_rows(Rows<const Real> values, std::int64_t count, std::int64_t dims, const Real* centre,
                     const Real* scale, std::int64_t panel_keys, Real* packed, const PackedSums<Real>& sums,
                     Extrema& extrema);

}  // namespace gainlens::kernels
