// Compares attention with moments for training, and its gradients, with libtorch's autograd of the textbook form in
// float64.

#include "core/error.h"
#include "kernels/attention_testing.h"
#include "kernels/gradient/training_attention.h"
#include "kernels/training_testing.h"
#include "kernels/vector_targets.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::kernels {
namespace training_moments_test {

using testing::Call;
using testing::for_each_instruction_set;
using ::testing::HasSubstr;
using testing::name;
using testing::same_bits;
using testing::scale_of;
using testing::seeded_normal;
using ::testing::ThrowsMessage;

/// Query, key, value, key bias, slope; then the gradients of output, n_eff and S.
struct Inputs {
  std::vector<at::Tensor> leaves, upstream;
};

Inputs inputs_of(const Call& call, int seed) {
  const auto normal = [&](at::IntArrayRef sizes, int i) { return seeded_normal(sizes, seed + i).to(at::kFloat); };
  const std::int64_t b = call.batch, n = call.length, d = call.dims;
  return {
      {normal({b, call.heads, n, d}, 0), normal({b, call.kv_heads, n, d}, 1),
       normal({b, call.kv_heads, n, d}, 2) + call.offset, normal({b, n}, 3) * 2, at::full({1}, call.slope, at::kFloat)},
      {normal({b, call.heads, n, d}, 4), normal({b, call.heads, n}, 5) / static_cast<double>(n),
       normal({b, call.heads, n, d}, 6)}};
}

TrainedMoments textbook(const Call& call, const std::vector<at::Tensor>& in) {
  const std::int64_t group = call.heads / call.kv_heads;
  const at::Tensor places = at::arange(in[0].size(2)).unsqueeze(1) - at::arange(in[1].size(2));
  at::Tensor scores = at::matmul(in[0], in[1].repeat_interleave(group, 1).transpose(2, 3)) * scale_of(call) +
                      in[3].view({call.batch, 1, 1, -1}) + in[4] * places.abs();
  if (call.causal) scores = scores.masked_fill(places < 0, -std::numeric_limits<double>::infinity());
  const at::Tensor p = scores.softmax(-1), values = in[2].repeat_interleave(group, 1), output = at::matmul(p, values);
  const at::Tensor offsets = values.unsqueeze(2) - output.unsqueeze(3);  // [batch, head, query, key, dim]
  return {output, 1 / p.square().sum(-1), (p.unsqueeze(4) * offsets.square()).sum(3)};
}

/// The results, then the gradients of the leaves.
template <typename Attention>
std::vector<at::Tensor> differentiated(const Inputs& in, at::ScalarType type, const Attention& attention) {
  const at::AutoGradMode enabled(true);
  std::vector<at::Tensor> leaves, upstream;
  for (const at::Tensor& x : in.leaves) leaves.push_back(x.detach().to(type).requires_grad_(true));
  for (const at::Tensor& x : in.upstream) upstream.push_back(x.to(type));
  const TrainedMoments found = attention(leaves);
  std::vector<at::Tensor> all{found.output.detach(), found.n_eff.detach(), found.residual.detach()};
  for (const at::Tensor& x :
       torch::autograd::grad({found.output, found.n_eff, found.residual}, leaves, upstream, {}, false, true))
    all.push_back(x);
  return all;
}

TrainedMoments attend(const Call& call, const std::vector<at::Tensor>& in) {
  return training_attention_moments(in[0], in[1], in[2], scale_of(call), call.causal, {in[3], in[4]});
}

std::vector<at::Tensor> ours(const Call& call, const Inputs& in) {
  return differentiated(in, at::kFloat, [&](const auto& leaves) { return attend(call, leaves); });
}

std::vector<at::Tensor> exact(const Call& call, const Inputs& in) {
  return differentiated(in, at::kDouble, [&](const auto& leaves) { return textbook(call, leaves); });
}

constexpr const char* parts[] = {"output",
                                 "n_eff",
                                 "S",
                                 "gradient of the queries",
                                 "gradient of the keys",
                                 "gradient of the values",
                                 "gradient of the key bias",
                                 "gradient of the slope"};

void expect_close(const std::vector<at::Tensor>& found, const std::vector<at::Tensor>& wanted, double tolerance,
                  const std::string& where) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double size = std::max(wanted[i].abs().max().item<double>(), 1e-3);
    EXPECT_LT((found[i].to(at::kDouble) - wanted[i]).abs().max().item<double>() / size, tolerance)
        << parts[i] << ", " << where;
  }
}

TEST(TrainingMoments, EqualTheTextbookForEveryInstructionSet) {
  const Call calls[] = {
      {1, 1, 1, 1, 1},    {1, 2, 1, 2, 8},    {2, 3, 1, 15, 16},        {3, 6, 3, 64, 16},
      {1, 6, 2, 257, 16}, {1, 2, 2, 257, 40}, {1, 2, 1, 257, 64},       {1, 1, 1, 200, 128},
      {1, 2, 1, 300, 5},  {1, 1, 1, 70, 256}, {2, 4, 2, 63, 16, false}, {1, 3, 1, 257, 16, false},
  };
  int seed = 1;
  for (const Call& call : calls) {
    const Inputs in = inputs_of(call, seed += 10);
    const auto wanted = exact(call, in);
    for_each_instruction_set(
        [&](const char* target) { expect_close(ours(call, in), wanted, 2e-5, name(call) + ", " + target); });
  }
}

