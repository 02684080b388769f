#pragma once

#include <c10/core/Device.h>

#include <string_view>

namespace gainlens::kernels {

/// The device of a name, ready to compute: "cpu", "cuda:N" for the GPU of that number, or "cuda" for the first one.
///
/// No program is linked with the part of libtorch that computes on GPUs: most machines have none, and loading it takes
/// seconds. It is loaded here, by the first call that names a GPU. Products of float32 matrices are in float32 there
/// (never in TF32), and sums of 16-bit products in float32.
/// @throws InvalidArgument  another name; libtorch_cuda.so or one of its libraries cannot be loaded; no GPU of this
///     number can be used
at::Device compute_device(std::string_view name);

}  // namespace gainlens::kernels
