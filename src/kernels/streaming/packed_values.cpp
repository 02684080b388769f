#include "kernels/streaming/packed_values.h"

#include "kernels/parallel_tasks.h"
#include "kernels/row_alignment.h"
#include "kernels/streaming/query_blocks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::kernels {
namespace {

/// Sizes of the packed form.
struct Sizes {
  std::int64_t kv_heads, length;
  std::int64_t key_dim, value_dim;
  std::int64_t width;    ///< value_dim in whole panels
  std::int64_t columns;  ///< of a panel
  std::int64_t tiles;    ///< of keys
  std::int64_t panels;   ///< of keys
};

template <typename Real>
Sizes sizes_of(const at::Tensor& key, const at::Tensor& value) {
  const PanelKernels<Real>& kernels = panel_kernels<Real>();
  const std::int64_t columns = kernels.columns, length = key.size(1);
  return {.kv_heads = key.size(0),
          .length = length,
          .key_dim = key.size(2),
          .value_dim = value.size(2),
          .width = kernels.padded(value.size(2)),
          .columns = columns,
          .tiles = blocks_of(length, tile_keys),
          .panels = blocks_of(length, columns)};
}

/// Rows of one head from `first` on.
template <typename Real>
Rows<const Real> rows_of_head(const at::Tensor& tensor, std::int64_t head, std::int64_t first) {
  return {tensor.const_data_ptr<Real>() + head * tensor.stride(0) + first * tensor.stride(1), tensor.stride(1)};
}

/// The largest power of two up to `size`, limited so that Real can hold it and its inverse. 1 for 0.
template <typename Real>
Real unit_of(Real size) {
  if (size == 0) return 1;
  constexpr int most = std::numeric_limits<Real>::max_exponent - 2;
  return std::ldexp(Real{1}, std::clamp(std::ilogb(size), -most, most));
}

/// Sets v_0, c and the unit of one head, from its first values. c is computed relative to v_0, so that c of equal
/// values is exactly that value.
template <typename Real>
void fill_centre(const Sizes& sizes, const at::Tensor& value, std::int64_t kv_head,
                 AttentionPlan::Workspace& workspace) {
  const Rows<const Real> rows = rows_of_head<Real>(value, kv_head, 0);
  const std::int64_t keys = std::min(sizes.length, centre_keys);
  Real* first = rows_of<Real>(workspace.first_value).row(kv_head);
  Real* centre = rows_of<Real>(workspace.centre).row(kv_head);
  std::copy_n(rows.data, sizes.value_dim, first);
  // The outer loop is over keys, since the values of one key are contiguous.
  std::vector<double> sum(static_cast<std::size_t>(sizes.value_dim));
  std::vector<Real> largest(static_cast<std::size_t>(sizes.value_dim));
  for (std::int64_t key = 0; key < keys; ++key) {
    const Real* row = rows.row(key);
    for (std::int64_t i = 0; i < sizes.value_dim; ++i) {
      sum[static_cast<std::size_t>(i)] += static_cast<double>(row[i]) - static_cast<double>(first[i]);
    }
  }
  for (std::int64_t i = 0; i < sizes.value_dim; ++i) {
    centre[i] =
        static_cast<Real>(static_cast<double>(first[i]) + sum[static_cast<std::size_t>(i)] / static_cast<double>(keys));
  }
  for (std::int64_t key = 0; key < keys; ++key) {
    const Real* row = rows.row(key);
    for (std::int64_t i = 0; i < sizes.value_dim; ++i) {
      Real& so_far = largest[static_cast<std::size_t>(i)];
      so_far = std::max(so_far, std::abs(row[i] - centre[i]));
    }
  }
  Real* unit = rows_of<Real>(workspace.unit).row(kv_head);
  for (std::int64_t i = 0; i < sizes.value_dim; ++i) unit[i] = unit_of(largest[static_cast<std::size_t>(i)]);
}

/// Sets the rows that are relative to c or v_0, in the current units.
template <typename Real>
void fill_scaled(const Sizes& sizes, const at::Tensor& value, std::int64_t kv_head,
                 AttentionPlan::Workspace& workspace) {
  const Rows<const Real> rows = rows_of_head<Real>(value, kv_head, 0);
  const Real* first = rows_of<Real>(workspace.first_value).row(kv_head);
  const Real* centre = rows_of<Real>(workspace.centre).row(kv_head);
  const Real* unit = rows_of<Real>(workspace.unit).row(kv_head);
  Real* scale = rows_of<Real>(workspace.scale).row(kv_head);
  Real* early = rows_of<Real>(workspace.early_values).row(kv_head);
  for (std::int64_t i = 0; i < sizes.value_dim; ++i) {
    scale[i] = 1 / unit[i];
    rows_of<Real>(workspace.first_offset).row(kv_head)[i] = (first[i] - centre[i]) * scale[i];
  }
  for (std::int64_t key = 0; key < std::min(sizes.length, centre_keys); ++key) {
    const Real* row = rows.row(key);
    for (std::int64_t i = 0; i < sizes.value_dim; ++i) early[key * sizes.width + i] = (row[i] - first[i]) * scale[i];
  }
}

/// Sums over the packed values of one tile or of several.
template <typename Real>
struct TileSums {
  std::vector<double> offsets, squares;  // [width]
  std::vector<Real> largest;             // [width]

