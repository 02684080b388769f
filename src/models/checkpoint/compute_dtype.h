#pragma once

#include "formats/tensor_file.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gainlens::models {

/// What models are computed in. torch_dtype.h says which dtype of libtorch it is.
enum class ComputeDtype { float64, float32, bfloat16, float16 };

inline constexpr std::array all_compute_dtypes = {ComputeDtype::float64, ComputeDtype::float32, ComputeDtype::bfloat16,
                                                  ComputeDtype::float16};

/// @param name  float64, float32, bfloat16 or float16, or the short form fp64, fp32, bf16 or fp16
/// @param what  names the option or the key in messages
/// @throws InvalidArgument  any other name (the message suggests the nearest)
ComputeDtype parse_compute_dtype(std::string_view name, std::string_view what);

/// "float32" and so on: the long name.
std::string_view name_of(ComputeDtype dtype);

/// Bytes of one element.
std::uint64_t bytes_of(ComputeDtype dtype);

/// The dtype of weights on disk. Empty for integers and booleans: no supported checkpoint stores weights in these.
std::optional<ComputeDtype> stored_compute_dtype(formats::DType dtype);

}  // namespace gainlens::models
