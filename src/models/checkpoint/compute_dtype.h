#pragma once

#include "formats/tensor_file.h"

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace gainlens::models {

/// The compute dtype named on the command line.
/// @param name  float64, float32, bfloat16 or float16
/// @throws InvalidArgument  anything else (nearest match named)
at::ScalarType parse_dtype(std::string_view name);

/// "float32" and so on: the inverse of parse_dtype.
/// @throws InvalidArgument  a dtype no model is computed in (names it)
std::string_view dtype_name(at::ScalarType dtype);

/// The libtorch dtype of weights on disk; empty for integers and booleans, which no supported checkpoint holds as
/// weights.
std::optional<at::ScalarType> weight_dtype(formats::DType dtype);

}  // namespace gainlens::models
