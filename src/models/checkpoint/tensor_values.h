#pragma once

#include "formats/scaled_values.h"
#include "formats/tensor_file.h"

#include <ATen/core/Tensor.h>

#include <string_view>

namespace gainlens::models {

/// A copy of a mapped tensor in the compute dtype. Quantised tensors go through float32. The bytes need no alignment.
/// Parts of it are read, checked and converted on all threads; the bits do not depend on their number.
///
/// @param where  name of the checkpoint in messages
/// @throws InvalidArgument  NaN or infinity in the file, or a finite number that becomes infinite in `dtype` (the
///     message names the tensor, how many, and the first place); the file was shortened while it was read
at::Tensor read_values(const formats::TensorEntry& entry, at::ScalarType dtype, std::string_view where);

/// The same for a tensor of numbers and scales: its values, through float32.
at::Tensor read_values(const formats::ScaledTensor& tensor, at::ScalarType dtype, std::string_view where);

}  // namespace gainlens::models
