#pragma once

// The host version of src/kernels/cuda/ptx.cuh: the same functions, with the fragments of the PTX ISA, run by
// machine.h.

#include "kernels/cuda_emulation/machine.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <c10/util/bit_cast.h>

#include <cmath>
#include <cstdint>

#define GAINLENS_DEVICE inline
#define GAINLENS_UNROLL

namespace gainlens::kernels::device {

using std::isnan;

float shuffle_xor(float value, int lanes);
double shuffle_xor(double value, int lanes);
bool any_of_warp(bool condition);

inline float exp2_fast(float x) {
  const float result = std::exp2(x);
  return result < 0x1p-126f ? 0 : result;  // the device's instruction also flushes small results to 0
}

template <int pending>
void copy_async_wait() {
  copy_async_wait_for(pending);
}

void load_matrices(std::uint32_t (&parts)[4], const void* row);
void load_matrices_transposed(std::uint32_t (&parts)[4], const void* row);
void multiply_add_bfloat16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
void multiply_add_float16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);

inline float float_of_bits(std::uint32_t bits) {
  return c10::bit_cast<float>(bits);
}
inline std::uint16_t bits_of_bfloat16(float value) {
  return c10::BFloat16(value).x;
}
inline std::uint16_t bits_of_float16(float value) {
  return c10::Half(value).x;
}
inline std::uint32_t pack_bfloat16(float low, float high) {
  return static_cast<std::uint32_t>(bits_of_bfloat16(high)) << 16 | bits_of_bfloat16(low);
}
std::uint32_t fused_multiply_add_bfloat16(std::uint32_t a, std::uint32_t b, std::uint32_t c);

}  // namespace gainlens::kernels::device
