#include "models/checkpoint/compute_dtype.h"

#include "core/error.h"
#include "core/nearest.h"

#include <string>
#include <vector>

namespace gainlens::models {
namespace {

struct DtypeFacts {
  std::string_view name, short_name;
  std::uint64_t bytes;
};

DtypeFacts facts_of(ComputeDtype dtype) {
  switch (dtype) {
    case ComputeDtype::float64:
      return {"float64", "fp64", 8};
    case ComputeDtype::float32:
      return {"float32", "fp32", 4};
    case ComputeDtype::bfloat16:
      return {"bfloat16", "bf16", 2};
    case ComputeDtype::float16:
      return {"float16", "fp16", 2};
  }
  throw_internal_error(__FILE__, __LINE__, "a compute dtype that no one knows");
}

}  // namespace

ComputeDtype parse_compute_dtype(std::string_view name, std::string_view what) {
  std::vector<std::string> names;
  for (const ComputeDtype dtype : all_compute_dtypes) {
    const DtypeFacts known = facts_of(dtype);
    if (name == known.name || name == known.short_name) return dtype;
    names.emplace_back(known.name);
  }
  throw_invalid("{}: '{}'; must be float64, float32, bfloat16 or float16{}", what, printable(name, 40),
                did_you_mean(name.substr(0, 40), names));
}

std::string_view name_of(ComputeDtype dtype) {
  return facts_of(dtype).name;
}

std::uint64_t bytes_of(ComputeDtype dtype) {
  return facts_of(dtype).bytes;
}

std::optional<ComputeDtype> stored_compute_dtype(formats::DType dtype) {
  switch (dtype) {
    case formats::DType::f64:
      return ComputeDtype::float64;
    case formats::DType::f32:
      return ComputeDtype::float32;
    case formats::DType::f16:
      return ComputeDtype::float16;
    case formats::DType::bf16:
      return ComputeDtype::bfloat16;
    default:
      return std::nullopt;
  }
}

}  // namespace gainlens::models
