#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace gainlens::kernels {

/// The code that multiplies activations with a weight. It decides how the weight lies in memory.
enum class ProductKernel {
  strips,          ///< our micro-kernel (strip_products-inl.h), float32
  widened_strips,  ///< the same; weights in 16 bits, each panel widened to float32 before it is multiplied
  pair_strips,     ///< our micro-kernel of pairs of bfloat16 (pair_strips.h)
  brgemm,          ///< oneDNN's micro-kernel (through libtorch) in our blocks; float32 or bfloat16
  libtorch,        ///< at::linear on the plain weight
};

std::string_view name_of(ProductKernel kernel);

/// Whether this machine can run the kernel on weights of this type.
bool runs_here(ProductKernel kernel, c10::ScalarType type);

/// The kernel for weights of this type on this machine. It follows from the processor alone, by the table below, and
/// never from a measurement while the program runs: the same machine gives the same bits every time.
///
/// | type | processor | kernel |
/// | --- | --- | --- |
/// | float64 | any | libtorch |
/// | float32 | with AVX-512 | brgemm |
/// | float32 | any other | strips |
/// | bfloat16 | with AMX | brgemm |
/// | bfloat16 | with AVX512_BF16, without AMX | pair_strips |
/// | bfloat16, float16 | any other | widened_strips |
///
/// docs/performance.md has the measurements behind it.
ProductKernel product_kernel(c10::ScalarType type);

/// The kernel of matrices in float32 that change with every step of a training (matrix_product.h): strips on
/// processors with AVX-512 that are not Intel's, where the library behind libtorch (MKL) uses half of the width of a
/// vector; else libtorch. docs/performance.md has the measurements.
ProductKernel training_product_kernel();

/// The instruction set of the vector code and the kernel of each type, in words: for `--version`.
std::string describe_processor();

}  // namespace gainlens::kernels
