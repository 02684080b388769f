// Compares attention for training, and its gradients, with libtorch's autograd of the textbook form in float64, and
// with central differences.

#include "kernels/gradient/training_attention.h"

#include "core/error.h"
#include "kernels/attention_testing.h"
#include "kernels/training_testing.h"
#include "kernels/vector_targets.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <string>

namespace gainlens::kernels {
namespace training_attention_test {

using testing::Call;
using testing::for_each_instruction_set;
using ::testing::HasSubstr;
using testing::name;
using testing::same_bits;
using testing::scale_of;
using testing::seeded_normal;
using ::testing::ThrowsMessage;

struct Results {
  at::Tensor output, query, key, value;  ///< the last three are gradients
};

struct Inputs {
  at::Tensor query, key, value, gradient;  ///< gradient: of a loss with respect to the output
};

Inputs inputs_of(const Call& call, int seed) {
  const auto normal = [&](std::int64_t heads, int i) {
    return seeded_normal({call.batch, heads, call.length, call.dims}, seed + i).to(at::kFloat);
  };
  return {normal(call.heads, 0) * call.size, normal(call.kv_heads, 1) * call.size, normal(call.kv_heads, 2),
          normal(call.heads, 3)};
}

/// softmax(scale Q K^T) V with all weights in memory.
at::Tensor textbook(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                    bool causal) {
  const std::int64_t group = query.size(1) / key.size(1);
  at::Tensor scores = at::matmul(query, key.repeat_interleave(group, 1).transpose(2, 3)) * scale;
  if (causal) {
    const at::Tensor hidden = at::ones({query.size(2), key.size(2)}, at::kBool).triu(1);
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), value.repeat_interleave(group, 1));
}

/// The output and the gradients of `attention`(query, key, value).
template <typename Attention>
Results differentiated(const Inputs& in, at::ScalarType type, const Attention& attention) {
  const at::AutoGradMode enabled(true);
  const auto leaf = [&](const at::Tensor& x) { return x.detach().to(type).requires_grad_(true); };
  const at::Tensor query = leaf(in.query), key = leaf(in.key), value = leaf(in.value);
  const at::Tensor output = attention(query, key, value);
  const auto gradients = torch::autograd::grad({output}, {query, key, value}, {in.gradient.to(type)});
  return {output.detach(), gradients[0], gradients[1], gradients[2]};
}

Results ours(const Call& call, const Inputs& in) {
  return differentiated(in, at::kFloat, [&](const auto& query, const auto& key, const auto& value) {
    return training_attention(query, key, value, scale_of(call), call.causal);
  });
}

Results exact(const Call& call, const Inputs& in) {
  return differentiated(in, at::kDouble, [&](const auto& query, const auto& key, const auto& value) {
    return textbook(query, key, value, scale_of(call), call.causal);
  });
}

/// The largest difference relative to the largest element.
double relative_error(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found.to(at::kDouble) - wanted).abs().max() / wanted.abs().max()).item<double>();
}

void expect_close(const Results& found, const Results& wanted, double tolerance, const std::string& where) {
  EXPECT_LT(relative_error(found.output, wanted.output), tolerance) << "output, " << where;
  EXPECT_LT(relative_error(found.value, wanted.value), tolerance) << "gradient of the values, " << where;
  if (wanted.query.abs().max().item<double>() < 1e-12) {  // a single key: the score has no effect
    EXPECT_LT(found.query.abs().max().item<double>(), tolerance) << "gradient of the queries, " << where;
    EXPECT_LT(found.key.abs().max().item<double>(), tolerance) << "gradient of the keys, " << where;
    return;
  }
  EXPECT_LT(relative_error(found.query, wanted.query), tolerance) << "gradient of the queries, " << where;
  EXPECT_LT(relative_error(found.key, wanted.key), tolerance) << "gradient of the keys, " << where;
}

void expect_same_bits(const Results& a, const Results& b, const std::string& where) {
  EXPECT_TRUE(same_bits(a.output, b.output)) << "output, " << where;
  EXPECT_TRUE(same_bits(a.query, b.query)) << "gradient of the queries, " << where;
  EXPECT_TRUE(same_bits(a.key, b.key)) << "gradient of the keys, " << where;
  EXPECT_TRUE(same_bits(a.value, b.value)) << "gradient of the values, " << where;
}

