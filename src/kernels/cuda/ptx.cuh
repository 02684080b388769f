#pragma once

// Every instruction of the device that the fused kernel uses in addition to plain C++.
// tests/kernels/cuda_emulation/ptx.h is the version for the host, by the same definitions (PTX ISA, "Warp Level Matrix
// Multiply-Accumulate Instructions", "Asynchronous copy").

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#define GAINLENS_DEVICE __device__ __forceinline__
#define GAINLENS_UNROLL _Pragma("unroll")

namespace gainlens::kernels::device {

GAINLENS_DEVICE int thread_index() {
  return static_cast<int>(threadIdx.x);
}
GAINLENS_DEVICE int block_x() {
  return static_cast<int>(blockIdx.x);
}
GAINLENS_DEVICE int block_y() {
  return static_cast<int>(blockIdx.y);
}
GAINLENS_DEVICE int grid_y() {
  return static_cast<int>(gridDim.y);
}

/// The block's dynamic shared memory.
GAINLENS_DEVICE char* shared_memory() {
  extern __shared__ __align__(128) char memory[];
  return memory;
}

GAINLENS_DEVICE void block_barrier() {
  __syncthreads();
}
GAINLENS_DEVICE void warp_barrier() {
  __syncwarp();
}
GAINLENS_DEVICE float shuffle_xor(float value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}
GAINLENS_DEVICE double shuffle_xor(double value, int lanes) {
  return __shfl_xor_sync(0xffffffffu, value, lanes);
}
GAINLENS_DEVICE bool any_of_warp(bool condition) {
  return __any_sync(0xffffffffu, condition) != 0;
}

/// 2^x to about 2 units in the last place; 0 for large negative x.
GAINLENS_DEVICE float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

GAINLENS_DEVICE std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Starts copying 16 bytes from global to shared memory; copies zeros if not `inside`. The source must be readable in
/// both cases.
GAINLENS_DEVICE void copy_async_16(void* shared, const void* global, bool inside) {
  const int bytes = inside ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global), "r"(bytes)
               : "memory");
}
GAINLENS_DEVICE void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `pending` of this thread's latest groups of copies are unfinished.
template <int pending>
GAINLENS_DEVICE void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Loads four 8 x 8 matrices of 16-bit values. Lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix i.
GAINLENS_DEVICE void load_matrices(std::uint32_t (&parts)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
               : "r"(shared_address(row))
               : "memory");
}
GAINLENS_DEVICE void load_matrices_transposed(std::uint32_t (&parts)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
               : "r"(shared_address(row))
               : "memory");
}

/// c [16, 8] += a [16, 16] b [16, 8], bfloat16 with float32 sums.
GAINLENS_DEVICE void multiply_add_bfloat16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                           std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
GAINLENS_DEVICE void multiply_add_float16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                          std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Two floats rounded to bfloat16, `low` in the lower half.
GAINLENS_DEVICE std::uint32_t pack_bfloat16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
/// a b + c in both halves, each rounded once to bfloat16.
GAINLENS_DEVICE std::uint32_t fused_multiply_add_bfloat16(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
GAINLENS_DEVICE std::uint16_t bits_of_bfloat16(float value) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(value));
}
GAINLENS_DEVICE std::uint16_t bits_of_float16(float value) {
  return __half_as_ushort(__float2half_rn(value));
}
GAINLENS_DEVICE float float_of_bits(std::uint32_t bits) {
  return __uint_as_float(bits);
}

}  // namespace gainlens::kernels::device
