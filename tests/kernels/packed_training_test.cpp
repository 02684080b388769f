#include "core/error.h"
#include "kernels/gradient/dropout.h"
#include "kernels/gradient/packed_attention.h"
#include "kernels/gradient/trained_loss.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <ostream>
#include <vector>

namespace gainlens::kernels {
namespace packed_training_test {

at::Tensor numbers(at::IntArrayRef sizes, std::uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(sizes, at::kDouble);
}

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Value and gradients of sum(f(inputs) * weights), where `weights` are fixed numbers.
std::vector<at::Tensor> value_and_gradients(const Function& f, const std::vector<at::Tensor>& inputs,
                                            at::ScalarType type) {
  std::vector<at::Tensor> leaves;
  for (const at::Tensor& input : inputs) leaves.push_back(input.to(type).detach().clone().requires_grad_(true));
  const at::Tensor value = f(leaves);
  (value * numbers(value.sizes(), 9).to(type)).sum().backward();
  std::vector<at::Tensor> found{value.detach()};
  for (const at::Tensor& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

/// The largest error of values and gradients, each relative to its largest element.
double error_of(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& expected) {
  double error = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double scale = expected[i].abs().max().item<double>();
    error =
        std::max(error, (found[i].to(at::kDouble) - expected[i]).abs().max().item<double>() / std::max(scale, 1e-9));
  }
  return error;
}

TEST(Dropout, MasksAreThoseOfAnIndependentSplitMix) {
  // From a Python program that implements the definition with integers of any size.
  struct Case {
    std::uint64_t key;
    std::int64_t row;
    std::vector<float> kept;
  };
  const std::vector<Case> cases = {{7U, 0, {1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1}},
                                   {7U, 5, {0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1}},
                                   {9223372036854775811U, 1000, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1}}};
  for (const Case& known : cases) {
    const at::Tensor found = dropped(at::ones({1, 15}), {0.25, known.key, known.row});
    const at::Tensor expected = at::tensor(known.kept) / 0.75;
    EXPECT_TRUE(at::allclose(found[0], expected.to(at::kFloat))) << known.key << " " << known.row;
  }
}

TEST(Dropout, KeepsTheMeanAndDropsTheShare) {
  const at::Tensor x = at::ones({1000, 333});
  for (const double rate : {0.1, 0.5, 0.9}) {
    const at::Tensor y = dropped(x, {rate, 11, 0});
    const double share = y.eq(0).to(at::kDouble).mean().item<double>();
    EXPECT_NEAR(share, rate, 5 * std::sqrt(rate * (1 - rate) / 333000));
    EXPECT_NEAR(y.max().item<double>(), 1 / (1 - rate), 1e-6);
    // Neither rows nor columns of their own kind.
    EXPECT_LT(y.eq(0).to(at::kDouble).mean(0).std().item<double>(), 1.3 * std::sqrt(rate * (1 - rate) / 1000));
    EXPECT_LT(y.eq(0).to(at::kDouble).mean(1).std().item<double>(), 1.3 * std::sqrt(rate * (1 - rate) / 333));
  }
  EXPECT_TRUE(at::equal(dropped(x, {0, 11, 0}), x));
  EXPECT_FALSE(at::equal(dropped(x, {0.5, 11, 0}), dropped(x, {0.5, 12, 0})));
  EXPECT_THROW(dropped(x, {1, 11, 0}), InternalError);
}

TEST(Dropout, APartDrawsTheMaskOfTheWhole) {
  const at::Tensor x = numbers({40, 9}, 1).to(at::kFloat);
  const at::Tensor whole = dropped(x, {0.5, 3, 0}), part = dropped(x.narrow(0, 25, 15), {0.5, 3, 25});
  EXPECT_TRUE(at::equal(whole.narrow(0, 25, 15), part));
}

TEST(Dropout, TheGradientHasTheSameMaskInEveryType) {
  const Function f = [](const auto& in) { return dropped(in[0], {0.3, 5, 2}); };
  const std::vector<at::Tensor> inputs{numbers({70, 31}, 1)};
  EXPECT_LT(error_of(value_and_gradients(f, inputs, at::kFloat), value_and_gradients(f, inputs, at::kDouble)), 1e-6);
  const auto found = value_and_gradients(f, inputs, at::kFloat);
  EXPECT_TRUE(at::equal(found[0].eq(0), found[1].eq(0)));
}

struct PackedCase {
  PackedBounds begin;
  std::int64_t heads, dims;
  bool causal;
  double rate;
};

/// Attention of each sequence alone by libtorch, with explicit weights.
at::Tensor by_sequence(const PackedCase& c, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  std::vector<at::Tensor> outputs;
  for (std::size_t s = 1; s < c.begin.size(); ++s) {
    const std::int64_t first = c.begin[s - 1], count = c.begin[s] - first;
    const auto heads = [&](const at::Tensor& x) { return x.narrow(0, first, count).transpose(0, 1); };
    at::Tensor scores = at::matmul(heads(query), heads(key).transpose(1, 2)) / std::sqrt(static_cast<double>(c.dims));
    if (c.causal) {
      const at::Tensor hidden = at::ones({count, count}, at::kBool).triu(1);
      scores = scores.masked_fill(hidden, -INFINITY);
    }
    at::Tensor weights = scores.softmax(-1);
    if (c.rate > 0) {
      const at::Tensor row = (at::arange(first, first + count) + 17) * c.heads;
      const at::Tensor rows = row.unsqueeze(0) + at::arange(c.heads).unsqueeze(1);
      weights = weights * dropout_factors({c.rate, 23, 0}, rows, count, weights);
    }
    outputs.push_back(at::matmul(weights, heads(value)).transpose(0, 1));
  }
  return at::cat(outputs);
}

/// For the names of tests, which must be the same in every run.
void PrintTo(const PackedCase& c, std::ostream* stream) {
  *stream << c.begin.size() - 1 << " sequences, " << c.begin.back() << " positions, " << c.heads << " x " << c.dims
          << (c.causal ? ", causal" : "") << ", dropout " << c.rate;
}

class PackedAttention : public ::testing::TestWithParam<PackedCase> {};

TEST_P(PackedAttention, IsThatOfEachSequenceAlone) {
  const PackedCase& c = GetParam();
  const std::int64_t rows = c.begin.back();
  const std::vector<at::Tensor> inputs{numbers({rows, c.heads, c.dims}, 1), numbers({rows, c.heads, c.dims}, 2),
                                       numbers({rows, c.heads, c.dims}, 3)};
  const Function ours = [&](const auto& in) {
    return packed_attention(in[0], in[1], in[2], c.begin, {0, c.causal, {c.rate, 23, 17}});
  };
  const Function exact = [&](const auto& in) { return by_sequence(c, in[0], in[1], in[2]); };
  const auto expected = value_and_gradients(exact, inputs, at::kDouble);
  EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kFloat), expected), 2e-6);
  EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kDouble), expected), 1e-13);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PackedAttention,
    ::testing::Values(PackedCase{{0, 1}, 1, 1, true, 0}, PackedCase{{0, 3, 3, 4, 21}, 2, 5, true, 0},
                      PackedCase{{0, 50, 51, 80}, 2, 32, true, 0}, PackedCase{{0, 50, 51, 80}, 2, 32, true, 0.5},
                      PackedCase{{0, 17, 33, 50, 116}, 3, 33, true, 0.2},
                      PackedCase{{0, 17, 33, 50, 116}, 3, 16, false, 0}, PackedCase{{0, 5, 12, 13}, 1, 64, false, 0.4},
                      PackedCase{{0, 257}, 1, 8, true, 0.1}));

