#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace gainlens::kernels {

/// Rows of a tensor, with its gradient: result[i] = table[rows[i]]. As at::index_select; but on other devices than the
/// CPU by a gather, which libtorch's meta device has too.
/// @param table  [row, ..]
/// @param rows   int64 [i]
inline at::Tensor selected_rows(const at::Tensor& table, const at::Tensor& rows) {
  if (table.is_cpu()) return table.dim() == 2 ? at::embedding(table, rows) : table.index_select(0, rows);
  std::vector<std::int64_t> sizes = table.sizes().vec(), ones(sizes.size(), 1);
  sizes[0] = ones[0] = rows.size(0);
  return table.gather(0, rows.view(ones).expand(sizes));
}

}  // namespace gainlens::kernels
