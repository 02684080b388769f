// Compares the gradients of attention and of its moments with libtorch's autograd of the textbook form, and with
// central differences.

#include "kernels/gradient/attention_gradient.h"

#include "core/error.h"
#include "kernels/attention_testing.h"
#include "kernels/counted_memory.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <ostream>

namespace gainlens::kernels {
namespace attention_gradient_test {

using testing::cast;
using ::testing::HasSubstr;
using testing::Inputs;
using testing::random_inputs;
using testing::same_bits;
using testing::seeded_normal;
using ::testing::ThrowsMessage;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// True if query t may see key j according to the positions alone, [query, key].
at::Tensor seen_pairs(const AttentionOptions& options, std::int64_t length) {
  const at::Tensor position = at::arange(length, at::kLong), distance = position.unsqueeze(1) - position;
  at::Tensor seen = at::ones({length, length}, at::kBool);
  if (options.causal) seen = seen.logical_and(distance.ge(0));
  if (options.window) seen = seen.logical_and(distance.abs().lt(*options.window));
  if (options.sequences.empty()) return seen;
  at::Tensor together = at::zeros_like(seen);
  for (const Sequence& sequence : options.sequences) {
    together.slice(0, sequence.begin, sequence.end).slice(1, sequence.begin, sequence.end).fill_(true);
  }
  return seen.logical_and(together);
}

/// The definitions with all T x T weights in memory, in operations that libtorch differentiates.
DifferentiableAttention textbook(const AttentionOptions& options, const Inputs& in) {
  const std::int64_t length = in.query.size(1), group = in.query.size(0) / in.key.size(0);
  const at::Tensor key = in.key.repeat_interleave(group, 0), value = in.value.repeat_interleave(group, 0);
  const double scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(in.query.size(2)));
  at::Tensor scores = at::matmul(in.query, key.transpose(1, 2)) * scale;
  if (options.soft_cap > 0) scores = at::tanh(scores / options.soft_cap) * options.soft_cap;
  if (options.key_bias.defined()) scores = scores + at::atleast_2d(options.key_bias).unsqueeze(1);
  if (options.distance_bias.defined()) {
    const at::Tensor position = at::arange(length, at::kLong), distance = (position.unsqueeze(1) - position).abs();
    scores = scores + at::atleast_2d(options.distance_bias).index({at::indexing::Slice(), distance});
  }
  const at::Tensor hidden = seen_pairs(options, length).logical_not().logical_or(at::isneginf(scores));
  const at::Tensor empty = hidden.all(-1, /*keepdim=*/true);  // queries without keys: softmax over zeros, then dropped
  const at::Tensor visible = scores.masked_fill(hidden, -infinity).masked_fill(empty, 0);
  const at::Tensor p = at::softmax(visible, -1).masked_fill(empty, 0);
  const at::Tensor estimate = at::matmul(p, value);
  const at::Tensor residual = (p.unsqueeze(3) * (value.unsqueeze(1) - estimate.unsqueeze(2)).square()).sum(2);
  const at::Tensor n_eff = 1 / (p.square().sum(-1) + empty.squeeze(-1));
  at::Tensor output = estimate;
  if (options.sink_logit.defined()) {
    output = estimate * at::sigmoid(at::logsumexp(visible, -1, /*keepdim=*/true) - options.sink_logit.view({-1, 1, 1}));
  }
  return {output, n_eff.masked_fill(empty.squeeze(-1), NAN), residual.masked_fill(empty, NAN)};
}

/// All tensors that can have a gradient.
struct Leaves {
  Inputs in;
  AttentionOptions options;