/// Attention with moments of each sequence alone: textbook forms with explicit weights. Output, n_eff and S side by
/// side.
at::Tensor moments_by_sequence(const PackedCase& c, const std::vector<at::Tensor>& in) {
  std::vector<at::Tensor> outputs;
  for (std::size_t s = 1; s < c.begin.size(); ++s) {
    const std::int64_t first = c.begin[s - 1], count = c.begin[s] - first;
    const auto heads = [&](const at::Tensor& x) { return x.narrow(0, first, count).transpose(0, 1); };
    const at::Tensor place = at::arange(count, at::kDouble);
    at::Tensor scores = at::matmul(heads(in[0]), heads(in[1]).transpose(1, 2)) / std::sqrt(static_cast<double>(c.dims));
    scores = scores + in[3].narrow(0, first, count) + (place.unsqueeze(1) - place).abs() * in[4].view({-1, 1, 1});
    if (c.causal) scores = scores.masked_fill(at::ones({count, count}, at::kBool).triu(1), -INFINITY);
    const at::Tensor weights = scores.softmax(-1), values = heads(in[2]);
    at::Tensor dropped = weights;
    if (c.rate > 0) {
      const at::Tensor row = (at::arange(first, first + count) + 17) * c.heads;
      dropped = weights *
                dropout_factors({c.rate, 23, 0}, row.unsqueeze(0) + at::arange(c.heads).unsqueeze(1), count, weights);
    }
    const at::Tensor mean = at::matmul(weights, values);
    const at::Tensor offsets = values.unsqueeze(1) - mean.unsqueeze(2);  // [head, query, key, dim]
    const at::Tensor residual = (weights.unsqueeze(3) * offsets.square()).sum(2);
    const at::Tensor n_eff = 1 / weights.square().sum(-1, true);
    outputs.push_back(at::cat({at::matmul(dropped, values), n_eff, residual}, 2).transpose(0, 1));
  }
  return at::cat(outputs);
}

