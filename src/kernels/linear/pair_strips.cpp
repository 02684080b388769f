#include "kernels/linear/pair_strips.h"

#include "core/check.h"
#include "core/error.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <cstddef>
#include <cstring>

namespace gainlens::kernels {

#ifdef __x86_64__
namespace {

// As in strip_products-inl.h: 24 sums, the two vectors of a panel's row and one broadcast pair fill the registers.
// Highway 1.0 has no instruction set with AVX512_BF16, so this file names its instructions itself.
constexpr std::int64_t rows = 12, vectors = 2, lanes = 16;

#define GAINLENS_AVX512_BF16 __attribute__((target("avx512f,avx512bf16")))

GAINLENS_AVX512_BF16 void multiply_strip(std::int64_t pairs, const std::byte* left, std::int64_t left_bytes,
                                         const std::byte* panel, bool add, float* tile, std::int64_t tile_stride) {
  __m512 sums[rows][vectors];
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < rows; ++i) {  // NOLINT(modernize-loop-convert): written as the loops below
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < vectors; ++j) sums[i][j] = _mm512_setzero_ps();
  }
  constexpr std::int64_t vector_bytes = 64, pair_bytes = 4;
  for (std::int64_t k = 0; k < pairs; ++k) {
    __m512i columns[vectors];
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < vectors; ++j) columns[j] = _mm512_load_si512(panel + (k * vectors + j) * vector_bytes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int32_t pair = 0;
      std::memcpy(&pair, left + i * left_bytes + k * pair_bytes, sizeof(pair));
      const __m512i both = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
      for (std::int64_t j = 0; j < vectors; ++j)
        sums[i][j] =
            _mm512_dpbf16_ps(sums[i][j], reinterpret_cast<__m512bh>(both), reinterpret_cast<__m512bh>(columns[j]));
    }
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (std::int64_t j = 0; j < vectors; ++j) {
      float* const place = tile + i * tile_stride + j * lanes;
      _mm512_store_ps(place, add ? _mm512_add_ps(sums[i][j], _mm512_load_ps(place)) : sums[i][j]);
    }
  }
}

}  // namespace

bool has_pair_strips() {
  return __builtin_cpu_supports("avx512f") > 0 && __builtin_cpu_supports("avx512bf16") > 0;
}

void multiply_pairs(std::int64_t strips, std::int64_t pairs, const void* left, std::int64_t left_stride,
                    const void* panel, bool add, float* tile, std::int64_t tile_stride) {
  ASSERT(has_pair_strips(), "products of pairs on a processor without AVX512_BF16");
  const std::int64_t left_bytes = left_stride * 2;
  for (std::int64_t strip = 0; strip < strips; ++strip) {
    multiply_strip(pairs, static_cast<const std::byte*>(left) + strip * rows * left_bytes, left_bytes,
                   static_cast<const std::byte*>(panel), add, tile + strip * rows * tile_stride, tile_stride);
  }
}
#else
bool has_pair_strips() {
  return false;
}

void multiply_pairs(std::int64_t, std::int64_t, const void*, std::int64_t, const void*, bool, float*, std::int64_t) {
  throw_internal_error(__FILE__, __LINE__, "products of pairs on a processor without AVX512_BF16");
}
#endif

}  // namespace gainlens::kernels