TEST(TrainingAttention, EqualsTheTextbookForEveryInstructionSet) {
  const Call calls[] = {
      {1, 1, 1, 1, 1},           {1, 2, 1, 2, 8},           {2, 3, 1, 15, 16},       {3, 6, 3, 64, 16},
      {1, 6, 2, 257, 16},        {1, 4, 2, 700, 16},        {2, 2, 2, 257, 40},      {1, 5, 5, 64, 64},
      {1, 2, 1, 257, 64},        {1, 2, 1, 257, 128},       {3, 1, 1, 15, 128},      {1, 3, 3, 700, 8},
      {1, 2, 2, 257, 1},         {1, 1, 1, 70, 256},        {1, 3, 1, 700, 40},      {2, 4, 2, 63, 16, false},
      {1, 3, 1, 700, 16, false}, {1, 2, 1, 257, 40, false}, {1, 1, 1, 1, 64, false},
  };
  int seed = 1;
  for (const Call& call : calls) {
    const Inputs in = inputs_of(call, seed += 10);
    const Results wanted = exact(call, in);
    for_each_instruction_set(
        [&](const char* target) { expect_close(ours(call, in), wanted, 5e-6, name(call) + ", " + target); });
  }
}

TEST(TrainingAttention, EqualsCentralDifferences) {
  const Call call{1, 2, 1, 5, 4};
  const Inputs in = inputs_of(call, 7);
  const Results found = ours(call, in);
  const auto loss = [&](const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
    const at::Tensor output = training_attention(query, key, value, scale_of(call), call.causal);
    return (output.to(at::kDouble) * in.gradient).sum().item<double>();
  };
  const float step = 1.0F / 64;
  const auto check = [&](const at::Tensor& input, const at::Tensor& gradient, const auto& loss_of) {
    for (std::int64_t i = 0; i < input.numel(); ++i) {
      at::Tensor up = input.clone(), down = input.clone();
      up.view(-1)[i] += step;
      down.view(-1)[i] -= step;
      const double difference = (loss_of(up) - loss_of(down)) / (2 * static_cast<double>(step));
      EXPECT_NEAR(gradient.reshape(-1)[i].item<double>(), difference, 1e-3) << "element " << i;
    }
  };
  check(in.query, found.query, [&](const at::Tensor& x) { return loss(x, in.key, in.value); });
  check(in.key, found.key, [&](const at::Tensor& x) { return loss(in.query, x, in.value); });
  check(in.value, found.value, [&](const at::Tensor& x) { return loss(in.query, in.key, x); });
}

TEST(TrainingAttention, BitsDoNotDependOnThreadsOrChance) {
  const int threads = at::get_num_threads();
  for (const Call& call : {Call{1, 6, 3, 700, 16}, Call{3, 2, 1, 257, 40}}) {
    const Inputs in = inputs_of(call, 21);
    const Results first = ours(call, in);
    for (const int count : {1, 2, 3, 2}) {
      at::set_num_threads(count);
      expect_same_bits(ours(call, in), first, fmt::format("{}, {} threads", name(call), count));
    }
    at::set_num_threads(threads);
  }
}

TEST(TrainingAttention, ScoresMayBeLarge) {
  // Scores up to about +-1e4. Their rounding errors, of 1e-3, become relative errors of weights; most queries have one
  // key with the weight 1.
  const Call call{1, 2, 1, 257, 16, true, 60};
  const Inputs in = inputs_of(call, 31);
  const at::Tensor scores = at::matmul(in.query, in.key.transpose(2, 3)) * scale_of(call);
  EXPECT_GT(scores.abs().max().item<double>(), 1e4);
  for_each_instruction_set([&](const char* target) { expect_close(ours(call, in), exact(call, in), 2e-3, target); });

  // A common shift of all scores: every query has the product 1e4 with every key in one dimension.
  Inputs shifted = inputs_of({1, 2, 1, 257, 16}, 32);
  shifted.query.select(3, 0).fill_(200);
  for (const double sign : {1.0, -1.0}) {
    shifted.key.select(3, 0).fill_(sign * 200);
    for_each_instruction_set(
        [&](const char* target) { expect_close(ours(call, shifted), exact(call, shifted), 2e-3, target); });
  }
}