TEST_P(PackedAttention, MomentsAreThoseOfTheTextbook) {
  const PackedCase& c = GetParam();
  const std::int64_t rows = c.begin.back();
  const Function ours = [&](const auto& in) {
    const PackedMoments found =
        packed_attention_moments(in[0], in[1], in[2], c.begin, {0, c.causal, {c.rate, 23, 17}, in[3], in[4]});
    return at::cat({found.output, found.n_eff.unsqueeze(2), found.residual}, 2);
  };
  const Function exact = [&](const auto& in) { return moments_by_sequence(c, in); };
  // One slope for all heads, and one for each.
  for (const at::Tensor& slope : {at::full({1}, -0.05, at::kDouble), -0.05 * (1 + at::arange(c.heads, at::kDouble))}) {
    const std::vector<at::Tensor> inputs{numbers({rows, c.heads, c.dims}, 1), numbers({rows, c.heads, c.dims}, 2),
                                         numbers({rows, c.heads, c.dims}, 3) + 30, numbers({rows}, 4), slope};
    const auto expected = value_and_gradients(exact, inputs, at::kDouble);
    EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kDouble), expected), 1e-11);
    EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kFloat), expected), 2e-5);  // values stand 30 from 0
  }
}

TEST_P(PackedAttention, BiasesWithoutMomentsGiveTheSameOutput) {
  const PackedCase& c = GetParam();
  const std::int64_t rows = c.begin.back();
  const std::vector<at::Tensor> inputs{numbers({rows, c.heads, c.dims}, 1), numbers({rows, c.heads, c.dims}, 2),
                                       numbers({rows, c.heads, c.dims}, 3), numbers({rows}, 4),
                                       at::full({1}, -0.05, at::kDouble)};
  const Function ours = [&](const auto& in) {
    return packed_attention(in[0], in[1], in[2], c.begin, {0, c.causal, {c.rate, 23, 17}, in[3], in[4]});
  };
  const Function exact = [&](const auto& in) { return moments_by_sequence(c, in).narrow(2, 0, c.dims); };
  EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kFloat), value_and_gradients(exact, inputs, at::kDouble)),
            6e-6);
}

TEST(PackedAttentionLimits, ScoresOfAnySizeLeaveTheMissingKeysOut) {
  const at::Tensor q = at::zeros({3, 1, 2}), v = at::ones({3, 1, 2});
  PackedAttentionOptions options;
  options.causal = false;
  for (const double bias : {0.0, 1e5, 5e9, 1e30, -1e30}) {
    options.key_bias = at::full({3}, bias, at::kFloat);
    const PackedMoments found = packed_attention_moments(q, q, v, {0, 3}, options);
    EXPECT_LT((found.output - 1).abs().max().item<double>(), 1e-6) << bias;
    EXPECT_LT((found.n_eff - 3).abs().max().item<double>(), 1e-5) << bias;
  }
}