  std::vector<std::pair<std::string, at::Tensor>> all() const {
    std::vector<std::pair<std::string, at::Tensor>> leaves{{"query", in.query}, {"key", in.key}, {"value", in.value}};
    if (options.key_bias.defined()) leaves.emplace_back("key_bias", options.key_bias);
    if (options.distance_bias.defined()) leaves.emplace_back("distance_bias", options.distance_bias);
    if (options.sink_logit.defined()) leaves.emplace_back("sink_logit", options.sink_logit);
    return leaves;
  }
};

/// Copies that require gradients.
Leaves fresh(const AttentionOptions& options, const Inputs& in) {
  Leaves leaves{in, options};
  for (at::Tensor* tensor : {&leaves.in.query, &leaves.in.key, &leaves.in.value, &leaves.options.key_bias,
                             &leaves.options.distance_bias, &leaves.options.sink_logit}) {
    if (tensor->defined()) *tensor = tensor->detach().clone().set_requires_grad(true);
  }
  return leaves;
}

/// The results that enter the loss.
struct LossTerms {
  bool output = true, n_eff = true, residual = true;
};

/// A weighted sum of every result, each with its own weights; NaN counts as 0.
at::Tensor loss_of(const DifferentiableAttention& result, const LossTerms& terms) {
  const auto term = [](const at::Tensor& tensor, std::uint64_t seed) {
    return (at::nan_to_num(tensor, 0.0) * seeded_normal(tensor.sizes(), seed).to(tensor.scalar_type())).sum();
  };
  at::Tensor loss = at::zeros({}, result.output.options());
  if (terms.output) loss = loss + term(result.output, 11);
  if (terms.n_eff) loss = loss + term(result.n_eff, 12);
  if (terms.residual) loss = loss + term(result.residual, 13);
  return loss;
}

using Attention = std::function<DifferentiableAttention(const AttentionOptions&, const Inputs&)>;

DifferentiableAttention blockwise(const AttentionOptions& options, const Inputs& in) {
  return attention_with_gradient(options, in.query, in.key, in.value);
}

std::vector<at::Tensor> gradients(const Attention& attention, const Leaves& leaves, const LossTerms& terms = {}) {
  std::vector<at::Tensor> wanted;
  for (const auto& [name, leaf] : leaves.all()) wanted.push_back(leaf);
  return torch::autograd::grad({loss_of(attention(leaves.options, leaves.in), terms)}, wanted, {},
                               /*retain_graph=*/false,
                               /*create_graph=*/false, /*allow_unused=*/true);
}

/// Expects that results and gradients agree with the textbook form, relative to the largest element of each.
void expect_textbook(const AttentionOptions& options, const Inputs& in, const LossTerms& terms = {},
                     double tolerance = 1e-10) {
  const DifferentiableAttention found = blockwise(options, in), expected = textbook(options, in);
  EXPECT_LT(testing::error_of_largest(found.output, expected.output), tolerance);
  EXPECT_LT(testing::relative_error(found.n_eff, expected.n_eff), tolerance);
  EXPECT_LT(testing::relative_error(found.residual, expected.residual, 1e-3), tolerance);
  const Leaves ours = fresh(options, in), theirs = fresh(options, in);
  const std::vector<at::Tensor> actual = gradients(blockwise, ours, terms),
                                reference = gradients(textbook, theirs, terms);
  const auto names = ours.all();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const at::Tensor wanted = reference[i].defined() ? reference[i] : at::zeros_like(names[i].second);
    ASSERT_TRUE(actual[i].defined()) << names[i].first;
    ASSERT_EQ(actual[i].sizes(), wanted.sizes()) << names[i].first;
    EXPECT_LT((actual[i] - wanted).abs().max().item<double>(), tolerance * (wanted.abs().max().item<double>() + 1e-2))
        << names[i].first;
  }
}

struct Case {
  std::string name;
  AttentionOptions options;
  std::int64_t length = 150, head_dim = 8, kv_heads = 2, group = 3;
};
void PrintTo(const Case& tested, std::ostream* out) {
  *out << tested.name;
}

/// A case with 6 heads and 150 positions, whose options `change` sets.
Case masked(std::string name, const std::function<void(AttentionOptions&)>& change) {
  Case result{.name = std::move(name), .options = {}};
  change(result.options);
  return result;
}

at::Tensor hiding(at::Tensor bias, std::initializer_list<std::int64_t> positions) {
  for (const std::int64_t position : positions) bias.select(-1, position).fill_(-infinity);
  return bias;
}

