#include "kernels/packed_values.h"

#include "kernels/parallel_tasks.h"
#include "kernels/query_blocks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace gainlens::kernels {
namespace {

/// Sizes of the packed form.
struct Sizes {
  std::int64_t kv_heads, length, dims, width, columns;
  std::int64_t tiles;   ///< of keys
  std::int64_t panels;  ///< of keys
};

template <typename Real>
Sizes sizes_of(const at::Tensor& key) {
  const std::int64_t columns = panel_shape<Real>().columns, length = key.size(1);
  return {.kv_heads = key.size(0),
          .length = length,
          .dims = key.size(2),
          .width = panel_padded<Real>(key.size(2)),
          .columns = columns,
          .tiles = (length + tile_keys - 1) / tile_keys,
          .panels = (length + columns - 1) / columns};
}

/// Rows of one head from `first` on.
template <typename Real>
Rows<const Real> rows_of_head(const at::Tensor& tensor, std::int64_t head, std::int64_t first) {
  return {tensor.const_data_ptr<Real>() + head * tensor.stride(0) + first * tensor.stride(1), tensor.stride(1)};
}

/// Mean of the first values, relative to the first one, so that equal values give exactly that value; and the first values themselves.
template <typename Real>
void fill_centre(const Sizes& sizes, const at::Tensor& value, std::int64_t kv_head, AttentionPlan::Workspace& workspace) {
  const Rows<const Real> rows = rows_of_head<Real>(value, kv_head, 0);
  const std::int64_t keys = std::min(sizes.length, centre_keys);
  Real* early = rows_of<Real>(workspace.early_values).row(kv_head);
  Real* first = rows_of<Real>(workspace.first_value).row(kv_head);
  Real* centre = rows_of<Real>(workspace.centre).row(kv_head);
  std::copy_n(rows.data, sizes.dims, first);
  std::vector<double> sum(static_cast<std::size_t>(sizes.dims));
  for (std::int64_t key = 0; key < keys; ++key) {
    for (std::int64_t i = 0; i < sizes.dims; ++i) {
      early[key * sizes.width + i] = rows.data[key * rows.stride + i] - first[i];
      sum[static_cast<std::size_t>(i)] += static_cast<double>(rows.data[key * rows.stride + i]) - static_cast<double>(first[i]);
    }
  }
  for (std::int64_t i = 0; i < sizes.dims; ++i) {
    centre[i] = static_cast<Real>(static_cast<double>(first[i]) + sum[static_cast<std::size_t>(i)] / static_cast<double>(keys));
    rows_of<Real>(workspace.first_offset).row(kv_head)[i] = first[i] - centre[i];
  }
}

/// Packs the keys and values of one tile. @param sums  [2, width] of v - c and its square, set
template <typename Real>
PackedExtrema pack_tile(const Sizes& sizes, const at::Tensor& key, const at::Tensor& value, std::int64_t kv_head, std::int64_t tile,
                        AttentionPlan::Workspace& workspace, double* sums) {
  PackedExtrema extrema;
  const std::int64_t begin = tile * tile_keys, end = std::min(begin + tile_keys, sizes.length);
  Real* panels = rows_of<Real>(workspace.keys).row(kv_head);
  for (std::int64_t first = begin; first < end; first += sizes.columns) {
    pack_key_panel<Real>(rows_of_head<Real>(key, kv_head, first), std::min(sizes.columns, end - first), sizes.dims,
                         panels + first * sizes.dims, extrema.key);
  }
  Real* packed = rows_of<Real>(workspace.values).row(kv_head) + tile * 2 * sizes.width * tile_keys;
  pack_value_rows<Real>(rows_of_head<Real>(value, kv_head, begin), end - begin, sizes.dims, rows_of<Real>(workspace.centre).row(kv_head),
                        tile_keys, packed, sums, extrema.value);
  return extrema;
}

/// Population variance per dimension from the sums of all tiles, and its inverse. @param sums  [tile, 2, width]
template <typename Real>
void fill_variance(const Sizes& sizes, const double* sums, Real* variance, Real* inverse) {
  const auto length = static_cast<double>(sizes.length);
  for (std::int64_t i = 0; i < sizes.dims; ++i) {
    double offset = 0, square = 0;
    for (std::int64_t tile = 0; tile < sizes.tiles; ++tile) {
      offset += sums[tile * 2 * sizes.width + i];
      square += sums[(tile * 2 + 1) * sizes.width + i];
    }
    const double mean = offset / length;
    variance[i] = static_cast<Real>(std::max(square / length - mean * mean, 0.0));
    inverse[i] = variance[i] > 0 ? 1 / variance[i] : Real{0};
  }
}

}  // namespace

template <typename Real>
PackedExtrema pack_keys_and_values(const at::Tensor& key, const at::Tensor& value, AttentionPlan::Workspace& workspace,
                                   at::Tensor value_variance) {
  const Sizes sizes = sizes_of<Real>(key);
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  reserve(workspace.keys, {sizes.kv_heads, sizes.panels, sizes.dims, sizes.columns}, type);
  reserve(workspace.values, {sizes.kv_heads, sizes.tiles, 2 * sizes.width / sizes.columns, tile_keys, sizes.columns}, type);
  reserve(workspace.centre, {sizes.kv_heads, sizes.width}, type);
  reserve(workspace.early_values, {sizes.kv_heads, centre_keys, sizes.width}, type);
  reserve(workspace.first_value, {sizes.kv_heads, sizes.width}, type);
  reserve(workspace.first_offset, {sizes.kv_heads, sizes.width}, type);
  reserve(workspace.inverse_variance, {sizes.kv_heads, sizes.width}, type);
  for (at::Tensor* padded :
       {&workspace.centre, &workspace.early_values, &workspace.first_value, &workspace.first_offset, &workspace.inverse_variance}) {
    padded->zero_();
  }

  const auto count = static_cast<std::size_t>(sizes.kv_heads * sizes.tiles);
  const auto sums_of_tile = static_cast<std::size_t>(2 * sizes.width);
  std::vector<double> sums(count * sums_of_tile);
  std::vector<PackedExtrema> extrema(count);
  for (std::int64_t kv_head = 0; kv_head < sizes.kv_heads; ++kv_head) fill_centre<Real>(sizes, value, kv_head, workspace);
  run_tasks(sizes.kv_heads * sizes.tiles, [&](std::int64_t, std::int64_t task) {
    const auto at = static_cast<std::size_t>(task);
    extrema[at] = pack_tile<Real>(sizes, key, value, task / sizes.tiles, task % sizes.tiles, workspace, sums.data() + at * sums_of_tile);
  });
  for (std::int64_t kv_head = 0; kv_head < sizes.kv_heads; ++kv_head) {
    fill_variance(sizes, sums.data() + static_cast<std::size_t>(kv_head * sizes.tiles) * sums_of_tile,
                  rows_of<Real>(value_variance).row(kv_head), rows_of<Real>(workspace.inverse_variance).row(kv_head));
  }
  PackedExtrema all;
  for (const PackedExtrema& tile : extrema) {
    all.key.add(tile.key);
    all.value.add(tile.value);
  }
  return all;
}

template PackedExtrema pack_keys_and_values<float>(const at::Tensor&, const at::Tensor&, AttentionPlan::Workspace&, at::Tensor);
template PackedExtrema pack_keys_and_values<double>(const at::Tensor&, const at::Tensor&, AttentionPlan::Workspace&, at::Tensor);

}  // namespace gainlens::kernels
