#include "kernels/packed_values.h"

#include "kernels/parallel_tasks.h"
#include "kernels/query_blocks.h"
#include "kernels/row_kernels.h"
#include "kernels/tensor_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t chunk_keys = 512;  // keys of one task

/// Sums of v - c and (v - c)^2 per dimension over one chunk of keys.
struct ChunkSums {
  std::vector<double> offset, square;
};

/// Mean of the first values. Relative to the first one, so that equal values give exactly that value.
template <typename Real>
void fill_centre(const AttentionShape& shape, const TensorRows& values, std::int64_t kv_head, Real* centre) {
  const auto dims = static_cast<std::size_t>(shape.head_dim);
  const std::int64_t keys = std::min(shape.length, centre_keys);
  std::vector<Real> first(dims), row(dims);
  std::vector<double> sum(dims);
  values.load(kv_head, 0, first.data());
  for (std::int64_t key = 0; key < keys; ++key) {
    values.load(kv_head, key, row.data());
    for (std::size_t i = 0; i < dims; ++i) sum[i] += static_cast<double>(row[i]) - static_cast<double>(first[i]);
  }
  for (std::size_t i = 0; i < dims; ++i) centre[i] = static_cast<Real>(static_cast<double>(first[i]) + sum[i] / static_cast<double>(keys));
}

template <typename Real>
ChunkSums pack_chunk(const AttentionShape& shape, const TensorRows& values, std::int64_t kv_head, std::int64_t chunk, const Real* centre,
                     Real* packed) {
  const auto dims = static_cast<std::size_t>(shape.head_dim);
  const auto width = static_cast<std::size_t>(padded<Real>(shape.head_dim));
  ChunkSums sums{.offset = std::vector<double>(dims), .square = std::vector<double>(dims)};
  const std::int64_t end = std::min(shape.length, (chunk + 1) * chunk_keys);
  for (std::int64_t key = chunk * chunk_keys; key < end; ++key) {
    Real* offset = packed + static_cast<std::size_t>(kv_head * shape.length + key) * 2 * width;
    Real* square = offset + width;
    values.load(kv_head, key, offset);
    for (std::size_t i = 0; i < dims; ++i) {
      offset[i] -= centre[i];
      square[i] = offset[i] * offset[i];
      sums.offset[i] += static_cast<double>(offset[i]);
      sums.square[i] += static_cast<double>(offset[i]) * static_cast<double>(offset[i]);
    }
    std::fill(offset + dims, offset + width, Real{0});
    std::fill(square + dims, square + width, Real{0});
  }
  return sums;
}

/// Population variance per dimension from the sums of all chunks, and its inverse.
template <typename Real>
void fill_variance(const AttentionShape& shape, const ChunkSums* chunks, std::int64_t count, Real* variance, Real* inverse) {
  const auto length = static_cast<double>(shape.length);
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.head_dim); ++i) {
    double offset = 0, square = 0;
    for (std::int64_t chunk = 0; chunk < count; ++chunk) {
      offset += chunks[chunk].offset[i];
      square += chunks[chunk].square[i];
    }
    const double mean = offset / length;
    variance[i] = static_cast<Real>(std::max(square / length - mean * mean, 0.0));
    inverse[i] = variance[i] > 0 ? 1 / variance[i] : Real{0};
  }
}

}  // namespace

template <typename Real>
void pack_values(const AttentionShape& shape, const at::Tensor& value, AttentionPlan::Workspace& workspace, at::Tensor& value_variance) {
  const std::int64_t width = padded<Real>(shape.head_dim);
  const at::ScalarType type = c10::CppTypeToScalarType<Real>::value;
  reserve(workspace.packed, {shape.kv_heads, shape.length, 2, width}, type);
  reserve(workspace.centre, {shape.kv_heads, width}, type);
  reserve(workspace.inverse_variance, {shape.kv_heads, width}, type);
  workspace.centre.zero_();
  workspace.inverse_variance.zero_();

  const TensorRows values(value);
  Real* centre = workspace.centre.mutable_data_ptr<Real>();
  Real* packed = workspace.packed.mutable_data_ptr<Real>();
  for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) fill_centre(shape, values, kv_head, centre + kv_head * width);

  const std::int64_t chunks = (shape.length + chunk_keys - 1) / chunk_keys;
  std::vector<ChunkSums> sums(static_cast<std::size_t>(shape.kv_heads * chunks));
  run_tasks(shape.kv_heads * chunks, [&](std::int64_t, std::int64_t task) {
    const std::int64_t kv_head = task / chunks;
    sums[static_cast<std::size_t>(task)] = pack_chunk(shape, values, kv_head, task % chunks, centre + kv_head * width, packed);
  });
  for (std::int64_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
    fill_variance(shape, sums.data() + kv_head * chunks, chunks, value_variance.mutable_data_ptr<Real>() + kv_head * shape.head_dim,
                  workspace.inverse_variance.mutable_data_ptr<Real>() + kv_head * width);
  }
}

template void pack_values<float>(const AttentionShape&, const at::Tensor&, AttentionPlan::Workspace&, at::Tensor&);
template void pack_values<double>(const AttentionShape&, const at::Tensor&, AttentionPlan::Workspace&, at::Tensor&);

}  // namespace gainlens::kernels