std::vector<Case> all_cases() {
  const std::vector<Sequence> packed{{.begin = 3, .end = 4}, {.begin = 4, .end = 80}, {.begin = 90, .end = 140}};
  return {
      {.name = "plain", .options = {}},
      {.name = "one_position", .options = {}, .length = 1},
      {.name = "two_positions", .options = {}, .length = 2, .kv_heads = 1, .group = 1},
      {.name = "one_head", .options = {}, .length = 65, .head_dim = 3, .kv_heads = 1, .group = 1},
      {.name = "kv_head_by_kv_head", .options = {}, .length = 300, .head_dim = 2, .kv_heads = 2, .group = 16},
      masked("bidirectional", [](AttentionOptions& o) { o.causal = false; }),
      masked("scale", [](AttentionOptions& o) { o.scale = -0.7; }),
      masked("window", [](AttentionOptions& o) { o.window = 40; }),
      masked("window_of_one", [](AttentionOptions& o) { o.window = 1; }),
      masked("window_beyond_the_text", [](AttentionOptions& o) { o.window = 1LL << 62; }),
      masked("window_both_ways",
             [](AttentionOptions& o) {
               o.causal = false;
               o.window = 17;
             }),
      masked("soft_cap", [](AttentionOptions& o) { o.soft_cap = 1.5; }),
      masked("sink_logit", [](AttentionOptions& o) { o.sink_logit = seeded_normal({6}, 5); }),
      masked("key_bias", [](AttentionOptions& o) { o.key_bias = seeded_normal({150}, 6); }),
      masked("key_bias_of_heads",
             [](AttentionOptions& o) {
               o.key_bias = seeded_normal({6, 150}, 6);
             }),
      masked("hidden_keys",
             [](AttentionOptions& o) {
               o.key_bias = hiding(seeded_normal({6, 150}, 6), {0, 1, 2, 64, 149});
             }),
      masked("all_keys_hidden", [](AttentionOptions& o) { o.key_bias = at::full({150}, -infinity, at::kDouble); }),
      masked("hidden_keys_and_sink",
             [](AttentionOptions& o) {
               o.key_bias = hiding(seeded_normal({150}, 6), {0, 1, 100});
               o.sink_logit = seeded_normal({6}, 5);
             }),
      masked("distance_bias", [](AttentionOptions& o) { o.distance_bias = seeded_normal({150}, 7); }),
      masked("distance_bias_of_heads",
             [](AttentionOptions& o) {
               o.distance_bias = seeded_normal({6, 150}, 7);
               o.window = 70;
             }),
      masked("distance_bias_both_ways",
             [](AttentionOptions& o) {
               o.causal = false;
               o.distance_bias = hiding(seeded_normal({6, 150}, 7), {0, 3, 149});
             }),
      masked("packed", [&](AttentionOptions& o) { o.sequences = packed; }),
      masked("packed_whole", [&](AttentionOptions& o) { o.sequences = {{.begin = 0, .end = 150}}; }),
      masked("everything",
             [&](AttentionOptions& o) {
               o.sequences = packed;
               o.window = 30;
               o.scale = 0.5;
               o.soft_cap = 2;
               o.key_bias = hiding(seeded_normal({6, 150}, 6), {3, 4, 5, 139});
               o.distance_bias = seeded_normal({150}, 7);
               o.sink_logit = seeded_normal({6}, 5);
             }),
  };
}

class AttentionGradient : public ::testing::TestWithParam<Case> {
 protected:
  static Inputs inputs() {
    return random_inputs(GetParam().length, GetParam().head_dim, GetParam().kv_heads, GetParam().group);
  }
};

TEST_P(AttentionGradient, IsThatOfTheTextbookForm) {
  expect_textbook(GetParam().options, inputs());
}

TEST_P(AttentionGradient, OfEveryResultAlone) {
  for (const LossTerms& terms :
       {LossTerms{true, false, false}, LossTerms{false, true, false}, LossTerms{false, false, true}}) {
    expect_textbook(GetParam().options, inputs(), terms);
  }
}

TEST_P(AttentionGradient, WithoutMomentsTheOutputIsTheSame) {
  const Attention output_alone = [](const AttentionOptions& options, const Inputs& in) {
    return attention_with_gradient(options, in.query, in.key, in.value, Moments::none);
  };
  const LossTerms output{true, false, false};
  const Leaves ours = fresh(GetParam().options, inputs()), theirs = fresh(GetParam().options, inputs());
  const DifferentiableAttention found = output_alone(ours.options, ours.in);
  EXPECT_FALSE(found.n_eff.defined() || found.residual.defined());
  EXPECT_LT(testing::error_of_largest(found.output, blockwise(theirs.options, theirs.in).output), 1e-12);
  const std::vector<at::Tensor> actual = gradients(output_alone, ours, output),
                                expected = gradients(blockwise, theirs, output);
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(at::allclose(actual[i], expected[i], 1e-10, 1e-10)) << ours.all()[i].first;
}

