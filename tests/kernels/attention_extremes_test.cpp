// Extremes that occur in real checkpoints: sink logits far from the scores, values of any size, scores of any spread.
// Also tests calls that leave out queries.

#include "kernels/attention_cases.h"
#include "kernels/attention_testing.h"
#include "kernels/gradient/attention_gradient.h"

#include "core/error.h"

#include <ATen/autocast_mode.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#ifdef GAINLENS_CUDA_EMULATION  // in the program of the CUDA tests
#include "kernels/emulated_attention.h"
#endif

namespace gainlens::kernels {
namespace attention_extremes_test {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

using Attention = std::function<QueryStatistics(AttentionOptions, const Inputs&)>;

Attention by(AttentionBackend backend) {
  return [backend](AttentionOptions options, const Inputs& in) {
    options.backend = backend;
    return streamed(options, in);
  };
}

const std::vector<std::pair<std::string, Attention>> ways{
    {"streaming", by(AttentionBackend::streaming)},
    {"composed", by(AttentionBackend::composed)},
#ifdef GAINLENS_CUDA_EMULATION
    {"fused", emulated},
#endif
};

// ---- sink logits ----

TEST(SinkLogits, FarAboveTheKeysLeaveTheirDigits) {
  const Inputs in = cast(random_inputs(130, 16, 1, 4), at::kFloat);
  const AttentionOptions options{
      .sink_logit = at::tensor({-60.0f, 0.0f, 20.0f, 60.0f})};  // above the keys' total, ln 130 and less
  const QueryStatistics expected = reference(options, in);
  EXPECT_LT(expected.output[3].abs().max().item<double>(), 1e-15);
  for (const auto& [way, attention] : ways) {
    const QueryStatistics s = attention(options, in);
    for (std::int64_t head = 0; head < 4; ++head) {  // each head relative to its own largest element
      EXPECT_LT(error_of_largest(s.output[head], expected.output[head]), 2e-6) << way << " head " << head;
      EXPECT_LT(relative_error(s.first_mass[head], expected.first_mass[head]), 1e-5) << way << " head " << head;
      EXPECT_LT(relative_error(s.first_weight[head], expected.first_weight[head]), 1e-5) << way << " head " << head;
    }
  }
  const at::Tensor output = attention_with_gradient(options, in.query, in.key, in.value).output;
  const at::Tensor alone = attention_with_gradient(options, in.query, in.key, in.value, Moments::none).output;
  for (std::int64_t head = 0; head < 4; ++head) {
    EXPECT_LT(error_of_largest(output[head], expected.output[head]), 1e-5) << head;
    EXPECT_LT(error_of_largest(alone[head], expected.output[head]), 1e-5) << head;
  }
}

TEST(SinkLogits, TheWeightOfKey0DoesNotDependOnThem) {
  const Inputs in = cast(random_inputs(100, 8, 1, 1), at::kFloat);
  for (const auto& [way, attention] : ways) {
    const at::Tensor without = attention({}, in).first_mass.select(2, 0);
    for (const float sink : {-500.0f, 0.0f, 500.0f}) {  // at 500 the mass itself is 0
      EXPECT_TRUE(same_bits(attention({.sink_logit = at::tensor({sink})}, in).first_weight, without))
          << way << " " << sink;
    }
  }
}

TEST(SinkLogits, ThatAreNoNumbersAreRefused) {
  const Inputs in = cast(random_inputs(20, 8, 1, 1), at::kFloat);
  for (const float sink : {INFINITY, -INFINITY, NAN}) {
    EXPECT_THAT([&] { streamed({.sink_logit = at::tensor({sink})}, in); },
                ThrowsMessage<InvalidArgument>(HasSubstr("sink_logit holds NaN or infinity; must be finite")));
  }
}

// ---- values of any size ----

/// Normal values, except that in dimension 0 the first 64 values are equal and in dimension 1 all values.
Inputs values_with_steps() {
  Inputs in = cast(random_inputs(300, 16, 1, 2), at::kFloat);
  in.value.select(2, 0).slice(1, 0, centre_keys).fill_(0.25);
  in.value.select(2, 1).fill_(0.75);
  return in;
}

TEST(ScaledGain, DoesNotDependOnTheSizeOfTheValues) {
  const Inputs in = values_with_steps();
  for (const auto& [way, attention] : ways) {
    const at::Tensor plain = attention({}, in).kalman_gain_scaled;
    EXPECT_LT(relative_error(plain, reference({}, in).kalman_gain_scaled), 1e-5) << way;
    for (const float factor : {1e-30f, 1e-20f, 1e15f}) {
      const Inputs scaled{in.query, in.key, in.value * factor};
      const QueryStatistics s = attention({}, scaled);
      EXPECT_LT(relative_error(s.kalman_gain_scaled, plain), 1e-5) << way << " times " << factor;
      EXPECT_LT(relative_error(s.estimate_norm, reference({}, scaled).estimate_norm), 1e-5)
          << way << " times " << factor;
    }
  }
}

TEST(ScaledGain, KeepsItsDigitsWhereFewValuesDiffer) {
  constexpr std::int64_t length = 1 << 15;
  Inputs in = cast(random_inputs(length, 1, 1, 1), at::kFloat);
  in.value.fill_(1.39);
  in.value.slice(1, 0, centre_keys).fill_(0);  // their variance is 1e-3 of their squares
  const AttentionOptions options{.first_query = length - 2};
  for (const AttentionBackend backend : {AttentionBackend::streaming, AttentionBackend::composed}) {
    for (const float factor : {1.0f, 1e-20f, 1e15f}) {
      const Inputs scaled{in.query, in.key, in.value * factor};
      EXPECT_LT(
          relative_error(by(backend)(options, scaled).kalman_gain_scaled, reference(options, in).kalman_gain_scaled),
          1e-5)
          << factor;
    }
  }
}

TEST(ScaledGain, DoesNotDependOnTheSizeOfOneDimension) {
  const Inputs in = values_with_steps();
  const at::Tensor sizes =
      at::exp2(at::linspace(-80, 40, 16, at::TensorOptions(at::kFloat)).round());  // exact in float32
  for (const auto& [way, attention] : ways) {
    EXPECT_LT(relative_error(attention({}, {in.query, in.key, in.value * sizes}).kalman_gain_scaled,
                             attention({}, in).kalman_gain_scaled),
              1e-6)
        << way;
  }
}

TEST(ValuesOfAnySize, AllZeroAndAllEqual) {
  Inputs in = cast(random_inputs(130, 16, 1, 2), at::kFloat);
  for (const float constant : {0.0f, 1e-30f, 0.1f, 1e15f}) {
    in.value.fill_(constant);
    for (const auto& [way, attention] : ways) {
      const QueryStatistics s = attention({}, in);
      EXPECT_EQ(s.residual.abs().max().item<double>(), 0) << way << " " << constant;
      EXPECT_EQ(s.value_variance.abs().max().item<double>(), 0) << way << " " << constant;
      EXPECT_LT(relative_error(s.kalman_gain_scaled, (s.n_eff + 1) / (s.n_eff + 2)), 1e-6) << way << " " << constant;
      EXPECT_LT(relative_error(s.output, in.value.repeat_interleave(2, 0)), 1e-6) << way << " " << constant;
    }
  }
}

TEST(ValuesOfAnySize, WhoseSquaresFloat32CannotHoldAreAFailedRun) {
  Inputs in = cast(random_inputs(130, 16, 1, 2), at::kFloat);
  in.value.mul_(1e30);
  for (const AttentionBackend backend : {AttentionBackend::streaming, AttentionBackend::composed}) {
    EXPECT_THAT([&] { by(backend)({}, in); },
                ThrowsMessage<RunFailed>(HasSubstr("squares may overflow float32; use --dtype float64")));
  }
}

TEST(ValuesOfAnySize, WhatIsRefusedDoesNotDependOnThreads) {
  Inputs in = cast(random_inputs(3000, 8, 2, 1), at::kFloat);
  in.query.mul_(1e-18);
  in.key.mul_(1e-18);
  in.query[0].fill_(1e18);  // the product with the keys of the other head would overflow
  in.key[1].fill_(1e18);
  const int threads = at::get_num_threads();
  for (const int count : {1, 2, 8}) {
    at::set_num_threads(count);
    EXPECT_THAT([&] { streamed({}, in); }, ThrowsMessage<RunFailed>(HasSubstr("may overflow float32"))) << count;
  }
  at::set_num_threads(threads);
}

// ---- options at the ends of their ranges ----

TEST(ExtremeOptions, GiveNoNaN) {
  const Inputs in = cast(random_inputs(130, 16, 1, 2), at::kFloat);
  for (const AttentionOptions& options : {AttentionOptions{.prior_variance = 1e30, .prior_precision = 0},
                                          AttentionOptions{.prior_strength = 1e30, .prior_variance = 1},
                                          AttentionOptions{.prior_strength = 0, .prior_precision = 1e30},
                                          AttentionOptions{.soft_cap = 1e-30}, AttentionOptions{.soft_cap = 1e30}}) {
    for (const auto& [way, attention] : ways) {
      const QueryStatistics s = attention(options, in);
      for (const at::Tensor& field : {s.output, s.n_eff, s.entropy, s.residual, s.kalman_gain, s.kalman_gain_scaled})
        EXPECT_FALSE(at::isnan(field).any().item<bool>()) << way;
    }
  }
}

// ---- scores of any spread ----

// float32 holds these scores exactly, for every order of summation. The test therefore shows only the errors that the
// kernels make with sharp scores.
TEST(SharpScores, ThatFloat32HoldsCostNoDigits) {
  for (const double sharpness : {300.0, 3000.0}) {
    const Inputs drawn = random_inputs(200, 16, 1, 2, sharpness);
    const Inputs in = cast({drawn.query.round(), (drawn.key * 8).round() / 8, drawn.value}, at::kFloat);
    for (const auto& [way, attention] : ways) {
      SCOPED_TRACE(fmt::format("{} {}", way, sharpness));
      expect_close(attention({}, in), reference({}, in), 1e-5, 1e-6);
    }
  }
}

// ---- queries left out ----

TEST(FirstQuery, EarlierRowsAreThoseOfPaddingAndLaterOnesAsEver) {
  const Shape shape{200, 16, 1, 2};
  const Inputs in = cast(random_inputs(shape.length, shape.head_dim, shape.kv_heads, shape.group), at::kFloat);
  for (const Mask& mask : {all_masks[0], all_masks[1], all_masks[4], all_masks.back()}) {
    for (const std::int64_t first : {1, 30, 64, 150, 199}) {
      AttentionOptions options = options_of(mask, shape);
      const QueryStatistics whole = reference(options, in);
      options.first_query = first;
      const QueryStatistics expected = reference(options, in);
      EXPECT_TRUE(same_bits(expected.kalman_gain.slice(1, first), whole.kalman_gain.slice(1, first)));
      EXPECT_TRUE(at::isnan(expected.kalman_gain.slice(1, 0, first)).all().item<bool>());
      for (const auto& [way, attention] : ways) {
        SCOPED_TRACE(fmt::format("{} {} {}", way, mask.name, first));
        expect_close(attention(options, in), expected, 1e-5, 2e-6);
      }
      const DifferentiableAttention found = attention_with_gradient(options, in.query, in.key, in.value);
      EXPECT_LT(error_of_largest(found.output, expected.output), 1e-5);
      EXPECT_LT(relative_error(found.n_eff, expected.n_eff), 1e-5);
    }
  }
}

TEST(FirstQuery, BitsAreThoseOfTheWholeCall) {
  const Inputs in = cast(random_inputs(300, 16, 2, 2), at::kFloat);
  const QueryStatistics whole = streamed({}, in);
  const QueryStatistics windowed = streamed({.window = 90}, in);
  for (const std::int64_t first : {17, 64, 201, 233}) {
    EXPECT_TRUE(
        same_bits(streamed({.first_query = first}, in).residual.slice(1, first), whole.residual.slice(1, first)))
        << first;
    const QueryStatistics part = streamed({.window = 90, .first_query = first}, in);
    EXPECT_TRUE(same_bits(part.residual.slice(1, first), windowed.residual.slice(1, first))) << "window, " << first;
  }
}

TEST(FirstQuery, OutsideTheTextOrBesideSequencesIsRefused) {
  const Inputs in = cast(random_inputs(20, 8, 1, 1), at::kFloat);
  for (const std::int64_t first : {-1, 20}) {
    EXPECT_THAT([&] { streamed({.first_query = first}, in); },
                ThrowsMessage<InvalidArgument>(HasSubstr("must be between 0 and 19")));
  }
  EXPECT_THAT(
      [&] {
        streamed({.sequences = {{0, 20}}, .first_query = 3}, in);
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("first_query is 3 and `sequences` are given; give only one of the two")));
}

// ---- settings that the calling program has switched on ----

class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Autocast() { at::autocast::set_autocast_enabled(at::kCPU, false); }
};

TEST(ExactProducts, AutocastChangesNoBit) {
  const Inputs in = cast(random_inputs(150, 16, 1, 2), at::kFloat);
  const auto gradients = [&] {
    Inputs leaves{in.query.clone().set_requires_grad(true), in.key, in.value};
    const DifferentiableAttention result = attention_with_gradient({}, leaves.query, leaves.key, leaves.value);
    (result.residual.sum() + result.output.sum()).backward();
    return std::pair{result.output.detach(), leaves.query.grad()};
  };
  const auto [output, gradient] = gradients();
  const at::Tensor composed = by(AttentionBackend::composed)({}, in).output;
  const Autocast autocast;
  ASSERT_EQ(at::matmul(in.query, in.key.transpose(1, 2)).scalar_type(), at::kBFloat16);  // autocast is on
  const auto [autocast_output, autocast_gradient] = gradients();
  EXPECT_TRUE(same_bits(output, autocast_output));
  EXPECT_TRUE(same_bits(gradient, autocast_gradient));
  EXPECT_TRUE(same_bits(composed, by(AttentionBackend::composed)({}, in).output));
}

// ---- the measure itself ----

TEST(Agreement, SeesInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const at::Tensor one_infinite = at::tensor({1.0, infinity}), finite = at::tensor({1.0, 5.0}),
                   off = at::tensor({1.5, infinity});
  for (const auto& error :
       {+[](const at::Tensor&a, const at::Tensor&b) { return relative_error(a, b); }, error_of_largest}) {
    EXPECT_EQ(error(finite, one_infinite), infinity);
    EXPECT_EQ(error(one_infinite, finite), infinity);
    EXPECT_EQ(error(-one_infinite, one_infinite), infinity);
    EXPECT_EQ(error(at::tensor({1.0, static_cast<double>(NAN)}), finite), infinity);
    EXPECT_EQ(error(off, one_infinite), 0.5);  // an infinite element does not hide the errors of the others
    EXPECT_EQ(error(one_infinite, one_infinite), 0);
  }
}

}  // namespace attention_extremes_test
}  // namespace gainlens::kernels
