#pragma once

// Tiles in shared memory and the products over them. Include after ptx.cuh or its host version.

#include "kernels/cuda/fused_arguments.h"

namespace gainlens::kernels::device {

struct Bfloat16 {
  using Stored = std::uint16_t;
  using Centred = std::uint16_t;
  static constexpr FusedElement element = FusedElement::bfloat16;
  static constexpr bool tensor_cores = true;
  static GAINLENS_DEVICE void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                           std::uint32_t b1) {
    multiply_add_bfloat16(c, a, b0, b1);
  }
  static GAINLENS_DEVICE Stored stored(float value) { return bits_of_bfloat16(value); }
};

struct Float16 {
  using Stored = std::uint16_t;
  using Centred = std::uint16_t;  // bfloat16 here too: squares would exceed the range of float16
  static constexpr FusedElement element = FusedElement::float16;
  static constexpr bool tensor_cores = true;
  static GAINLENS_DEVICE void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                           std::uint32_t b1) {
    multiply_add_float16(c, a, b0, b1);
  }
  static GAINLENS_DEVICE Stored stored(float value) { return bits_of_float16(value); }
};

struct Float32 {
  using Stored = float;
  using Centred = float;
  static constexpr FusedElement element = FusedElement::float32;
  static constexpr bool tensor_cores = false;
  static GAINLENS_DEVICE Stored stored(float value) { return value; }
};

/// The sizes of one thread block. Warp w has the query rows that start at 16 (w % 4). Above 128 dimensions a second set
/// of warps has the same rows and the other half of the value dimensions, since the registers of a thread hold the sums
/// of 128.
template <typename Element, int width>
struct FusedLayout {
  static constexpr int value_parts = width > 128 ? 2 : 1;
  static constexpr int part_dims = width / value_parts;  ///< value dimensions of a warp
  static constexpr int threads = 128 * value_parts;
  static constexpr int tile_keys = width > 128                            ? 16
                                   : width > 64 || !Element::tensor_cores ? 32
                                                                          : 64;  // larger tiles would spill registers
  static constexpr int chain_tiles = fused_chain_keys(Element::element) > tile_keys
                                         ? fused_chain_keys(Element::element) / tile_keys
                                         : 1;
  static constexpr int value_blocks = part_dims / 8;  ///< of 8 dimensions, the width of a matrix instruction
  static constexpr int key_blocks = tile_keys / 8;
  static constexpr std::int64_t scratch_doubles = fused_scratch_doubles(width);
  static constexpr int first_keys = 8;
  static constexpr int summed_fields = 11;

  using Stored = typename Element::Stored;
  static constexpr int tile_bytes = tile_keys * width * static_cast<int>(sizeof(Stored));
  static constexpr int query_bytes = 64 * width * static_cast<int>(sizeof(Stored));
  static constexpr int first_scores_bytes = 64 * first_keys * 4;
  static constexpr int weights_bytes = Element::tensor_cores ? 0 : value_parts * 64 * tile_keys * 4;
  static constexpr int partial_bytes = value_parts > 1 ? 64 * summed_fields * 4 : 0;
  static constexpr int shared_bytes = query_bytes + 4 * tile_bytes + first_scores_bytes + weights_bytes + partial_bytes;
};

/// Index of an element in a tile with rows of `width`. The pieces of 16 bytes in a row are permuted, in an order that
/// depends on the row. So eight rows of one column of pieces lie in different banks.
template <typename T, int width>
GAINLENS_DEVICE int tile_index(int row, int column) {
  constexpr int piece = 16 / static_cast<int>(sizeof(T));
  return row * width + (((column / piece) ^ (row & 7)) * piece) + column % piece;
}

/// Starts copying rows [first, first + rows) of a head into a tile. Rows from `length` on become zero.
template <typename T, int width>
GAINLENS_DEVICE void load_tile(T* tile, const T* head, int first, int rows, int length, int threads) {
  constexpr int piece = 16 / static_cast<int>(sizeof(T)), pieces = width / piece;
  for (int i = thread_index(); i < rows * pieces; i += threads) {
    const int row = i / pieces, column = i % pieces * piece;
    const bool inside = first + row < length;
    const T* source = head + static_cast<std::int64_t>(inside ? first + row : 0) * width + column;
    copy_async_16(tile + tile_index<T, width>(row, column), source, inside);
  }
}