TEST_P(AttentionGradient, ResultsAreTheOracles) {
  AttentionOptions options = GetParam().options;
  options.returned.per_dimension = true;
  const DifferentiableAttention found = blockwise(options, inputs());
  const QueryStatistics expected = testing::reference(options, inputs());
  EXPECT_LT(testing::error_of_largest(found.output, expected.output), 1e-11);
  EXPECT_LT(testing::relative_error(found.n_eff, expected.n_eff), 1e-11);
  EXPECT_LT(testing::relative_error(found.residual, expected.residual_by_dimension, 1e-2), 1e-11);
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionGradient, ::testing::ValuesIn(all_cases()),
                         [](const auto& param) { return param.param.name; });

TEST(AttentionGradientByHand, TwoKeysOfEqualWeight) {
  // Scores 0, values 1 and 3: p = 1/2 each, e = 2, S = 1, n_eff = 2. Only the second query enters the loss; it sees
  // both keys.
  const at::Tensor query = at::zeros({1, 2, 1}, at::kDouble),
                   key = at::tensor({1.0, -1.0}, at::kDouble).view({1, 2, 1});
  const at::Tensor value = at::tensor({1.0, 3.0}, at::kDouble).view({1, 2, 1});
  Leaves leaves = fresh({.scale = 1}, {query, key, value});
  const DifferentiableAttention result = blockwise(leaves.options, leaves.in);
  EXPECT_DOUBLE_EQ(result.output[0][1].item<double>(), 2);
  EXPECT_DOUBLE_EQ(result.n_eff[0][1].item<double>(), 2);
  EXPECT_DOUBLE_EQ(result.residual[0][1].item<double>(), 1);
  (result.output[0][1] + 10 * result.residual[0][1]).sum().backward();
  // de/dv = p, dS/dv_j = 2 p (v_j - e) = -1, 1. With s = (q, -q): dp/dq = 1/2, -1/2, so de/dq = (1 - 3) / 2 and dS/dq =
  // 0 by symmetry.
  EXPECT_TRUE(
      at::allclose(leaves.in.value.grad().view({2}), at::tensor({0.5 - 10, 0.5 + 10}, at::kDouble), 1e-14, 1e-14));
  EXPECT_NEAR(leaves.in.query.grad()[0][1].item<double>(), -1, 1e-14);
}

TEST(AttentionGradientByHand, CentralDifferences) {
  AttentionOptions options{.window = 6, .soft_cap = 2};
  options.key_bias = hiding(seeded_normal({4, 11}, 6), {0, 1});
  options.distance_bias = seeded_normal({11}, 7);
  options.sink_logit = seeded_normal({4}, 5);
  const Leaves leaves = fresh(options, random_inputs(11, 3, 2, 2));
  const std::vector<at::Tensor> found = gradients(blockwise, leaves);
  const at::NoGradGuard no_gradient;
  const auto loss = [&] { return loss_of(blockwise(leaves.options, leaves.in), {}).item<double>(); };
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto [name, leaf] = leaves.all()[i];
    const at::Tensor flat = leaf.view({-1}), gradient = found[i].view({-1});
    const double step = 1e-5;
    for (std::int64_t element = 0; element < flat.size(0); ++element) {
      if (at::isneginf(flat[element]).item<bool>()) continue;
      flat[element] += step;
      const double above = loss();
      flat[element] -= 2 * step;
      const double below = loss();
      flat[element] += step;
      EXPECT_NEAR((above - below) / (2 * step), gradient[element].item<double>(), 1e-7) << name << " " << element;
    }
  }
}

TEST(AttentionGradientGuarantees, HiddenQueriesIgnoreWhatComesBack) {
  AttentionOptions options;
  options.key_bias = hiding(at::zeros({70}, at::kDouble), {0, 1});
  options.sequences = {{.begin = 0, .end = 60}};
  const Leaves leaves = fresh(options, random_inputs(70, 4, 1, 2));
  const DifferentiableAttention result = blockwise(leaves.options, leaves.in);
  const at::Tensor from_nothing = at::full_like(result.n_eff, NAN);  // the gradient of a loss that includes the NaN
  from_nothing.slice(1, 2, 60).fill_(1);
  const at::Tensor of_outputs = from_nothing.unsqueeze(2).expand_as(result.output);
  torch::autograd::backward({result.output, result.n_eff, result.residual}, {of_outputs, from_nothing, of_outputs});
  for (const auto& [name, leaf] : leaves.all()) {
    EXPECT_TRUE(at::isfinite(leaf.grad()).all().item<bool>()) << name;
    EXPECT_GT(leaf.grad().abs().max().item<double>(), 0) << name;
  }
  EXPECT_EQ(leaves.in.query.grad().slice(1, 0, 2).abs().max().item<double>(), 0);
  EXPECT_EQ(leaves.in.value.grad().slice(1, 60).abs().max().item<double>(), 0);
}

