#include "kernels/elementwise/row_functions.h"

#include "core/check.h"
#include "kernels/elementwise/row_vectors.h"
#include "kernels/tensor_elements.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

namespace gainlens::kernels {
namespace {

/// Numbers that one task handles, at least.
constexpr std::int64_t numbers_per_task = 32768;

/// A weight or bias [n] or [m, n] in float32.
class RowParameters {
 public:
  explicit RowParameters(const at::Tensor& values, std::int64_t columns) {
    if (!values.defined()) return;
    ASSERT(values.size(-1) == columns && values.dim() <= 2, "a norm's weight of {} for rows of {}", values.size(-1),
           columns);
    values_ = values.to(at::kFloat).contiguous();
    data_ = values_.const_data_ptr<float>();
    rows_ = values.dim() == 2 ? values.size(0) : 1;
    columns_ = columns;
  }
  /// Null if there are none.
  const float* at_row(std::int64_t row) const {
    return data_ == nullptr || rows_ == 1 ? data_ : data_ + row % rows_ * columns_;
  }

 private:
  at::Tensor values_;
  const float* data_ = nullptr;
  std::int64_t rows_ = 1, columns_ = 0;
};

/// Calls work(row, count, x) with some rows of a tensor in float32; then stores x. Rows may be as short as a head, so
/// several are handled at a time.
template <typename Work>
void map_rows(const at::Tensor& from, const at::Tensor& to, const Work& work) {
  const std::int64_t columns = from.size(-1);
  ASSERT(columns > 0, "rows without columns");
  const at::Tensor input = from.contiguous();
  const ElementType type = element_type(input.scalar_type()), stored = element_type(to.scalar_type());
  const std::int64_t rows = input.numel() / columns;
  const std::int64_t together = std::max<std::int64_t>(1, 2048 / columns);
  const RowVectors& vectors = row_vectors();
  const auto handle = [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> buffer(stored == ElementType::float32 ? 0 : static_cast<std::size_t>(together * columns));
    for (std::int64_t first = begin; first < end; first += together) {
      const std::int64_t count = std::min(together, end - first);
      float* const x = stored == ElementType::float32 ? to.mutable_data_ptr<float>() + first * columns : buffer.data();
      vectors.widen(type, element(input, first * columns), count * columns, x);
      work(first, count, x);
      if (stored != ElementType::float32)
        vectors.narrow(stored, x, count * columns, mutable_element(to, first * columns));
    }
  };
  at::parallel_for(0, rows, std::max<std::int64_t>(1, numbers_per_task / columns), handle);
}

at::Tensor like(const at::Tensor& x, at::ScalarType type) {
  return at::empty(x.sizes(), x.options().dtype(type));
}

}  // namespace

at::Tensor normalised(const at::Tensor& x, const NormOptions& options) {
  at::Tensor result = like(x, at::kFloat);
  const RowVectors& vectors = row_vectors();
  map_rows(x, result, [&, columns = x.size(-1)](std::int64_t, std::int64_t count, float* y) {
    for (std::int64_t row = 0; row < count; ++row)
      vectors.normalise(options.kind == NormKind::layer, options.epsilon, columns, y + row * columns);
  });
  return result;
}

at::Tensor norm_rows(const at::Tensor& x, const NormOptions& options, const at::Tensor& weight, double offset,
                     const at::Tensor& bias) {
  const std::int64_t columns = x.size(-1);
  const RowParameters weights(weight, columns), biases(bias, columns);
  at::Tensor result = like(x, weight.scalar_type());
  const RowVectors& vectors = row_vectors();
  map_rows(x, result, [&](std::int64_t first, std::int64_t count, float* y) {
    for (std::int64_t row = first; row < first + count; ++row, y += columns) {
      vectors.normalise(options.kind == NormKind::layer, options.epsilon, columns, y);
      vectors.scale(weights.at_row(row), static_cast<float>(offset), biases.at_row(row), columns, y);
    }
  });
  return result;
}

at::Tensor scaled_rows(const at::Tensor& y, const at::Tensor& weight, double offset, const at::Tensor& bias) {
  const std::int64_t columns = y.size(-1);
  const RowParameters weights(weight, columns), biases(bias, columns);
  at::Tensor result = like(y, weight.scalar_type());
  const RowVectors& vectors = row_vectors();
  map_rows(y, result, [&](std::int64_t first, std::int64_t count, float* x) {
    for (std::int64_t row = first; row < first + count; ++row, x += columns)
      vectors.scale(weights.at_row(row), static_cast<float>(offset), biases.at_row(row), columns, x);
  });
  return result;
}

at::Tensor rotated(const at::Tensor& heads, const at::Tensor& cosine, const at::Tensor& sine) {
  ASSERT(heads.dim() == 4 && cosine.sizes() == sine.sizes() && cosine.size(0) == heads.size(1),
         "tables of angles that do not fit the heads");
  const std::int64_t positions = heads.size(1), count = heads.size(2), half = cosine.size(1);
  ASSERT(2 * half <= heads.size(3), "{} pairs of {} dimensions", half, heads.size(3));
  const at::Tensor c = cosine.to(at::kFloat).contiguous(), s = sine.to(at::kFloat).contiguous();
  at::Tensor result = like(heads, heads.scalar_type());
  const auto* const cosines = c.const_data_ptr<float>();
  const auto* const sines = s.const_data_ptr<float>();
  const RowVectors& vectors = row_vectors();
  map_rows(heads, result, [&, stride = heads.size(3)](std::int64_t first, std::int64_t rows, float* x) {
    const std::int64_t end = first + rows;
    for (std::int64_t row = first; row < end;) {
      const std::int64_t angles = row / count % positions * half;
      const std::int64_t same = std::min(count - row % count, end - row);  // heads of one position
      vectors.rotate(cosines + angles, sines + angles, half, same, stride, x);
      row += same;
      x += same * stride;
    }
  });
  return result;
}

bool all_finite(const at::Tensor& x) {
  const at::Tensor values = x.contiguous();
  const ElementType type = element_type(values.scalar_type());
  std::atomic<bool> finite = true;
  at::parallel_for(0, values.numel(), numbers_per_task, [&](std::int64_t begin, std::int64_t end) {
    if (std::isnan(row_vectors().poison(type, element(values, begin), end - begin))) finite = false;
  });
  return finite;
}

}  // namespace gainlens::kernels
