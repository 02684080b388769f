#include "kernels/cuda_emulation/ptx.h"

#include <array>
#include <cstring>

// Fragments as in the PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and "ldmatrix". For lane l,
// g = l / 4 and c = l % 4: a[i] holds A[g + 8 (i % 2)][2 c + 8 (i / 2) + {0, 1}], b[i] holds B[2 c + 8 i + {0, 1}][g],
// c[i] holds C[g + 8 (i / 2)][2 c + i % 2].

namespace gainlens::kernels::device {
namespace {

template <typename T>
struct Shuffle {
  T value, result;
  int lanes;
};

struct Vote {
  bool value, result;
};

struct Load {
  const void* row;
  std::uint32_t (*parts)[4];
};

struct Multiply {
  float (*c)[4];
  const std::uint32_t (*a)[4];
  std::uint32_t b[2];
};

float bfloat16_of(std::uint32_t pair, int half) {
  return c10::BFloat16(static_cast<std::uint16_t>(pair >> 16 * half), c10::BFloat16::from_bits());
}

float float16_of(std::uint32_t pair, int half) {
  return c10::Half(static_cast<std::uint16_t>(pair >> 16 * half), c10::Half::from_bits());
}

void load(std::uint32_t (&parts)[4], const void* row, bool transposed) {
  Load own{row, &parts};
  warp_together(&own, [transposed](void* const* lanes) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t elements[8][8];
      for (int i = 0; i < 8; ++i)
        std::memcpy(elements[i], static_cast<const Load*>(lanes[matrix * 8 + i])->row, sizeof elements[i]);
      for (int lane = 0; lane < 32; ++lane) {
        const int g = lane / 4, c = lane % 4 * 2;
        const std::uint16_t low = transposed ? elements[c][g] : elements[g][c],
                            high = transposed ? elements[c + 1][g] : elements[g][c + 1];
        (*static_cast<const Load*>(lanes[lane])->parts)[matrix] = static_cast<std::uint32_t>(high) << 16 | low;
      }
    }
  });
}

/// Products are exact. Their sum is computed in double and rounded once; the hardware truncates a little instead.
template <typename Convert>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                  const Convert& convert) {
  Multiply own{&c, &a, {b0, b1}};
  warp_together(&own, [&convert](void* const* lanes) {
    std::array<std::array<double, 16>, 16> left;
    std::array<std::array<double, 16>, 8> right;  // [column][row]
    for (int lane = 0; lane < 32; ++lane) {
      const auto& in = *static_cast<const Multiply*>(lanes[lane]);
      const std::size_t g = static_cast<std::size_t>(lane / 4), pair = static_cast<std::size_t>(lane % 4 * 2);
      for (std::size_t half = 0; half < 2; ++half) {
        for (std::size_t i = 0; i < 4; ++i)
          left[g + 8 * (i % 2)][pair + 8 * (i / 2) + half] = convert((*in.a)[i], static_cast<int>(half));
        for (std::size_t i = 0; i < 2; ++i) right[g][pair + 8 * i + half] = convert(in.b[i], static_cast<int>(half));
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      float(&sums)[4] = *static_cast<const Multiply*>(lanes[lane])->c;
      for (std::size_t i = 0; i < 4; ++i) {
        const auto& row = left[static_cast<std::size_t>(lane / 4) + 8 * (i / 2)];
        const auto& column = right[static_cast<std::size_t>(lane % 4 * 2) + i % 2];
        double sum = static_cast<double>(sums[i]);
        for (std::size_t k = 0; k < 16; ++k) sum += row[k] * column[k];
        sums[i] = static_cast<float>(sum);
      }
    }
  });
}

}  // namespace

template <typename T>
T shuffled(T value, int lanes) {
  Shuffle<T> own{value, 0, lanes};
  warp_together(&own, [](void* const* all) {
    for (int lane = 0; lane < 32; ++lane) {
      auto& to = *static_cast<Shuffle<T>*>(all[lane]);
      to.result = static_cast<const Shuffle<T>*>(all[lane ^ to.lanes])->value;
    }
  });
  return own.result;
}

float shuffle_xor(float value, int lanes) {
  return shuffled(value, lanes);
}

double shuffle_xor(double value, int lanes) {
  return shuffled(value, lanes);
}

bool any_of_warp(bool condition) {
  Vote own{condition, false};
  warp_together(&own, [](void* const* all) {
    bool any = false;
    for (int lane = 0; lane < 32; ++lane) any = any || static_cast<const Vote*>(all[lane])->value;
    for (int lane = 0; lane < 32; ++lane) static_cast<Vote*>(all[lane])->result = any;
  });
  return own.result;
}

void load_matrices(std::uint32_t (&parts)[4], const void* row) {
  load(parts, row, false);
}

void load_matrices_transposed(std::uint32_t (&parts)[4], const void* row) {
  load(parts, row, true);
}

void multiply_add_bfloat16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  multiply_add(c, a, b0, b1, bfloat16_of);
}

void multiply_add_float16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  multiply_add(c, a, b0, b1, float16_of);
}

std::uint32_t fused_multiply_add_bfloat16(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t result = 0;
  for (int half = 0; half < 2; ++half) {
    // Exact in double and therefore rounded only once: the product has 16 bits, the summand 8, and their exponents are
    // near each other wherever it matters.
    const double exact = static_cast<double>(bfloat16_of(a, half)) * static_cast<double>(bfloat16_of(b, half)) +
                         static_cast<double>(bfloat16_of(c, half));
    result |= static_cast<std::uint32_t>(bits_of_bfloat16(static_cast<float>(exact))) << 16 * half;
  }
  return result;
}

}  // namespace gainlens::kernels::device
