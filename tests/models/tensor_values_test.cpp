#include "models/checkpoint/tensor_values.h"

#include "core/error.h"
#include "formats/dequantise.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace gainlens::models {
namespace tensor_values_test {

using formats::DType;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A tensor in memory. More elements than are converted at a time, and no multiple of them.
constexpr std::int64_t rows = 700, columns = 1024;

struct StoredTensor {
  explicit StoredTensor(DType dtype)
      : bytes(static_cast<std::size_t>(rows * columns) / formats::elements_per_block(dtype) *
              formats::bytes_per_block(dtype)) {
    entry.name = "weights";
    entry.dtype = dtype;
    entry.shape = {rows, columns};
    entry.bytes = bytes;
  }
  std::vector<std::byte> bytes;
  formats::TensorEntry entry;
};

/// Blocks whose bytes vary, with scales that are finite.
StoredTensor quantised(DType dtype) {
  StoredTensor stored(dtype);
  const std::size_t block = formats::bytes_per_block(dtype);
  for (std::size_t i = 0; i < stored.bytes.size(); ++i)
    stored.bytes[i] = i % block < 2 ? std::byte{static_cast<unsigned char>(i % block == 1 ? 0x28 : i / block)}
                                    : std::byte{static_cast<unsigned char>(i * 37 >> 3)};
  return stored;
}

StoredTensor plain(const at::Tensor& values, DType dtype) {
  StoredTensor stored(dtype);
  std::memcpy(stored.bytes.data(), values.const_data_ptr(), stored.bytes.size());
  return stored;
}

void expect_bits(const at::Tensor& found, const at::Tensor& expected) {
  ASSERT_EQ(found.sizes(), expected.sizes());
  ASSERT_EQ(found.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(found.is_contiguous());
  EXPECT_EQ(std::memcmp(found.const_data_ptr(), expected.const_data_ptr(), found.nbytes()), 0);
}

constexpr std::array compute_dtypes = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};

class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(at::get_num_threads()) { at::set_num_threads(threads); }
  ~ThreadCount() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(TensorValues, QuantisedOnesHaveTheBitsOfOnePassOnAnyNumberOfThreads) {
  for (const DType dtype : {DType::q8_0, DType::q5_0}) {
    const StoredTensor stored = quantised(dtype);
    at::Tensor expected = at::empty({rows, columns});
    formats::dequantise(dtype, stored.bytes,
                        {expected.mutable_data_ptr<float>(), static_cast<std::size_t>(expected.numel())});
    for (const int threads : {1, 2, 5}) {
      const ThreadCount set(threads);
      for (const at::ScalarType compute : compute_dtypes)
        expect_bits(read_values(stored.entry, compute, "test"), expected.to(compute));
    }
  }
}

TEST(TensorValues, PlainOnesHaveTheBitsOfOneConversionOnAnyNumberOfThreads) {
  const at::Tensor values = at::randn({rows, columns});
  for (const auto& [dtype, type] : {std::pair{DType::f32, at::kFloat}, std::pair{DType::bf16, at::kBFloat16},
                                    std::pair{DType::f16, at::kHalf}, std::pair{DType::f64, at::kDouble}}) {
    const at::Tensor typed = values.to(type);
    const StoredTensor stored = plain(typed, dtype);
    for (const int threads : {1, 2, 5}) {
      const ThreadCount set(threads);
      for (const at::ScalarType compute : compute_dtypes)
        expect_bits(read_values(stored.entry, compute, "test"), typed.to(compute));
    }
  }
}

TEST(TensorValues, AreACopy) {
  StoredTensor stored = plain(at::ones({rows, columns}), DType::f32);
  const at::Tensor read = read_values(stored.entry, at::kFloat, "test");
  std::fill(stored.bytes.begin(), stored.bytes.end(), std::byte{0});
  EXPECT_EQ(read.sum().item<double>(), rows * columns);
}

TEST(TensorValues, TheFirstPlaceThatIsNotFiniteIsNamed) {
  for (const std::int64_t place : {std::int64_t{0}, std::int64_t{300000}, rows * columns - 1}) {
    at::Tensor values = at::ones({rows, columns});
    values.view(-1)[place] = std::numeric_limits<float>::quiet_NaN();
    const StoredTensor stored = plain(values, DType::f32);
    EXPECT_THAT([&] { read_values(stored.entry, at::kBFloat16, "test"); },
                ThrowsMessage<InvalidArgument>(HasSubstr(
                    fmt::format("test: tensor 'weights' holds NaN or infinity: 1 of {} values, the first at [{}, {}]",
                                rows * columns, place / columns, place % columns))));
  }
}

TEST(TensorValues, ANumberThatTheDtypeCannotHoldIsNamed) {
  at::Tensor values = at::ones({rows, columns});
  values[200][7] = 1e6f;
  const StoredTensor stored = plain(values, DType::f32);
  EXPECT_THAT([&] { read_values(stored.entry, at::kHalf, "test"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the first at [200, 7]; use --dtype float32 or bfloat16")));
  EXPECT_NO_THROW(read_values(stored.entry, at::kBFloat16, "test"));
}

}  // namespace tensor_values_test
}  // namespace gainlens::models
