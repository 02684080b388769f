#pragma once

#include "formats/tensor_file.h"

#include <cstddef>
#include <span>

namespace gainlens::formats {

/// Whether a dtype stores blocks of several elements with their own scales.
bool is_quantised(DType dtype);

/// The float32 values of whole blocks, bit for bit those of the public Python package `gguf`.
///
/// @param blocks  a whole number of blocks of `dtype` (bytes_per_block)
/// @param values  elements_per_block(dtype) for each block
/// @throws InternalError  sizes that do not fit, a dtype that is not quantised
void dequantise(DType dtype, std::span<const std::byte> blocks, std::span<float> values);

}  // namespace gainlens::formats
