#pragma once

#include "formats/tensor_file.h"

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace gainlens::models {

/// The compute dtype of this name.
/// @param name  float64, float32, bfloat16 or float16, or the short form fp64, fp32, bf16 or fp16
/// @param what  names the option or the key in messages
/// @throws InvalidArgument  any other name (the message suggests the nearest)
at::ScalarType parse_dtype(std::string_view name, std::string_view what);

/// "float32" and so on: the long name of a dtype that parse_dtype() knows.
/// @throws InvalidArgument  a dtype that models are not computed in (the message names it)
std::string_view dtype_name(at::ScalarType dtype);

/// The libtorch dtype of weights on disk. Empty for integers and booleans: no supported checkpoint stores weights in
/// these.
std::optional<at::ScalarType> weight_dtype(formats::DType dtype);

}  // namespace gainlens::models
