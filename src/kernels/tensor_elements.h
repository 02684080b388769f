#pragma once

#include "core/error.h"
#include "kernels/element_type.h"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

namespace gainlens::kernels {

/// @throws InternalError  a type that vector code does not store
inline ElementType element_type(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return ElementType::float32;
    case at::kBFloat16:
      return ElementType::bfloat16;
    case at::kHalf:
      return ElementType::float16;
    default:
      throw_internal_error(__FILE__, __LINE__, "a type that vector code does not store");
  }
}

/// The place of an element in the memory of a tensor, counted from its first one.
inline const std::byte* element(const at::Tensor& tensor, std::int64_t index) {
  return static_cast<const std::byte*>(tensor.const_data_ptr()) +
         index * static_cast<std::int64_t>(tensor.element_size());
}
inline std::byte* mutable_element(const at::Tensor& tensor, std::int64_t index) {
  return static_cast<std::byte*>(tensor.mutable_data_ptr()) + index * static_cast<std::int64_t>(tensor.element_size());
}

}  // namespace gainlens::kernels
