#include "kernels/delta/gated_delta_rule.h"
#include "kernels/delta/causal_convolution.h"

#include "core/error.h"
#include "kernels/delta_inputs.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace gainlens::kernels {
namespace gated_delta_rule_test {

using testing::Decay;
using ::testing::HasSubstr;
using testing::largest_error;
using ::testing::ThrowsMessage;

/// The formula of the header, number by number, for one head of one sequence. It shares no code with the kernels.
std::vector<double> by_hand(const DeltaInputs& inputs, std::int64_t batch, std::int64_t head) {
  const auto number = [](const at::Tensor& tensor, std::initializer_list<std::int64_t> index) {
    at::Tensor found = tensor;
    for (const std::int64_t i : index) found = found[i];
    return found.item<double>();
  };
  const std::int64_t key_dim = inputs.key.size(3), value_dim = inputs.value.size(3);
  const std::int64_t key_head = head / (inputs.value.size(2) / inputs.key.size(2));
  std::vector<std::vector<double>> state(static_cast<std::size_t>(key_dim),
                                         std::vector<double>(static_cast<std::size_t>(value_dim)));
  std::vector<double> outputs;
  for (std::int64_t t = 0; t < inputs.value.size(1); ++t) {
    const double decay = std::exp(number(inputs.log_decay, {batch, t, head}));
    const double beta = number(inputs.beta, {batch, t, head});
    std::vector<double> key, query;
    for (std::int64_t i = 0; i < key_dim; ++i) {
      key.push_back(number(inputs.key, {batch, t, key_head, i}));
      query.push_back(number(inputs.query, {batch, t, key_head, i}));
    }
    for (std::size_t j = 0; j < static_cast<std::size_t>(value_dim); ++j) {
      double predicted = 0, output = 0;
      for (std::size_t i = 0; i < key.size(); ++i) {
        state[i][j] *= decay;
        predicted += state[i][j] * key[i];
      }
      const double value = number(inputs.value, {batch, t, head, static_cast<std::int64_t>(j)});
      for (std::size_t i = 0; i < key.size(); ++i) {
        state[i][j] += key[i] * beta * (value - predicted);
        output += state[i][j] * query[i];
      }
      outputs.push_back(output / std::sqrt(static_cast<double>(key_dim)));
    }
  }
  return outputs;
}

double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

TEST(GatedDeltaRule, OneTokenByHand) {
  // S = k beta v^T; o = q . k beta v / sqrt(2) = 0.6 * 0.5 * v / sqrt(2).
  const auto of = [](std::initializer_list<double> values, at::IntArrayRef shape) {
    return at::tensor(at::ArrayRef<double>(values), at::kDouble).view(shape);
  };
  const DeltaInputs inputs{of({0.6, 0.8}, {1, 1, 1, 2}), of({1, 0}, {1, 1, 1, 2}), of({3, -4}, {1, 1, 1, 2}),
                           of({-1}, {1, 1, 1}), of({0.5}, {1, 1, 1})};
  at::Tensor state;
  const at::Tensor output = gated_delta_rule_recurrent(inputs, state).flatten();
  EXPECT_NEAR(output[0].item<double>(), 0.9 / std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(output[1].item<double>(), -1.2 / std::sqrt(2.0), 1e-15);
  EXPECT_LT(largest_difference(state.flatten(), of({1.5, -2, 0, 0}, {4})), 1e-15);
}

TEST(GatedDeltaRule, TheRecurrentFormIsThePlainLoop) {
  for (const Decay decay : {Decay::mild, Decay::none, Decay::mixed}) {
    const DeltaInputs inputs = testing::random_delta_inputs(70, decay);
    at::Tensor state;
    const at::Tensor output = gated_delta_rule_recurrent(inputs, state);
    for (std::int64_t batch = 0; batch < 2; ++batch) {
      for (std::int64_t head = 0; head < 4; ++head) {
        const at::Tensor found = output.select(0, batch).select(1, head).flatten();
        EXPECT_LT(largest_difference(found, at::tensor(by_hand(inputs, batch, head), at::kDouble)), 1e-12);
      }
    }
  }
}

TEST(GatedDeltaRule, TheChunkedFormIsTheRecurrentOneAtEveryLength) {
  for (const Decay decay : {Decay::mild, Decay::none, Decay::mixed}) {
    const DeltaInputs longest = testing::random_delta_inputs(300, decay);
    at::Tensor unused;
    const at::Tensor expected = gated_delta_rule_recurrent(longest, unused);
    for (std::int64_t length = 1; length <= 300; ++length) {
      const auto first = [&](const at::Tensor& tensor) { return tensor.slice(1, 0, length); };
      at::Tensor state;
      const at::Tensor output =
          gated_delta_rule_chunked({first(longest.query), first(longest.key), first(longest.value),
                                    first(longest.log_decay), first(longest.beta)},
                                   state);
      ASSERT_LT(largest_difference(output, first(expected)), 1e-10) << length;
    }
  }
}

// Both forms in float32 and the chunked form in float64: one bound for every length. docs/performance.md has the table
// for larger heads.
TEST(GatedDeltaRule, LongSequencesWithHardDecays) {
  for (const Decay decay : {Decay::mild, Decay::none, Decay::mixed}) {
    for (const std::int64_t length : {1024, 4096, 32768}) {
      const DeltaInputs inputs = testing::random_delta_inputs(length, decay, at::kDouble, {.batch = 1, .key_heads = 1});
      at::Tensor exact_state, state;
      const at::Tensor exact = gated_delta_rule_recurrent(inputs, exact_state);
      EXPECT_LT(largest_error(gated_delta_rule_chunked(inputs, state), exact), 1e-13) << length;
      EXPECT_LT(largest_error(state, exact_state), 1e-13) << length;
      const DeltaInputs narrow = testing::cast(inputs, at::kFloat);
      for (const auto& rule : {gated_delta_rule_recurrent, gated_delta_rule_chunked}) {
        at::Tensor narrow_state;
        const at::Tensor output = rule(narrow, narrow_state);
        EXPECT_EQ(output.scalar_type(), at::kFloat);
        EXPECT_LT(largest_error(output, exact), 2e-6) << length;
        EXPECT_LT(largest_error(narrow_state, exact_state), 2e-6) << length;
      }
    }
  }
}

TEST(GatedDeltaRule, StretchesContinueWithTheState) {
  const DeltaInputs inputs = testing::random_delta_inputs(150, Decay::mild);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const auto of = [&](const at::Tensor& tensor) { return tensor.slice(1, begin, end); };
    return DeltaInputs{of(inputs.query), of(inputs.key), of(inputs.value), of(inputs.log_decay), of(inputs.beta)};
  };
  for (const auto& rule : {gated_delta_rule_recurrent, gated_delta_rule_chunked}) {
    at::Tensor whole, state;
    const at::Tensor expected = rule(inputs, whole);
    const at::Tensor first = rule(part(0, 40), state), second = rule(part(40, 150), state);
    EXPECT_LT(largest_difference(at::cat({first, second}, 1), expected), 1e-12);
    EXPECT_LT(largest_difference(state, whole), 1e-12);
  }
}

TEST(GatedDeltaRule, ALaterTokenChangesNothingBeforeIt) {
  const DeltaInputs inputs = testing::random_delta_inputs(100, Decay::mild, at::kFloat);
  DeltaInputs changed = inputs;
  for (at::Tensor* tensor : {&changed.query, &changed.key, &changed.value, &changed.log_decay, &changed.beta}) {
    *tensor = tensor->clone();
    tensor->slice(1, 90).mul_(0.5);
  }
  at::Tensor unused, other;
  const at::Tensor first = gated_delta_rule_chunked(inputs, unused), second = gated_delta_rule_chunked(changed, other);
  EXPECT_TRUE(at::equal(first.slice(1, 0, 90), second.slice(1, 0, 90)));
  EXPECT_FALSE(at::equal(first.slice(1, 90), second.slice(1, 90)));
}

TEST(GatedDeltaRule, ALongerTextChangesNothingBeforeItsEnd) {
  const DeltaInputs inputs = testing::random_delta_inputs(200, Decay::mild, at::kFloat);
  at::Tensor unused;
  const at::Tensor whole = gated_delta_rule_chunked(inputs, unused);
  for (const std::int64_t positions : {1, 10, 63, 64, 65, 128, 150}) {
    const auto of = [&](const at::Tensor& tensor) { return tensor.slice(1, 0, positions); };
    at::Tensor state;
    const at::Tensor part = gated_delta_rule_chunked(
        {of(inputs.query), of(inputs.key), of(inputs.value), of(inputs.log_decay), of(inputs.beta)}, state);
    EXPECT_TRUE(at::equal(part, of(whole))) << positions;
  }
}

TEST(GatedDeltaRule, RefusesWhatDoesNotFit) {
  for (const auto& rule : {gated_delta_rule_recurrent, gated_delta_rule_chunked}) {
    const auto refused = [&](const DeltaInputs& inputs, const char* message, at::Tensor state = {}) {
      EXPECT_THAT([&] { rule(inputs, state); }, ThrowsMessage<InvalidArgument>(HasSubstr(message)));
    };
    const DeltaInputs good = testing::random_delta_inputs(3, Decay::mild);
    DeltaInputs inputs = good;
    inputs.log_decay = good.log_decay + 2;
    refused(inputs, "a log decay is above 0");
    inputs = good;
    inputs.beta = good.beta.slice(1, 1);
    refused(inputs, "beta does not fit");
    inputs = good;
    inputs.query = good.query.to(at::kFloat);
    refused(inputs, "query does not fit");
    inputs = good;
    inputs.value = good.value.to(at::kHalf);
    refused(inputs, "must be float32 or float64");
    inputs = good;
    inputs.value = good.value.slice(2, 1);
    refused(inputs, "3 value heads over 2 key heads");
    refused(good, "state does not fit", at::zeros({2, 4, 8, 5}, at::kDouble));
    const auto none = [](const at::Tensor& tensor) { return tensor.slice(1, 3); };
    refused({none(good.query), none(good.key), none(good.value), none(good.log_decay), none(good.beta)},
            "at least one element");
  }
}

TEST(CausalConvolution, ByHand) {
  // One channel, taps (1, 10, 100): y_t = x_{t-2} + 10 x_{t-1} + 100 x_t, then silu.
  const at::Tensor x = at::tensor({0.01, 0.02, -0.03}, at::kDouble).view({1, 3, 1});
  const at::Tensor weight = at::tensor({1.0, 10.0, 100.0}, at::kDouble).view({1, 1, 3});
  at::Tensor past;
  const at::Tensor y = causal_convolution_silu(x, weight, past).flatten();
  const auto silu = [](double z) { return z / (1 + std::exp(-z)); };
  EXPECT_NEAR(y[0].item<double>(), silu(1), 1e-12);
  EXPECT_NEAR(y[1].item<double>(), silu(2.1), 1e-12);
  EXPECT_NEAR(y[2].item<double>(), silu(-2.79), 1e-12);
  EXPECT_LT(largest_difference(past.flatten(), at::tensor({0.02, -0.03}, at::kDouble)), 1e-15);
}

TEST(CausalConvolution, ABiasIsAddedBeforeTheSumIsRounded) {
  const at::Tensor x = at::tensor({1.0, 2.0}).view({1, 2, 1}).to(at::kBFloat16);
  const at::Tensor weight = at::tensor({0.0, 256.0}).view({1, 1, 2}).to(at::kBFloat16);
  at::Tensor past;
  // 256 + 1 and 512 + 1 round to 256 and 512; 256.5 + 0.75 would round to 258 had the sum been rounded up before.
  const at::Tensor y = causal_convolution(x, weight, at::tensor({1.5}).to(at::kBFloat16), past).flatten();
  EXPECT_EQ(y[0].item<double>(), 258);  // 257.5, to even
  EXPECT_EQ(y[1].item<double>(), 512);  // 513.5
  at::Tensor none;
  EXPECT_THROW(causal_convolution(x, weight, at::ones({2}).to(at::kBFloat16), none), InvalidArgument);
  EXPECT_THROW(causal_convolution(x, weight, at::ones({1}), none), InvalidArgument);
}

TEST(CausalConvolution, StretchesContinueAndEqualLibtorch) {
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({2, 37, 5}).to(type), weight = at::randn({5, 1, 4}).to(type);
    at::Tensor whole, past;
    const at::Tensor y = causal_convolution_silu(x, weight, whole);
    const at::Tensor parts = at::cat(
        {causal_convolution_silu(x.slice(1, 0, 2), weight, past), causal_convolution_silu(x.slice(1, 2), weight, past)},
        1);
    // Products are fused with sums or not, by their place in memory.
    EXPECT_LT(largest_difference(parts, y), type == at::kDouble ? 1e-14 : type == at::kFloat ? 1e-5 : 0.05);
    EXPECT_TRUE(at::equal(past, whole));
    EXPECT_EQ(y.scalar_type(), type);
    const at::Tensor expected =
        at::silu(at::conv1d(x.to(at::kDouble).transpose(1, 2), weight.to(at::kDouble), {}, 1, 3, 1, 5).slice(2, 0, 37))
            .transpose(1, 2);
    EXPECT_LT(largest_difference(y, expected), type == at::kDouble ? 1e-13 : type == at::kFloat ? 1e-5 : 0.1);
  }
}

