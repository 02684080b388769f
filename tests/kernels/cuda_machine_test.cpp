// The emulated machine, on which the tests of the fused kernel run, must detect errors that would give wrong results on
// a GPU.

#include "kernels/cuda_emulation/ptx.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace gainlens::kernels::device {
namespace cuda_machine_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

float* shared_floats() {
  return reinterpret_cast<float*>(shared_memory());
}

TEST(CudaMachine, BarriersOrderWhatThreadsWrite) {
  std::vector<float> seen(64);
  run_grid({1, 1}, 64, 256, [&] {
    shared_floats()[thread_index()] = static_cast<float>(thread_index());
    block_barrier();
    seen[static_cast<std::size_t>(thread_index())] = shared_floats()[63 - thread_index()];
  });
  for (int i = 0; i < 64; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], 63 - i);
}

TEST(CudaMachine, WithoutTheBarrierAThreadSeesNaN) {
  bool missed = false;
  run_grid({1, 1}, 32, 256, [&] {
    shared_floats()[thread_index()] = 1;
    if (std::isnan(shared_floats()[31 - thread_index()])) missed = true;
  });
  EXPECT_TRUE(missed);
}

TEST(CudaMachine, ACopyIsThereOnlyAfterItsWait) {
  alignas(16) const float source[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  run_grid({1, 1}, 32, 64, [&] {
    if (thread_index() != 0) return;
    copy_async_16(shared_floats(), source, true);
    copy_async_commit();
    copy_async_16(shared_floats() + 4, source + 4, false);
    copy_async_commit();
    EXPECT_TRUE(std::isnan(shared_floats()[0]));
    copy_async_wait<1>();
    EXPECT_EQ(shared_floats()[0], 1);
    EXPECT_TRUE(std::isnan(shared_floats()[4]));
    copy_async_wait<0>();
    EXPECT_EQ(shared_floats()[4], 0);  // a copy from outside gives zeros
  });
}

TEST(CudaMachine, AThreadThatNeverComesIsNamed) {
  EXPECT_THAT(
      [] {
        run_grid({1, 1}, 32, 64, [] {
          if (thread_index() != 5) block_barrier();
        });
      },
      ThrowsMessage<InternalError>(HasSubstr("waits for 1 of 32 threads")));
}

// A [16, 16] has a 1 at (row, k), B [16, 8] has a 2 at (k, column). C must have their product at (row, column).
TEST(CudaMachine, MatrixProductsFollowTheFragments) {
  for (const auto& [row, k, column] :
       {std::array{0, 0, 0}, std::array{9, 3, 5}, std::array{6, 12, 7}, std::array{15, 9, 2}}) {
    alignas(16) std::uint16_t left[16][16] = {}, right[8][16] = {}, right_transposed[16][8] = {};
    left[row][k] = bits_of_bfloat16(3);
    right[column][k] = right_transposed[k][column] = bits_of_bfloat16(2);
    float product[16][8] = {}, product_transposed[16][8] = {};
    run_grid({1, 1}, 32, 64, [&, row = row] {
      const int lane = thread_index();
      std::uint32_t a[4], b[4], t[4];
      load_matrices(a, &left[lane % 16][lane / 16 * 8]);
      load_matrices(b, &right[lane % 8][lane / 8 % 2 * 8]);
      load_matrices_transposed(t, &right_transposed[lane % 16][0]);
      float c[4] = {}, ct[4] = {};
      multiply_add_bfloat16(c, a, b[0], b[1]);
      multiply_add_bfloat16(ct, a, t[0], t[1]);
      for (int i = 0; i < 4; ++i) {
        product[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = c[i];
        product_transposed[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = ct[i];
      }
    });
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        EXPECT_EQ(product[i][j], i == row && j == column ? 6 : 0);
        EXPECT_EQ(product_transposed[i][j], product[i][j]);
      }
    }
  }
}

TEST(CudaMachine, LanesExchangeAndVote) {
  run_grid({1, 1}, 64, 64, [] {
    EXPECT_EQ(shuffle_xor(static_cast<float>(thread_index()), 2), static_cast<float>(thread_index() ^ 2));
    EXPECT_EQ(any_of_warp(thread_index() == 40), thread_index() >= 32);
  });
}

TEST(CudaMachine, PackedArithmetic) {
  const std::uint32_t pair = pack_bfloat16(1.5f, -3);
  EXPECT_EQ(float_of_bits(pair << 16), 1.5f);
  EXPECT_EQ(float_of_bits(pair & 0xffff0000u), -3);
  const std::uint32_t x = pack_bfloat16(1.0078125f, 1.0078125f);  // its square needs 15 bits
  const std::uint32_t high = fused_multiply_add_bfloat16(x, x, 0x80008000u),
                      low = fused_multiply_add_bfloat16(x, x, high ^ 0x80008000u);
  EXPECT_EQ(float_of_bits(high << 16) + float_of_bits(low << 16), 1.0078125f * 1.0078125f);
}

}  // namespace cuda_machine_test
}  // namespace gainlens::kernels::device
