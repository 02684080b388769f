#include "kernels/elementwise/row_functions.h"

#include "core/error.h"
#include "kernels/vector_targets.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::kernels {
namespace row_functions_test {

at::Tensor exact_norm(const at::Tensor& x, const NormOptions& options) {
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor centred = options.kind == NormKind::layer ? wide - wide.mean(-1, true) : wide;
  return centred / (centred.square().mean(-1, true) + options.epsilon).sqrt();
}

double error(const at::Tensor& found, const at::Tensor& expected) {
  return ((found.to(at::kDouble) - expected).abs().max() / expected.abs().max()).item<double>();
}

TEST(RowFunctions, NormsAreThoseOfFloat64) {
  at::manual_seed(1);
  for (const std::int64_t columns : {1, 2, 15, 16, 33, 640, 1030}) {
    // A large mean, which cancels in the layer norm.
    const at::Tensor x = (at::randn({2, 5, columns}, at::kDouble) + 3).to(at::kFloat);
    const at::Tensor weight = at::randn({columns}), bias = at::randn({columns});
    for (const NormOptions& options : {NormOptions{NormKind::rms, 1e-6}, NormOptions{NormKind::layer, 1e-5}}) {
      const at::Tensor exact = exact_norm(x, options);
      EXPECT_LT((normalised(x, options).to(at::kDouble) - exact).abs().max().item<double>(), 5e-6) << columns;
      const at::Tensor expected = exact * (weight.to(at::kDouble) + 1) + bias.to(at::kDouble);
      EXPECT_LT((norm_rows(x, options, weight, 1, bias).to(at::kDouble) - expected).abs().max().item<double>(), 2e-5);
      EXPECT_TRUE(
          at::equal(norm_rows(x, options, weight, 1, bias), scaled_rows(normalised(x, options), weight, 1, bias)));
    }
  }
}

TEST(RowFunctions, NormsOfNumbersWhoseSquaresOverflow) {
  at::manual_seed(3);
  for (const std::int64_t columns : {1, 7, 16, 33, 640}) {
    for (const double size : {1e15, 1e19, 1e25, 7e37}) {
      const at::Tensor x = ((at::randn({9, columns}, at::kDouble) / 3 + 1).clamp(0.1, 4) * size).to(at::kFloat);
      for (const NormOptions& options : {NormOptions{NormKind::rms, 1e-6}, NormOptions{NormKind::layer, 1e-5}}) {
        const at::Tensor exact = exact_norm(x, options);
        // The mean of a layer norm is rounded to float32: a share of 6e-8 of numbers that spread over a third of it.
        EXPECT_LT((normalised(x, options).to(at::kDouble) - exact).abs().max().item<double>(), 5e-6)
            << columns << " numbers of " << size;
      }
    }
  }
  const float huge = std::numeric_limits<float>::max();
  EXPECT_TRUE(at::allclose(normalised(at::full({1, 50}, huge), {NormKind::rms, 1e-6}), at::ones({1, 50})));
  // A number that is not finite does not become one.
  at::Tensor damaged = at::ones({1, 50});
  damaged[0][20] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(all_finite(normalised(damaged, {NormKind::rms, 1e-6})));
  EXPECT_FALSE(all_finite(normalised(damaged, {NormKind::layer, 1e-6})));
}

TEST(RowFunctions, HalfPrecisionIsRoundedOnce) {
  at::manual_seed(2);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const at::Tensor x = at::randn({40, 70}).to(type), weight = at::randn({70}).to(type);
    const NormOptions options{NormKind::rms, 1e-6};
    const at::Tensor found = norm_rows(x, options, weight, 0, {});
    EXPECT_EQ(found.scalar_type(), type);
    const at::Tensor expected = (exact_norm(x, options) * weight.to(at::kDouble)).to(type);
    EXPECT_LT((found != expected).sum().item<std::int64_t>(), found.numel() / 100);
  }
}

TEST(RowFunctions, EachHeadMayHaveItsOwnWeight) {
  const at::Tensor x = at::randn({1, 3, 4, 8}), weight = at::randn({4, 8});
  const NormOptions options{NormKind::layer, 1e-5};
  const at::Tensor found = norm_rows(x, options, weight, 0, {});
  for (std::int64_t head = 0; head < 4; ++head)
    EXPECT_TRUE(at::equal(found.select(2, head), norm_rows(x.select(2, head), options, weight[head], 0, {})));
}

TEST(RowFunctions, RotationTurnsPairsAndLeavesTheRest) {
  at::manual_seed(3);
  const at::Tensor heads = at::randn({2, 7, 3, 20}), angle = at::randn({7, 6}, at::kDouble);
  const at::Tensor cosine = angle.cos().to(at::kFloat), sine = angle.sin().to(at::kFloat);
  testing::for_each_instruction_set([&](const char* target) {
    const at::Tensor found = rotated(heads, cosine, sine);
    const at::Tensor first = heads.narrow(-1, 0, 6), second = heads.narrow(-1, 6, 6);
    const at::Tensor c = cosine.unsqueeze(1), s = sine.unsqueeze(1);
    EXPECT_LT(error(found.narrow(-1, 0, 6), (first * c - second * s).to(at::kDouble)), 2e-7) << target;
    EXPECT_LT(error(found.narrow(-1, 6, 6), (second * c + first * s).to(at::kDouble)), 2e-7) << target;
    EXPECT_TRUE(at::equal(found.narrow(-1, 12, 8), heads.narrow(-1, 12, 8))) << target;
    // A view of another tensor, as a part of a larger product would be.
    EXPECT_TRUE(at::equal(rotated(at::cat({heads, heads}, 2).narrow(2, 3, 3), cosine, sine), found)) << target;
  });
  EXPECT_THROW(rotated(heads, cosine.narrow(0, 0, 6), sine.narrow(0, 0, 6)), InternalError);
}

TEST(RowFunctions, OneNumberThatIsNotFiniteIsFound) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
      for (const std::int64_t place : {0, 17, 69999}) {
        at::Tensor x = at::full({70000}, 6e4).to(type);
        EXPECT_TRUE(all_finite(x));
        x[place] = bad;
        EXPECT_FALSE(all_finite(x)) << c10::toString(type) << bad << " at " << place;
      }
    }
  }
}

TEST(RowFunctions, BitsDoNotDependOnThreads) {
  const int threads = at::get_num_threads();
  const at::Tensor x = at::randn({300, 640}), weight = at::randn({640});
  at::set_num_threads(1);
  const at::Tensor one = norm_rows(x, {NormKind::rms, 1e-6}, weight, 1, {});
  at::set_num_threads(4);
  EXPECT_TRUE(at::equal(one, norm_rows(x, {NormKind::rms, 1e-6}, weight, 1, {})));
  EXPECT_TRUE(at::equal(one.slice(0, 7, 8), norm_rows(x.slice(0, 7, 8), {NormKind::rms, 1e-6}, weight, 1, {})));
  at::set_num_threads(threads);
}

}  // namespace row_functions_test
}  // namespace gainlens::kernels