/// Largest error of the float32 gradients, relative to the largest float64 gradient for the same inputs.
double float32_error(const AttentionOptions& options, const Inputs& in) {
  const Inputs narrow = cast(in, at::kFloat);
  const Leaves ours = fresh(options, narrow), exact = fresh(options, cast(narrow, at::kDouble));
  const std::vector<at::Tensor> found = gradients(blockwise, ours), expected = gradients(blockwise, exact);
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, testing::error_of_largest(found[i], expected[i]));
  return worst;
}

TEST(AttentionGradientAccuracy, Float32StaysNearFloat64) {
  const Inputs in = random_inputs(300, 32, 2, 2);
  EXPECT_LT(float32_error({}, in), 1e-5);
  EXPECT_LT(float32_error({.window = 50, .soft_cap = 3}, in), 1e-5);
  // Values of mean 1000 and variance 1e-3. float32 stores them to within 6e-5; the spread of the stored values is
  // exact.
  EXPECT_LT(float32_error({}, {in.query, in.key, 1000 + std::sqrt(1e-3) * in.value}), 1e-4);
}

TEST(AttentionGradientAccuracy, MassOnKey0DoesNotSpoilTheResidual) {
  Inputs in = random_inputs(200, 16, 1, 1);
  in.key.select(1, 0).fill_(0);
  in.query.select(2, 0).fill_(8);
  in.key.select(2, 0).fill_(-4);
  in.key[0][0][0] = 4;  // the score of key 0 is 16 above the other scores
  in = cast(in, at::kFloat);
  const DifferentiableAttention found = blockwise({}, in), expected = blockwise({}, cast(in, at::kDouble));
  EXPECT_GT(expected.n_eff.min().item<double>(), 0.99);
  EXPECT_LT(expected.residual.slice(1, 1).max().item<double>(), 1e-2);
  EXPECT_LT(testing::relative_error(found.residual, expected.residual), 1e-4);
}

TEST(AttentionGradientAccuracy, NarrowTypesComputeInFloat32) {
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const Inputs narrow = cast(random_inputs(100, 16, 2, 2), type);
    const Leaves ours = fresh({}, narrow), exact = fresh({}, cast(narrow, at::kDouble));
    const DifferentiableAttention result = blockwise({}, ours.in);
    EXPECT_EQ(result.output.scalar_type(), type);
    EXPECT_EQ(result.residual.scalar_type(), at::kFloat);
    EXPECT_EQ(result.n_eff.scalar_type(), at::kFloat);
    const std::vector<at::Tensor> found = gradients(blockwise, ours), expected = gradients(blockwise, exact);
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].scalar_type(), type);
      EXPECT_LT(testing::error_of_largest(found[i], expected[i]), type == at::kHalf ? 1e-3 : 8e-3);
    }
  }
}

TEST(AttentionGradientGuarantees, TheSameBitsAgain) {
  const Inputs in = cast(random_inputs(300, 16, 2, 3), at::kFloat);
  AttentionOptions options;
  options.key_bias = seeded_normal({6, 300}, 6).to(at::kFloat);
  options.distance_bias = seeded_normal({300}, 7).to(at::kFloat);
  const std::vector<at::Tensor> first = gradients(blockwise, fresh(options, in)),
                                again = gradients(blockwise, fresh(options, in));
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(same_bits(first[i], again[i]));
}

TEST(AttentionGradientGuarantees, PackingChangesNoSequence) {
  const Inputs in = random_inputs(120, 8, 1, 2);
  const Leaves packed = fresh({.sequences = {{.begin = 10, .end = 90}}}, in);
  const Leaves alone = fresh({}, {in.query.slice(1, 10, 90), in.key.slice(1, 10, 90), in.value.slice(1, 10, 90)});
  const DifferentiableAttention whole = blockwise(packed.options, packed.in), part = blockwise({}, alone.in);
  EXPECT_TRUE(same_bits(whole.residual.slice(1, 10, 90), part.residual));
  whole.residual.slice(1, 10, 90).sum().backward();
  part.residual.sum().backward();
  EXPECT_TRUE(same_bits(packed.in.key.grad().slice(1, 10, 90), alone.in.key.grad()));
}

