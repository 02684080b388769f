#pragma once

#include "formats/tensor_file.h"
#include "models/checkpoint/compute_dtype.h"

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace gainlens::models {

at::ScalarType scalar_type(ComputeDtype dtype);

/// @throws InvalidArgument  a dtype that models are not computed in (the message names it)
ComputeDtype compute_dtype(at::ScalarType dtype);

/// The dtype of libtorch for parse_compute_dtype().
at::ScalarType parse_dtype(std::string_view name, std::string_view what);

/// "float32" and so on: the long name of a dtype that parse_dtype() knows.
/// @throws InvalidArgument  as compute_dtype()
std::string_view dtype_name(at::ScalarType dtype);

/// The dtype of libtorch for stored_compute_dtype().
std::optional<at::ScalarType> weight_dtype(formats::DType dtype);

}  // namespace gainlens::models
