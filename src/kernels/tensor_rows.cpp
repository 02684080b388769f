#include "kernels/tensor_rows.h"

#include "core/error.h"

#include <ATen/ATen.h>

namespace gainlens::kernels {
namespace {

/// Calls work with a null pointer of the element type.
template <typename Work>
void with_element_type(at::ScalarType type, const Work& work) {
  switch (type) {
    case at::kFloat:
      return work(static_cast<float*>(nullptr));
    case at::kDouble:
      return work(static_cast<double*>(nullptr));
    case at::kHalf:
      return work(static_cast<at::Half*>(nullptr));
    case at::kBFloat16:
      return work(static_cast<at::BFloat16*>(nullptr));
    default:
      ASSERT(false, "rows of dtype {}", at::toString(type));
  }
}

}  // namespace

TensorRows::TensorRows(const at::Tensor& tensor) : tensor_(tensor.stride(2) == 1 ? tensor : tensor.contiguous()) {}

template <typename Real>
void TensorRows::load(std::int64_t head, std::int64_t position, Real* row) const {
  const std::int64_t first = head * tensor_.stride(0) + position * tensor_.stride(1);
  const std::int64_t count = tensor_.size(2);
  with_element_type(tensor_.scalar_type(), [&]<typename Element>(Element*) {
    const Element* source = tensor_.const_data_ptr<Element>() + first;
    for (std::int64_t i = 0; i < count; ++i) row[i] = static_cast<Real>(source[i]);
  });
}

template <typename Real>
void store_row(const Real* row, std::int64_t count, Real factor, const at::Tensor& tensor, std::int64_t first) {
  with_element_type(tensor.scalar_type(), [&]<typename Element>(Element*) {
    Element* target = tensor.mutable_data_ptr<Element>() + first;
    for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<Element>(row[i] * factor);
  });
}

template void TensorRows::load(std::int64_t, std::int64_t, float*) const;
template void TensorRows::load(std::int64_t, std::int64_t, double*) const;
template void store_row(const float*, std::int64_t, float, const at::Tensor&, std::int64_t);
template void store_row(const double*, std::int64_t, double, const at::Tensor&, std::int64_t);

}  // namespace gainlens::kernels