TEST(PackedAttentionBits, DoNotDependOnThreads) {
  const PackedBounds begin{0, 9, 30, 31, 64, 90, 120, 121, 150, 177, 200};
  const at::Tensor x = numbers({200, 6, 16}, 1).to(at::kFloat);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> found;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    found.push_back(value_and_gradients(
        [&](const auto& in) {
          return packed_attention(in[0].narrow(1, 0, 2), in[0].narrow(1, 2, 2), in[0].narrow(1, 4, 2), begin,
                                  {.dropout = {0.5, 4, 0}});
        },
        {x}, at::kFloat));
  }
  at::set_num_threads(before);
  for (const auto& other : found) {
    EXPECT_TRUE(at::equal(other[0], found[0][0]));
    EXPECT_TRUE(at::equal(other[1], found[0][1]));
  }
}

TEST(PackedAttentionBits, LaterItemsChangeNothingBefore) {
  const at::Tensor x = numbers({12, 2, 8}, 1).to(at::kFloat);
  at::Tensor changed = x.clone();
  changed[11].fill_(100);
  changed[4].fill_(-50);
  const PackedBounds begin{0, 5, 12};
  const at::Tensor one = packed_attention(x, x, x, begin), other = packed_attention(changed, changed, changed, begin);
  EXPECT_TRUE(at::equal(one.narrow(0, 0, 4), other.narrow(0, 0, 4)));
  EXPECT_TRUE(at::equal(one.narrow(0, 5, 6), other.narrow(0, 5, 6)));
  EXPECT_FALSE(at::equal(one[11], other[11]));
}

TEST(LastQueries, AreTheLastRowsOfAllQueries) {
  const PackedBounds begin{0, 1, 8, 71, 74, 200};
  const at::Tensor last = at::tensor(std::vector<std::int64_t>{0, 7, 70, 73, 199}, at::kLong);
  for (const auto type : {at::kFloat, at::kDouble}) {
    const auto made = [&](at::IntArrayRef sizes, std::uint64_t seed) { return numbers(sizes, seed).to(type); };
    const at::Tensor q = made({200, 2, 5}, 1), k = made({200, 2, 5}, 2), v = made({200, 2, 5}, 3);
    for (const bool causal : {true, false}) {
      for (const bool biased : {true, false}) {
        PackedAttentionOptions options{.causal = causal};
        if (biased) {
          options.key_bias = made({200}, 4);
          options.distance_slope = made({2}, 5);
        }
        const PackedMoments all = packed_attention_moments(q, k, v, begin, options);
        options.last_queries = true;
        const at::Tensor asking = q.index_select(0, last);
        const PackedMoments found = packed_attention_moments(asking, k, v, begin, options);
        // The loop does the same for each query: equal bits. Library calls see other shapes.
        const auto expect_equal = [&](const at::Tensor& one, const at::Tensor& other) {
          if (type == at::kFloat) {
            EXPECT_TRUE(at::equal(one, other.index_select(0, last)));
          } else {
            EXPECT_TRUE(at::allclose(one, other.index_select(0, last), 1e-12, 1e-12));
          }
        };
        expect_equal(found.output, all.output);
        expect_equal(found.n_eff, all.n_eff);
        expect_equal(found.residual, all.residual);
        expect_equal(packed_attention(asking, k, v, begin, options), all.output);
      }
    }
    EXPECT_THROW(packed_attention(q, k, v, begin, {.last_queries = true}), InternalError);
    const at::Tensor five = q.index_select(0, last);
    EXPECT_THROW(packed_attention(five, k, v, {0, 1, 1, 71, 74, 200}, {.last_queries = true}), InternalError);
    EXPECT_THROW(packed_attention(five, k, v, begin, {.dropout = {0.5, 1, 0}, .last_queries = true}), InternalError);
    EXPECT_THROW(packed_attention(five, k, v, begin), InternalError);
  }
}

TEST(PackedAttentionInputs, ThatDoNotFitAreRefused) {
  const at::Tensor x = at::ones({4, 1, 2});
  EXPECT_THROW(packed_attention(x, x, x, {0, 4}, {.key_bias = at::ones({3})}), InternalError);
  EXPECT_THROW(packed_attention_moments(x, x, x, {0, 4}, {.distance_slope = at::ones({2})}), InternalError);
  EXPECT_THROW(packed_attention_moments(x, x, x, {0, 4}, {.distance_slope = at::ones({1, 1})}), InternalError);
  EXPECT_THROW(packed_attention(x, x, x, {0, 3}), InternalError);
  EXPECT_THROW(packed_attention(x, x, x, {0, 3, 2, 4}), InternalError);
  EXPECT_THROW(packed_attention(x, x.narrow(0, 0, 3), x, {0, 4}), InternalError);
}