TEST(TrainingMoments, QueriesAndKeysMayDifferInNumber) {
  for (const bool causal : {false, true}) {
    for (const auto& [queries, keys] : {std::pair{40, 300}, std::pair{300, 40}}) {
      const Call call{1, 2, 1, 300, 16, causal};
      Inputs in = inputs_of(call, 51);
      in.leaves[0] = in.leaves[0].slice(2, 0, queries);
      for (at::Tensor& x : in.upstream) x = x.slice(2, 0, queries);
      for (const std::size_t i : {1U, 2U}) in.leaves[i] = in.leaves[i].slice(2, 0, keys);
      in.leaves[3] = in.leaves[3].slice(1, 0, keys);
      expect_close(ours(call, in), exact(call, in), 2e-5, fmt::format("{} queries, {} keys", queries, keys));
    }
  }
}

TEST(TrainingMoments, BiasesMayBeAbsentAndMomentsMayHaveNoGradient) {
  const Call call{2, 4, 2, 70, 16};
  Inputs in = inputs_of(call, 61);
  in.leaves[3].zero_();
  in.leaves[4].zero_();
  const auto wanted = exact(call, in);
  const auto found = differentiated(in, at::kFloat, [&](const auto& leaves) {
    return training_attention_moments(leaves[0], leaves[1], leaves[2], scale_of(call), call.causal);
  });
  for (const std::size_t i : {0U, 1U, 2U, 3U, 4U, 5U})
    EXPECT_LT((found[i].to(at::kDouble) - wanted[i]).abs().max().item<double>(), 1e-4) << parts[i];
  EXPECT_FALSE(found[6].defined());
  EXPECT_FALSE(found[7].defined());

  // A loss of the output alone has the gradients of attention without moments.
  const at::AutoGradMode enabled(true);
  const at::Tensor query = in.leaves[0].detach().requires_grad_(true);
  const auto output = training_attention_moments(query, in.leaves[1], in.leaves[2], scale_of(call), call.causal).output;
  const at::Tensor plain = training_attention(query, in.leaves[1], in.leaves[2], scale_of(call), call.causal);
  const auto gradient = [&](const at::Tensor& of) { return torch::autograd::grad({of}, {query}, {in.upstream[0]})[0]; };
  EXPECT_LT((gradient(output) - gradient(plain)).abs().max().item<double>(), 1e-5);
  EXPECT_LT((output - plain).abs().max().item<double>(), 1e-6);
}

TEST(TrainingMoments, EqualValuesHaveNoResidualAndOneKeyHasOne) {
  const Call call{1, 2, 1, 100, 24};
  Inputs in = inputs_of(call, 71);
  in.leaves[2].fill_(1000.5);
  const auto found = ours(call, in);
  EXPECT_LT(found[2].abs().max().item<double>(), 1e-6);      // of 1e6
  EXPECT_EQ(found[1].select(2, 0).min().item<double>(), 1);  // the first query sees one key
  EXPECT_EQ(found[2].select(2, 0).abs().max().item<double>(), 0);
  EXPECT_GE(found[1].min().item<double>(), 1);
}

TEST(TrainingMoments, ResidualsDoNotCancel) {
  // Values far from 0: a difference of sums of squares would lose 1e8 times the rounding error.
  const Call call{1, 2, 1, 257, 16, true, 1, -0.05, 1e4};
  const Inputs in = inputs_of(call, 81);
  const auto found = ours(call, in), wanted = exact(call, in);
  EXPECT_LT(((found[2].to(at::kDouble) - wanted[2]).abs().max() / wanted[2].max()).item<double>(), 1e-3);
}

TEST(TrainingMoments, BitsDoNotDependOnThreads) {
  const int threads = at::get_num_threads();
  const Call call{2, 6, 3, 700, 16};
  const Inputs in = inputs_of(call, 91);
  at::set_num_threads(1);
  const auto first = ours(call, in);
  for (const int count : {2, 3}) {
    at::set_num_threads(count);
    const auto found = ours(call, in);
    for (std::size_t i = 0; i < found.size(); ++i) EXPECT_TRUE(same_bits(found[i], first[i])) << parts[i];
  }
  at::set_num_threads(threads);
}

TEST(TrainingMoments, LargeBiasesStayFinite) {
  // Columns after the last query have scores of the bias alone.
  const Call call{1, 2, 1, 33, 16};
  Inputs in = inputs_of(call, 95);
  in.leaves[3] += 500;
  expect_close(ours(call, in), exact(call, in), 2e-4, "a bias of 500");
}

TEST(TrainingMoments, ErrorsNameTheMistake) {
  const at::Tensor x = at::ones({1, 2, 3, 8});
  EXPECT_THAT(
      [&] {
        training_attention_moments(x, x, x, 1, true, {at::ones({1, 4}), {}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("key bias must be float32 [batch, key]")));
  EXPECT_THAT(
      [&] {
        training_attention_moments(x, x, x, 1, true, {{}, at::ones({2})});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("slope must be one number")));
}

}  // namespace training_moments_test
}  // namespace gainlens::kernels
