#pragma once

#include "formats/tensor_file.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gainlens::formats {

/// The dtype that GGUF files write as this number; empty for a type that is not read.
std::optional<DType> dtype_of_ggml(std::uint32_t number);

/// "IQ4_XS (type 23)": also for types that are not read; "type 77" for an unknown number.
std::string ggml_type_name(std::uint32_t number);

/// "F32, F16, ...": the allowed types, for messages about a GGUF file.
std::string allowed_ggml_types();

}  // namespace gainlens::formats