  explicit TileSums(std::int64_t width)
      : offsets(static_cast<std::size_t>(width)),
        squares(static_cast<std::size_t>(width)),
        largest(static_cast<std::size_t>(width)) {}
  void add(const TileSums& other) {
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] += other.offsets[i];
      squares[i] += other.squares[i];
      largest[i] = std::max(largest[i], other.largest[i]);
    }
  }
};

/// Packs the keys of one tile.
template <typename Real>
void pack_keys(const Sizes& sizes, const at::Tensor& key, std::int64_t kv_head, std::int64_t tile,
               AttentionPlan::Workspace& workspace, Extrema& extrema) {
  const std::int64_t begin = tile * tile_keys, end = std::min(begin + tile_keys, sizes.length);
  Real* panels = rows_of<Real>(workspace.keys).row(kv_head);
  for (std::int64_t first = begin; first < end; first += sizes.columns) {
    panel_kernels<Real>().pack_key_panel(rows_of_head<Real>(key, kv_head, first), std::min(sizes.columns, end - first),
                                         sizes.key_dim, panels + first * sizes.key_dim, extrema);
  }
}

/// Packs the values of one tile.
template <typename Real>
TileSums<Real> pack_values(const Sizes& sizes, const at::Tensor& value, std::int64_t kv_head, std::int64_t tile,
                           AttentionPlan::Workspace& workspace, Extrema& extrema) {
  const std::int64_t begin = tile * tile_keys, end = std::min(begin + tile_keys, sizes.length);
  Real* packed = rows_of<Real>(workspace.values).row(kv_head) + tile * 2 * sizes.width * tile_keys;
  TileSums<Real> sums(sizes.width);
  panel_kernels<Real>().pack_value_rows(
      rows_of_head<Real>(value, kv_head, begin), end - begin, sizes.value_dim,
      rows_of<Real>(workspace.centre).row(kv_head), rows_of<Real>(workspace.scale).row(kv_head), tile_keys, packed,
      {.offsets = sums.offsets.data(), .squares = sums.squares.data(), .largest = sums.largest.data()}, extrema);
  return sums;
}

/// Whether the units taken from the first values are good for all values: squares, and their products with small
/// weights, must keep their digits.
template <typename Real>
bool units_fit(const Sizes& sizes, const TileSums<Real>& sums) {
  constexpr auto factor = static_cast<Real>(1 << 30);
  return std::all_of(sums.largest.begin(), sums.largest.begin() + sizes.value_dim,
                     [](Real largest) { return largest == 0 || (largest >= 1 / factor && largest <= factor); });
}

/// Packs the values of a head again. The unit of a dimension is now taken from its largest value.
template <typename Real>
TileSums<Real> pack_in_other_units(const Sizes& sizes, const at::Tensor& value, std::int64_t kv_head,
                                   AttentionPlan::Workspace& workspace) {
  // This is rare, so a slow loop over dimensions is good enough.
  const Rows<const Real> rows = rows_of_head<Real>(value, kv_head, 0);
  for (std::int64_t i = 0; i < sizes.value_dim; ++i) {
    Real largest = 0;
    for (std::int64_t key = 0; key < sizes.length; ++key) {
      largest = std::max(largest, std::abs(rows.row(key)[i] - rows_of<Real>(workspace.centre).row(kv_head)[i]));
    }
    rows_of<Real>(workspace.unit).row(kv_head)[i] = unit_of(largest);
  }
  fill_scaled<Real>(sizes, value, kv_head, workspace);
  TileSums<Real> sums(sizes.width);
  Extrema seen;
  for (std::int64_t tile = 0; tile < sizes.tiles; ++tile)
    sums.add(pack_values<Real>(sizes, value, kv_head, tile, workspace, seen));
  return sums;
}