TEST(TrainingAttention, InputsMayBeViews) {
  const Call call{2, 4, 2, 70, 16};
  const Inputs in = inputs_of(call, 41);
  // In the memory of a decoder: [batch, position, head, head_dim] with room after each position.
  const auto view = [](const at::Tensor& x) {
    at::Tensor room = at::full({x.size(0), x.size(2), x.size(1) + 3, x.size(3) + 5}, 1e30, at::kFloat);
    at::Tensor part = room.slice(2, 1, 1 + x.size(1)).slice(3, 2, 2 + x.size(3)).transpose(1, 2);
    return part.copy_(x);
  };
  Inputs views{view(in.query), view(in.key), view(in.value), view(in.gradient)};
  expect_same_bits(ours(call, views), ours(call, in), "padded rows");
  views.query = in.query.transpose(2, 3).contiguous().transpose(2, 3);  // the last dimension is not contiguous
  views.gradient = in.gradient.transpose(2, 3).contiguous().transpose(2, 3);
  expect_same_bits(ours(call, views), ours(call, in), "transposed rows");

  Inputs ones = in;
  ones.gradient = at::ones({1, 1, 1, 1}).expand_as(in.gradient);  // as sum() passes on
  expect_close(ours(call, ones), exact(call, ones), 5e-6, "an expanded gradient");
}

TEST(TrainingAttention, QueriesAndKeysMayDifferInNumber) {
  for (const bool causal : {false, true}) {
    for (const auto& [queries, keys] : {std::pair{40, 300}, std::pair{300, 40}}) {
      const Call call{1, 2, 1, 300, 16, causal};
      Inputs in = inputs_of(call, 51);
      in.query = in.query.slice(2, 0, queries);
      in.gradient = in.gradient.slice(2, 0, queries);
      in.key = in.key.slice(2, 0, keys);
      in.value = in.value.slice(2, 0, keys);
      expect_close(ours(call, in), exact(call, in), 5e-6, fmt::format("{} queries, {} keys", queries, keys));
    }
  }
}

TEST(TrainingAttention, NotANumberReachesTheResults) {
  const Call call{1, 2, 1, 100, 16};
  for_each_instruction_set([&](const char* target) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      for (const int input : {0, 1, 2, 3}) {
        Inputs in = inputs_of(call, 61);
        at::Tensor tensors[] = {in.query, in.key, in.value, in.gradient};
        tensors[input].select(2, 50)[0][0][3] = bad;
        const Results found = ours(call, in);
        const auto bad_at = [](const at::Tensor& x, std::int64_t position) {
          return !x[0][0].select(0, position).isfinite().all().item<bool>();
        };
        const std::string where = fmt::format("{} in input {}, {}", bad, input, target);
        EXPECT_TRUE(input == 3 || bad_at(found.output, 50)) << where;
        EXPECT_TRUE(bad_at(found.query, 50)) << where;
        EXPECT_TRUE(bad_at(found.key, 50)) << where;
        EXPECT_TRUE(input == 2 || bad_at(found.value, 10)) << where;
        EXPECT_TRUE(found.output.slice(2, 0, 30).isfinite().all().item<bool>()) << where;  // an earlier panel or tile
      }
    }
  });
}

TEST(TrainingAttention, WithoutGradientTheOutputHasTheSameBits) {
  const Call call{2, 4, 2, 257, 16};
  const Inputs in = inputs_of(call, 71);
  const at::NoGradGuard none;
  const at::Tensor output = training_attention(in.query, in.key, in.value, scale_of(call), true);
  EXPECT_FALSE(output.requires_grad());
  EXPECT_TRUE(same_bits(output, ours(call, in).output));
  EXPECT_TRUE(output.transpose(1, 2).is_contiguous());
}

TEST(TrainingAttention, ErrorsNameTheMistake) {
  const at::Tensor x = at::ones({1, 2, 3, 8}), three = at::ones({1, 3, 3, 8}), wide = at::ones({1, 2, 3, 257});
  EXPECT_FALSE(training_attention_takes(x.to(at::kDouble), x, x));
  EXPECT_THAT([&] { training_attention(x.to(at::kDouble), x, x, 1, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("float32")));
  EXPECT_THAT([&] { training_attention(wide, wide, wide, 1, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("head_dim 1..256")));
  EXPECT_THAT([&] { training_attention(three, x, x, 1, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("3 heads are not a multiple of 2 kv heads")));
  EXPECT_THAT([&] { training_attention(x, x, x.slice(2, 1), 1, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("do not fit")));
  EXPECT_THAT([&] { training_attention(x, x.slice(2, 3), x.slice(2, 3), 1, true); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no key")));
  const at::AutoGradMode enabled(true);
  const at::Tensor leaf = at::ones({1, 2, 3, 8}).requires_grad_(true);
  const at::Tensor output = training_attention(leaf, x, x, 1, true);
  EXPECT_THAT([&] { torch::autograd::grad({output.sum()}, {leaf}, {}, true, /*create_graph=*/true); },
              ThrowsMessage<std::exception>(HasSubstr("second derivative")));
}

}  // namespace training_attention_test
}  // namespace gainlens::kernels
