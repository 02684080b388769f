#include "models/checkpoint/torch_dtype.h"

#include "core/error.h"

namespace gainlens::models {

at::ScalarType scalar_type(ComputeDtype dtype) {
  switch (dtype) {
    case ComputeDtype::float64:
      return at::kDouble;
    case ComputeDtype::float32:
      return at::kFloat;
    case ComputeDtype::bfloat16:
      return at::kBFloat16;
    case ComputeDtype::float16:
      return at::kHalf;
  }
  throw_internal_error(__FILE__, __LINE__, "a compute dtype that no one knows");
}

ComputeDtype compute_dtype(at::ScalarType dtype) {
  for (const ComputeDtype known : all_compute_dtypes) {
    if (scalar_type(known) == dtype) return known;
  }
  throw_invalid("dtype: {}; models are computed in float64, float32, bfloat16 or float16", c10::toString(dtype));
}

at::ScalarType parse_dtype(std::string_view name, std::string_view what) {
  return scalar_type(parse_compute_dtype(name, what));
}

std::string_view dtype_name(at::ScalarType dtype) {
  return name_of(compute_dtype(dtype));
}

std::optional<at::ScalarType> weight_dtype(formats::DType dtype) {
  const auto stored = stored_compute_dtype(dtype);
  if (!stored) return std::nullopt;
  return scalar_type(*stored);
}

}  // namespace gainlens::models
