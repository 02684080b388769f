#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace gainlens::recommend {

/// Appends the mean of each row, in double: equal numbers have an equal mean.
/// @param rows  [row, ..]
inline void append_row_means(std::vector<double>& to, const at::Tensor& rows) {
  const at::Tensor means = rows.flatten(1).to(at::kDouble).mean(1).to(at::kCPU).contiguous();
  const double* const first = means.const_data_ptr<double>();
  to.insert(to.end(), first, first + means.numel());
}

}  // namespace gainlens::recommend
