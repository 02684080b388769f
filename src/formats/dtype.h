#pragma once

#include "formats/tensor_file.h"

#include <optional>
#include <string>
#include <string_view>

namespace gainlens::formats {

/// The element type that safetensors writes as `name`; empty for a type that is not read.
std::optional<DType> dtype_named(std::string_view name);

/// "F64, F32, ...": the allowed types, for messages about a safetensors file.
std::string allowed_dtypes();

}  // namespace gainlens::formats