/// Sets the population variance of each dimension, and its inverse in the unit of the packed values.
template <typename Real>
void fill_variance(const Sizes& sizes, const TileSums<Real>& sums, std::int64_t kv_head,
                   AttentionPlan::Workspace& workspace, Real* variance) {
  const auto length = static_cast<double>(sizes.length);
  const Real* unit = rows_of<Real>(workspace.unit).row(kv_head);
  Real* inverse = rows_of<Real>(workspace.inverse_variance).row(kv_head);
  for (std::int64_t i = 0; i < sizes.value_dim; ++i) {
    const double mean = sums.offsets[static_cast<std::size_t>(i)] / length;
    const double scaled = std::max(sums.squares[static_cast<std::size_t>(i)] / length - mean * mean, 0.0);
    const auto size = static_cast<double>(unit[i]);
    variance[i] = static_cast<Real>(scaled * size * size);
    inverse[i] = scaled > 0 ? static_cast<Real>(1 / scaled) : Real{0};
  }
}

}  // namespace

template <typename Real>
PackedExtrema pack_keys_and_values(const at::Tensor& key, const at::Tensor& value, AttentionPlan::Workspace& workspace,
                                   at::Tensor value_variance) {
  const Sizes sizes = sizes_of<Real>(key, value);
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  reserve(workspace.keys, {sizes.kv_heads, sizes.panels, sizes.key_dim, sizes.columns}, type);
  reserve(workspace.values, {sizes.kv_heads, sizes.tiles, 2 * sizes.width / sizes.columns, tile_keys, sizes.columns},
          type);
  reserve(workspace.early_values, {sizes.kv_heads, centre_keys, sizes.width}, type);
  workspace.early_values.zero_();
  reserve(workspace.size, {sizes.kv_heads, 1}, type);
  for (at::Tensor* row : {&workspace.centre, &workspace.unit, &workspace.scale, &workspace.first_value,
                          &workspace.first_offset, &workspace.inverse_variance}) {
    reserve(*row, {sizes.kv_heads, sizes.width}, type);
    row->zero_();
  }
  for (std::int64_t kv_head = 0; kv_head < sizes.kv_heads; ++kv_head) {
    fill_centre<Real>(sizes, value, kv_head, workspace);
    fill_scaled<Real>(sizes, value, kv_head, workspace);
  }

  const auto count = static_cast<std::size_t>(sizes.kv_heads * sizes.tiles);
  std::vector<TileSums<Real>> sums(count, TileSums<Real>(0));
  std::vector<PackedExtrema> extrema(count);
  run_tasks(sizes.kv_heads * sizes.tiles, [&](std::int64_t, std::int64_t task) {
    const auto at = static_cast<std::size_t>(task);
    const std::int64_t kv_head = task / sizes.tiles, tile = task % sizes.tiles;
    pack_keys<Real>(sizes, key, kv_head, tile, workspace, extrema[at].key);
    sums[at] = pack_values<Real>(sizes, value, kv_head, tile, workspace, extrema[at].value);
  });
  PackedExtrema all;
  for (const PackedExtrema& tile : extrema) {
    all.key.add(tile.key);
    all.value.add(tile.value);
  }
  if (!all.value.finite) return all;  // the caller refuses such values; they have no unit
  for (std::int64_t kv_head = 0; kv_head < sizes.kv_heads; ++kv_head) {
    TileSums<Real> head_sums(sizes.width);
    Extrema value_extrema;
    for (std::int64_t tile = 0; tile < sizes.tiles; ++tile) {
      const auto at = static_cast<std::size_t>(kv_head * sizes.tiles + tile);
      head_sums.add(sums[at]);
      value_extrema.add(extrema[at].value);
    }
    *rows_of<Real>(workspace.size).row(kv_head) = unit_of(static_cast<Real>(value_extrema.magnitude()));
    if (!units_fit(sizes, head_sums)) head_sums = pack_in_other_units<Real>(sizes, value, kv_head, workspace);
    fill_variance(sizes, head_sums, kv_head, workspace, rows_of<Real>(value_variance).row(kv_head));
  }
  return all;
}

template PackedExtrema pack_keys_and_values<float>(const at::Tensor&, const at::Tensor&, AttentionPlan::Workspace&,
                                                   at::Tensor);
template PackedExtrema pack_keys_and_values<double>(const at::Tensor&, const at::Tensor&, AttentionPlan::Workspace&,
                                                    at::Tensor);

}  // namespace gainlens::kernels