TEST(TrainedLoss, GradientsOfTilesAreThoseOfDenseLogits) {
  struct Size {
    std::int64_t rows, items, width;
  };
  for (const Size size :
       {Size{1, 1, 1}, Size{3, 2, 5}, Size{511, 511, 8}, Size{512, 512, 16}, Size{513, 513, 64}, Size{700, 9000, 64}}) {
    at::manual_seed(3);
    const at::Tensor targets = at::randint(size.items, {size.rows}, at::kLong);
    // Logits of a few units, as in training: float32 holds larger ones less exactly.
    const double scale = std::pow(static_cast<double>(size.width), -0.25);
    const std::vector<at::Tensor> inputs{numbers({size.rows, size.width}, 1) * scale,
                                         numbers({size.items, size.width}, 2) * scale};
    for (const double cap : {0.0, 3.0}) {
      const auto expected = value_and_gradients(
          [&](const auto& in) {
            const at::Tensor logits = at::linear(in[0], in[1]);
            return at::cross_entropy_loss(cap == 0 ? logits : cap * at::tanh(logits / cap), targets);
          },
          inputs, at::kDouble);
      for (const std::int64_t bytes : {std::int64_t{1} << 30, std::int64_t{0}}) {
        const Function ours = [&](const auto& in) {
          return trained_mean_loss(in[0], in[1], targets, {.soft_cap = cap, .logit_bytes = bytes});
        };
        EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kFloat), expected), cap == 0 ? 1e-6 : 2e-6)
            << size.rows << " x " << size.items << ", cap " << cap << ", bytes " << bytes;
        if (size.items > 1000) continue;
        EXPECT_LT(error_of(value_and_gradients(ours, inputs, at::kDouble), expected), 1e-12);
      }
    }
  }
}

TEST(TrainedLoss, BitsDoNotDependOnThreads) {
  const std::vector<at::Tensor> inputs{numbers({600, 24}, 1), numbers({3000, 24}, 2)};
  at::manual_seed(3);
  const at::Tensor targets = at::randint(3000, {600}, at::kLong);
  const int before = at::get_num_threads();
  std::vector<std::vector<at::Tensor>> found;
  for (const int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    found.push_back(value_and_gradients([&](const auto& in) { return trained_mean_loss(in[0], in[1], targets); },
                                        inputs, at::kFloat));
  }
  at::set_num_threads(before);
  for (const auto& other : found) {
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(at::equal(other[i], found[0][i])) << i;
  }
}

TEST(TrainedLoss, InfiniteLogitsGiveNan) {
  at::Tensor input = at::ones({3, 2});
  input[1][0] = INFINITY;
  const at::Tensor head = at::ones({4, 2}).requires_grad_(true);
  EXPECT_TRUE(std::isnan(trained_mean_loss(input, head, at::zeros({3}, at::kLong)).item<double>()));
}

TEST(OtherDevices, EveryTensorIsMadeWhereItsInputsAre) {
  // The meta device computes shapes alone; an operation that mixes it with the CPU fails.
  const auto on_meta = at::TensorOptions().device(at::kMeta).dtype(at::kFloat);
  const at::Tensor x = at::empty({20, 2, 8}, on_meta).requires_grad_(true);
  const at::Tensor attended = packed_attention(x, x, x, {0, 7, 20}, {.dropout = {0.5, 1, 0}});
  const at::Tensor rows = dropped(attended.flatten(1), {0.5, 2, 0});
  const at::Tensor head = at::empty({30, 16}, on_meta).requires_grad_(true);
  const at::Tensor loss = trained_mean_loss(rows, head, at::empty({20}, on_meta.dtype(at::kLong)));
  loss.backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(head.grad().device(), head.device());
}

}  // namespace packed_training_test
}  // namespace gainlens::kernels