TEST(AttentionGradientGuarantees, StridedViewsAreRead) {
  const Inputs in = random_inputs(90, 8, 2, 2);
  const auto position_first = [](const at::Tensor& t) { return t.transpose(0, 1).contiguous().transpose(0, 1); };
  expect_textbook({}, {position_first(in.query), position_first(in.key), position_first(in.value)});
}

TEST(AttentionGradientGuarantees, OnlyWhatIsAskedForGetsAGradient) {
  Inputs in = random_inputs(40, 4, 1, 1);
  in.value.requires_grad_(true);
  const DifferentiableAttention result = blockwise({}, in);
  result.residual.sum().backward();
  EXPECT_TRUE(in.value.grad().defined());
  EXPECT_FALSE(in.query.grad().defined() || in.key.grad().defined());
}

TEST(AttentionGradientGuarantees, RunsWithoutGradients) {
  const Leaves leaves = fresh({}, random_inputs(40, 4, 1, 1));
  const DifferentiableAttention tracked = blockwise({}, leaves.in);
  EXPECT_TRUE(tracked.output.requires_grad() && tracked.n_eff.requires_grad() && tracked.residual.requires_grad());
  const c10::InferenceMode inference;
  const DifferentiableAttention untracked = blockwise({}, leaves.in);
  EXPECT_FALSE(untracked.output.requires_grad());
  EXPECT_TRUE(same_bits(untracked.residual, tracked.residual));
}

TEST(AttentionGradientGuarantees, SecondDerivativesAreRefused) {
  const Leaves leaves = fresh({}, random_inputs(10, 4, 1, 1));
  const at::Tensor loss = loss_of(blockwise({}, leaves.in), {});
  EXPECT_THAT(
      [&] { torch::autograd::grad({loss}, {leaves.in.query}, {}, /*retain_graph=*/true, /*create_graph=*/true); },
      ThrowsMessage<InvalidArgument>(HasSubstr("second derivative")));
}

TEST(AttentionGradientGuarantees, AnInputChangedInBetweenIsNoticed) {
  const Leaves leaves = fresh({.key_bias = at::zeros({10}, at::kDouble)}, random_inputs(10, 4, 1, 1));
  const at::Tensor loss = loss_of(blockwise(leaves.options, leaves.in), {});
  {
    const at::NoGradGuard no_gradient;
    leaves.options.key_bias.add_(1);
  }
  EXPECT_THAT([&] { loss.backward(); }, ThrowsMessage<std::exception>(HasSubstr("modified by an inplace operation")));
}

TEST(AttentionGradientGuarantees, BadInputIsNamed) {
  const Inputs in = random_inputs(10, 4, 1, 1);
  EXPECT_THAT([&] { blockwise({.window = 0}, in); },
              ThrowsMessage<InvalidArgument>(HasSubstr("attention_with_gradient: window 0")));
  EXPECT_THAT(
      [&] {
        blockwise({}, {in.query * NAN, in.key, in.value});
      },
      ThrowsMessage<RunFailed>(HasSubstr("query holds NaN")));
}

/// Peak memory of a training step of 4 heads in bytes, without the inputs.
std::int64_t peak_bytes(const AttentionOptions& options, std::int64_t length) {
  const Leaves leaves = fresh(options, cast(random_inputs(length, 16, 1, 4), at::kFloat));
  return testing::peak_bytes_of([&] { gradients(blockwise, leaves, {}); });
}

TEST(AttentionGradientGuarantees, MemoryGrowsLinearly) {
  for (const AttentionOptions& options : {AttentionOptions{}, AttentionOptions{.window = 512}}) {
    const std::int64_t short_text = peak_bytes(options, 1024), long_text = peak_bytes(options, 4096);
    EXPECT_GT(short_text, 0);
    EXPECT_LT(long_text, 4 * short_text);
    EXPECT_LT(long_text, 4096 * 4096 * 4 / 2);  // half of the weights of one of the four heads
  }
}

}  // namespace attention_gradient_test
}  // namespace gainlens::kernels