TEST(CausalConvolution, RefusesWhatDoesNotFit) {
  at::Tensor past;
  const at::Tensor x = at::ones({1, 2, 3});
  EXPECT_THROW(causal_convolution_silu(x, at::ones({2, 1, 4}), past), InvalidArgument);
  EXPECT_THROW(causal_convolution_silu(x, at::ones({3, 1, 4}, at::kDouble), past), InvalidArgument);
  EXPECT_THROW(causal_convolution_silu(x.slice(1, 2), at::ones({3, 1, 4}), past), InvalidArgument);
  past = at::zeros({1, 2, 3});
  EXPECT_THROW(causal_convolution_silu(x, at::ones({3, 1, 4}), past), InvalidArgument);
}

TEST(L2Normalised, ByHand) {
  const at::Tensor x = l2_normalised(at::tensor({3.0, 4.0}, at::kDouble));
  EXPECT_NEAR(x[0].item<double>(), 3 / std::sqrt(25 + 1e-6), 1e-15);
  EXPECT_EQ(l2_normalised(at::zeros({3})).abs().max().item<double>(), 0);
  EXPECT_EQ(l2_normalised(at::ones({3}, at::kBFloat16)).scalar_type(), at::kFloat);
  EXPECT_THAT([] { l2_normalised(at::full({3}, 1e20F)); },
              ThrowsMessage<RunFailed>(HasSubstr("the squares of queries or keys overflow")));
}

}  // namespace gated_delta_rule_test
}  // namespace gainlens::kernels
