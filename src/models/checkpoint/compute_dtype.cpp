#include "models/checkpoint/compute_dtype.h"

#include "core/error.h"
#include "core/nearest.h"

#include <array>
#include <string>
#include <utility>

namespace gainlens::models {
namespace {

struct ComputeDtype {
  std::string_view name, short_name;
  at::ScalarType dtype;
};

constexpr std::array compute_dtypes = {
    ComputeDtype{"float64", "fp64", at::kDouble},
    ComputeDtype{"float32", "fp32", at::kFloat},
    ComputeDtype{"bfloat16", "bf16", at::kBFloat16},
    ComputeDtype{"float16", "fp16", at::kHalf},
};

}  // namespace

at::ScalarType parse_dtype(std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  for (const auto& [known, short_name, dtype] : compute_dtypes) {
    if (name == known || name == short_name) return dtype;
    names.emplace_back(known);
  }
  throw_invalid("{}: '{}'; must be float64, float32, bfloat16 or float16{}", what, printable(name, 40),
                did_you_mean(name.substr(0, 40), names));
}

std::string_view dtype_name(at::ScalarType dtype) {
  for (const ComputeDtype& known : compute_dtypes) {
    if (known.dtype == dtype) return known.name;
  }
  throw_invalid("dtype: {}; models are computed in float64, float32, bfloat16 or float16", c10::toString(dtype));
}

std::optional<at::ScalarType> weight_dtype(formats::DType dtype) {
  switch (dtype) {
    case formats::DType::f64:
      return at::kDouble;
    case formats::DType::f32:
      return at::kFloat;
    case formats::DType::f16:
      return at::kHalf;
    case formats::DType::bf16:
      return at::kBFloat16;
    default:
      return std::nullopt;
  }
}

}  // namespace gainlens::models
