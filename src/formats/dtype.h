#pragma once

#include "formats/tensor_file.h"

#include <optional>
#include <string>
#include <string_view>

namespace gainlens::formats {

/// The element type that safetensors writes as `name`; empty for one we do not read.
std::optional<DType> dtype_named(std::string_view name);

/// "F64, F32, ...": what a message about a safetensors file says is allowed.
std::string allowed_dtypes();

}  // namespace gainlens::formats
