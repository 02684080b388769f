#pragma once

#include "formats/tensor_file.h"

#include <ATen/core/Tensor.h>

#include <string_view>

namespace gainlens::models {

/// A copy of a mapped tensor in the compute dtype, quantised ones by way of float32; the bytes need no alignment.
///
/// @param where  the checkpoint, for messages
/// @throws InvalidArgument  NaN or infinity in the file, or a finite number that becomes infinite in `dtype`: names the
///                          tensor, how many and the first place; a file that was shortened while it was read
at::Tensor read_values(const formats::TensorEntry& entry, at::ScalarType dtype, std::string_view where);

}  // namespace gainlens::models
