#pragma once

#include "formats/tensor_file.h"

#include <cstdint>
#include <optional>
#include <string>

namespace gainlens::formats {

/// The dtype that GGUF files write as this number; empty for one we do not read.
std::optional<DType> dtype_of_ggml(std::uint32_t number);

/// "IQ4_XS (type 23)": also for types that we do not read; "type 77" where the number is nobody's.
std::string ggml_type_name(std::uint32_t number);

/// "F32, F16, ...": what a message about a GGUF file says is allowed.
std::string allowed_ggml_types();

}  // namespace gainlens::formats