/// scores [16 rows of the warp, tile_keys] = queries keys^T. A thread holds rows g and g + 8 (g = lane / 4; elements 0,
/// 1 and 2, 3) and columns 2 (lane % 4) + {0, 1} of every 8 keys.
template <typename Element, int width>
GAINLENS_DEVICE void score_products(float (&scores)[FusedLayout<Element, width>::key_blocks][4],
                                    const typename Element::Stored* queries, const typename Element::Stored* keys,
                                    int warp_row) {
  using Layout = FusedLayout<Element, width>;
  using T = typename Element::Stored;
  const int lane = thread_index() % 32;
  GAINLENS_UNROLL
  for (int block = 0; block < Layout::key_blocks; ++block) {
    GAINLENS_UNROLL
    for (int i = 0; i < 4; ++i) scores[block][i] = 0;
  }
  if constexpr (Element::tensor_cores) {
    GAINLENS_UNROLL
    for (int k = 0; k < width; k += 16) {
      std::uint32_t a[4];
      load_matrices(a, queries + tile_index<T, width>(warp_row + lane % 16, k + lane / 16 * 8));
      GAINLENS_UNROLL
      for (int block = 0; block < Layout::key_blocks; block += 2) {
        std::uint32_t b[4];
        load_matrices(b, keys + tile_index<T, width>(block * 8 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8));
        Element::multiply_add(scores[block], a, b[0], b[1]);
        Element::multiply_add(scores[block + 1], a, b[2], b[3]);
      }
    }
  } else {
    for (int k = 0; k < width; ++k) {
      const float rows[2] = {queries[tile_index<T, width>(warp_row + lane / 4, k)],
                             queries[tile_index<T, width>(warp_row + lane / 4 + 8, k)]};
      GAINLENS_UNROLL
      for (int block = 0; block < Layout::key_blocks; ++block) {
        GAINLENS_UNROLL
        for (int i = 0; i < 4; ++i) {
          scores[block][i] += rows[i / 2] * keys[tile_index<T, width>(block * 8 + lane % 4 * 2 + i % 2, k)];
        }
      }
    }
  }
}

/// Splits x^2 of both halves into the sum of two bfloat16. This is exact except for underflow: the square has 16 bits,
/// and the second number holds what the first leaves.
GAINLENS_DEVICE void split_square(std::uint32_t x, std::uint32_t& high, std::uint32_t& low) {
  high = fused_multiply_add_bfloat16(x, x, 0x80008000u);  // plus -0: the product alone
  low = fused_multiply_add_bfloat16(x, x, high ^ 0x80008000u);
}

/// Adds the products of weights [16, tile_keys] with v - c and with (v - c)^2. With tensor cores the weights are
/// bfloat16 (`packed`). Without, they are in `plain` [16, tile_keys] of this warp.
template <typename Element, int width>
GAINLENS_DEVICE void value_products(float (&means)[FusedLayout<Element, width>::value_blocks][4],
                                    float (&squares)[FusedLayout<Element, width>::value_blocks][4],
                                    const std::uint32_t (&packed)[FusedLayout<Element, width>::key_blocks][2],
                                    const float* plain, const typename Element::Centred* values, int first_dim) {
  using Layout = FusedLayout<Element, width>;
  using T = typename Element::Centred;
  const int lane = thread_index() % 32;
  if constexpr (Element::tensor_cores) {
    GAINLENS_UNROLL
    for (int k = 0; k < Layout::tile_keys; k += 16) {
      const std::uint32_t a[4] = {packed[k / 8][0], packed[k / 8][1], packed[k / 8 + 1][0], packed[k / 8 + 1][1]};
      GAINLENS_UNROLL
      for (int block = 0; block < Layout::value_blocks; block += 2) {
        std::uint32_t b[4], high[4], low[4];
        load_matrices_transposed(b,
                                 values + tile_index<T, width>(k + lane % 16, first_dim + block * 8 + lane / 16 * 8));
        GAINLENS_UNROLL
        for (int i = 0; i < 4; ++i) split_square(b[i], high[i], low[i]);
        multiply_add_bfloat16(means[block], a, b[0], b[1]);
        multiply_add_bfloat16(means[block + 1], a, b[2], b[3]);
        multiply_add_bfloat16(squares[block], a, high[0], high[1]);
        multiply_add_bfloat16(squares[block + 1], a, high[2], high[3]);
        multiply_add_bfloat16(squares[block], a, low[0], low[1]);
        multiply_add_bfloat16(squares[block + 1], a, low[2], low[3]);
      }
    }
  } else {
    for (int k = 0; k < Layout::tile_keys; ++k) {
      const float rows[2] = {plain[lane / 4 * Layout::tile_keys + k], plain[(lane / 4 + 8) * Layout::tile_keys + k]};
      GAINLENS_UNROLL
      for (int block = 0; block < Layout::value_blocks; ++block) {
        GAINLENS_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float x = values[tile_index<T, width>(k, first_dim + block * 8 + lane % 4 * 2 + i % 2)];
          means[block][i] += rows[i / 2] * x;
          squares[block][i] += rows[i / 2] * x * x;
        }
      }
    }
  }
}

}  // namespace gainlens::kernels::device
