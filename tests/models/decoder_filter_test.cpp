// The Bayesian filter of a decoder. random_decoder.h has options with a filter, which the tests of all options run.
#include "bft/filter_step.h"
#include "core/error.h"
#include "models/checkpoint/named_tensor.h"
#include "models/decoder/attention_ops.h"
#include "models/decoder/filter_config.h"
#include "models/materialised_attention.h"
#include "models/random_decoder.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gainlens::models {
namespace decoder_filter_test {

using gainlens::testing::filter_for_tests;
using gainlens::testing::logits;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using gainlens::testing::some_tokens;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

DecoderConfig filtered_config() {
  DecoderConfig config = small_config();
  config.filter = filter_for_tests();
  return config;
}

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // row after row

Vector vector_of(const at::Tensor& x) {
  const at::Tensor flat = x.detach().to(at::kDouble).contiguous().flatten();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

Matrix matrix_of(const at::Tensor& x) {
  Matrix rows;
  for (std::int64_t row = 0; row < x.size(0); ++row) rows.push_back(vector_of(x[row]));
  return rows;
}

Vector times(const Matrix& matrix, const Vector& x) {
  Vector y;
  for (const Vector& row : matrix) {
    y.push_back(0);
    for (std::size_t i = 0; i < x.size(); ++i) y.back() += row[i] * x[i];
  }
  return y;
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double softplus(double x) {
  return std::log1p(std::exp(x));
}

Vector rms_norm(const Vector& x, const Vector& weight, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value / static_cast<double>(x.size());
  Vector y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] / std::sqrt(squares + epsilon) * weight[i]);
  return y;
}

/// Rotates each head of [head head_dim] by the angles of a position.
Vector rotated(const Vector& x, std::size_t head_dim, double base, std::size_t position) {
  Vector y = x;
  for (std::size_t head = 0; head < x.size(); head += head_dim) {
    for (std::size_t i = 0; i < head_dim / 2; ++i) {
      const double angle =
          static_cast<double>(position) * std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(head_dim));
      const double a = x[head + i], b = x[head + i + head_dim / 2];
      y[head + i] = a * std::cos(angle) - b * std::sin(angle);
      y[head + i + head_dim / 2] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  return y;
}

double mean(const Vector& x) {
  double sum = 0;
  for (const double value : x) sum += value / static_cast<double>(x.size());
  return sum;
}

/// The decoder of one sequence by plain loops, from the formulas of docs/bft.md. J is by central differences of the
/// MLP.
class PlainLoops {
 public:
  PlainLoops(const DecoderConfig& config, const DecoderWeights& weights) : config_(config), weights_(weights) {}

  Matrix stream(const std::vector<std::int64_t>& ids) {
    const Matrix embedding = matrix_of(weights_.embedding);
    Matrix hidden, precision;
    for (const std::int64_t id : ids) {
      hidden.push_back(embedding[static_cast<std::size_t>(id)]);
      precision.push_back(Vector(width(), token_precision(hidden.back())));
    }
    for (std::size_t layer = 0; layer < weights_.layers.size(); ++layer) run_layer(layer, hidden, precision);
    for (Vector& row : hidden) row = rms_norm(row, vector_of(weights_.final_norm), config_.norm_epsilon);
    return hidden;
  }

 private:
  std::size_t width() const { return static_cast<std::size_t>(config_.width); }
  std::size_t found() const { return static_cast<std::size_t>(config_.heads * config_.head_dim); }
  /// What the result of attention or the MLP becomes on its way to the stream.
  Vector on_its_way(Vector x, const at::Tensor& norm_weight) const {
    if (config_.post_norm) x = rms_norm(x, vector_of(norm_weight), config_.norm_epsilon);
    for (double& value : x) value *= config_.residual_scale;
    return x;
  }
  double bounded(double precision) const {
    return std::clamp(precision, config_.filter->least_precision, config_.filter->most_precision);
  }

  double token_precision(const Vector& embedded) const {
    const bft::PrecisionNetwork& network = weights_.precision.network;
    const Vector bias = vector_of(network.hidden_bias), last = vector_of(network.output);
    Vector hidden = times(matrix_of(network.hidden), embedded);
    double sum = vector_of(network.output_bias)[0];
    for (std::size_t i = 0; i < hidden.size(); ++i) {
      const double a = hidden[i] + bias[i];
      sum += last[i] * a * 0.5 * (1 + std::erf(a / std::numbers::sqrt2));
    }
    return bounded(vector_of(weights_.precision.range)[0] + softplus(sum));
  }

  Vector mlp(const LayerWeights& w, const Vector& x) const {
    const Vector gates = times(matrix_of(w.mlp_gate), x);
    Vector neurons = times(matrix_of(w.mlp_up), x);
    for (std::size_t i = 0; i < neurons.size(); ++i) neurons[i] *= gates[i] * sigmoid(gates[i]);
    return times(matrix_of(w.mlp_down), neurons);
  }

  void run_layer(std::size_t layer, Matrix& hidden, Matrix& precision) {
    const LayerWeights& w = weights_.layers[layer];
    const auto head_dim = static_cast<std::size_t>(config_.head_dim), heads = static_cast<std::size_t>(config_.heads);
    const std::size_t group = heads / static_cast<std::size_t>(config_.kv_heads);
    const double log_decay = std::log(sigmoid(vector_of(w.filter.recency)[0]));
    const double nu = config_.filter->prior_strength, prior = 1 / static_cast<double>(head_dim);
    Matrix query, key, value, gates;
    const auto gate_of = [&](std::size_t head, std::size_t i) {
      return config_.gate == Gate::headwise ? head : head * head_dim + i;
    };
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const Vector input = rms_norm(hidden[t], vector_of(w.attention_norm), config_.norm_epsilon);
      query.push_back(rotated(times(matrix_of(w.query), input), head_dim, config_.rope.base, t));
      key.push_back(rotated(times(matrix_of(w.key), input), head_dim, config_.rope.base, t));
      value.push_back(times(matrix_of(w.value), input));
      gates.push_back(config_.gate == Gate::none ? Vector(found(), 1) : times(matrix_of(w.gate_score), input));
      if (config_.gate == Gate::none) continue;
      for (double& gate : gates.back()) gate = sigmoid(gate);
    }
    const bool behind = config_.filter->gain_place == bft::GainPlace::after, same = found() == width();
    Matrix scaled(hidden.size(), Vector(found())), precisions = scaled, posterior(hidden.size(), Vector(width()));
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t kv = head / group * head_dim;
        Vector weight;
        double total = 0, squares = 0;
        for (std::size_t j = 0; j <= t; ++j) {
          double score = 0;
          for (std::size_t i = 0; i < head_dim; ++i) score += query[t][head * head_dim + i] * key[j][kv + i];
          score = score / std::sqrt(static_cast<double>(head_dim)) + std::log(mean(precision[j])) +
                  static_cast<double>(t - j) * log_decay;
          weight.push_back(std::exp(score));
          total += weight.back();
        }
        for (double& p : weight) {
          p /= total;
          squares += p * p;
        }
        for (std::size_t i = 0; i < head_dim; ++i) {
          double estimate = 0, residual = 0;
          for (std::size_t j = 0; j <= t; ++j) estimate += weight[j] * value[j][kv + i];
          for (std::size_t j = 0; j <= t; ++j) residual += weight[j] * std::pow(value[j][kv + i] - estimate, 2);
          const double observed = bounded((1 / squares + nu) / (residual + nu * prior));
          const double before = same ? precision[t][head * head_dim + i] : mean(precision[t]);
          const double gain = behind ? 1 : observed / (before + observed);
          scaled[t][head * head_dim + i] = gain * estimate * gates[t][gate_of(head, i)];
          precisions[t][head * head_dim + i] = observed;
        }
      }
    }
    for (std::size_t t = 0; t < hidden.size(); ++t) {
      const Vector result = on_its_way(times(matrix_of(w.output), scaled[t]), w.attention_post_norm);
      for (std::size_t i = 0; i < width(); ++i) {
        const double observed = same ? precisions[t][i] : mean(precisions[t]);
        hidden[t][i] += behind ? observed / (precision[t][i] + observed) * result[i] : result[i];
        posterior[t][i] = bounded(precision[t][i] + observed);
      }
      const Vector input = rms_norm(hidden[t], vector_of(w.mlp_norm), config_.norm_epsilon), fed = mlp(w, input);
      const Vector added = on_its_way(fed, w.mlp_post_norm);
      for (std::size_t i = 0; i < width(); ++i) hidden[t][i] += added[i];
      if (layer + 1 == weights_.layers.size()) continue;
      const Vector logits = vector_of(w.filter.process_noise);
      for (std::size_t i = 0; i < width(); ++i) {
        const double step = 1e-5;
        Vector above = input, below = input;
        above[i] += step;
        below[i] -= step;
        // A norm behind the MLP is a factor; its deviation is held.
        const double factor = fed[i] == 0 ? 1 : added[i] / fed[i];
        const double slope = factor * (mlp(w, above)[i] - mlp(w, below)[i]) / (2 * step);
        const double stretch = std::max((1 + slope) * (1 + slope), bft::min_stretch);
        const double noise = softplus(logits[i]) * config_.filter->most_process_noise;
        precision[t][i] = bounded(1 / (stretch / posterior[t][i] + noise));
      }
    }
  }

  const DecoderConfig& config_;
  const DecoderWeights& weights_;
};

void expect_plain_loops(const DecoderConfig& config) {
  const DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  Decoder model(config, weights, WeightUse::trained);
  const hooks::Tokens tokens = some_tokens(config, 1, 9);
  const at::Tensor found = model.forward(tokens, {}, {}).hidden[0];
  const at::Tensor ids = tokens.ids[0];
  const Matrix expected =
      PlainLoops(config, weights).stream({ids.const_data_ptr<std::int64_t>(), ids.const_data_ptr<std::int64_t>() + 9});
  for (std::int64_t t = 0; t < 9; ++t) {
    const Vector row = vector_of(found[t]);
    for (std::size_t i = 0; i < row.size(); ++i) EXPECT_NEAR(row[i], expected[static_cast<std::size_t>(t)][i], 1e-8);
  }
}

TEST(DecoderFilter, IsThatOfPlainLoops) {
  expect_plain_loops(filtered_config());
}

TEST(DecoderFilter, WithAnOutputGateIsThatOfPlainLoops) {
  for (const Gate gate : {Gate::headwise, Gate::elementwise}) {
    DecoderConfig config = filtered_config();
    config.gate = gate;
    expect_plain_loops(config);
  }
}

// Norms behind attention and MLP, heads that are wider or narrower than the stream, and scaled results.
TEST(DecoderFilter, OfOtherArchitecturesIsThatOfPlainLoops) {
  for (const bft::GainPlace place : {bft::GainPlace::before, bft::GainPlace::after}) {
    for (const std::int64_t heads : {2, 4, 6}) {
      for (const double scale : {1.0, 0.3}) {
        DecoderConfig config = filtered_config();
        config.filter->gain_place = place;
        config.heads = heads;
        config.kv_heads = 2;
        config.residual_scale = scale;
        expect_plain_loops(config);
        config.gate = Gate::headwise;
        expect_plain_loops(config);
        config.post_norm = true;
        if (place == bft::GainPlace::after) expect_plain_loops(config);
      }
    }
  }
}

TEST(DecoderFilter, AGainInFrontOfANormIsRefused) {
  DecoderConfig config = filtered_config();
  config.post_norm = true;
  EXPECT_THAT([&] { check_filter(config, "here"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("here: results are normalised before they are added")));
  config.filter_arm = bft::Arm::plain_decay;  // it has no gain
  EXPECT_NO_THROW(check_filter(config, "here"));
}

TEST(DecoderFilter, WithoutStrengthIsThePlainDecoder) {
  const DecoderConfig config = filtered_config(), plain = small_config();
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    DecoderWeights weights = RandomWeights(1, dtype).of(config);
    weights.precision.strength.zero_();
    DecoderWeights same = weights;
    same.precision = {};
    for (LayerWeights& layer : same.layers) layer.filter = {};
    Decoder model(config, weights), expected(plain, same);
    const hooks::Tokens tokens = some_tokens(config, 2, 20);
    EXPECT_TRUE(at::equal(logits(model, tokens), logits(expected, tokens)));
  }
}

TEST(DecoderFilter, GainOfOneWithUniformPrecisionIsThePlainDecoder) {
  DecoderConfig config = filtered_config();
  config.filter->recency_decay = false;
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  DecoderWeights same = weights;
  same.precision = {};
  for (LayerWeights& layer : same.layers) layer.filter = {};
  Decoder model(config, weights), expected(small_config(), same);
  hooks::Hooks forced;
  const auto ones = [](const hooks::Site&, const at::Tensor& seen) { return at::ones_like(seen); };
  forced.replace(hooks::Glob("blocks.*.attn.hook_gain"), ones);
  forced.replace(hooks::Glob("blocks.*.hook_precision"), ones);
  const hooks::Tokens tokens = some_tokens(config, 2, 20);
  EXPECT_TRUE(at::allclose(logits(model, tokens, {}, forced), logits(expected, tokens), 1e-10, 1e-10));
}

TEST(DecoderFilter, ABlendLiesBetween) {
  const DecoderConfig config = filtered_config();
  const hooks::Tokens tokens = some_tokens(config, 1, 10);
  const auto at_strength = [&](double strength) {
    DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
    weights.precision.strength.fill_(strength);
    Decoder model(config, weights);
    return logits(model, tokens);
  };
  const at::Tensor none = at_strength(0), small = at_strength(1e-6), all = at_strength(1);
  EXPECT_TRUE(at::allclose(none, small, 1e-4, 1e-4));
  EXPECT_FALSE(at::equal(none, small));
  EXPECT_FALSE(at::allclose(none, all, 1e-2, 1e-2));
  EXPECT_THAT([&] { at_strength(2); }, ThrowsMessage<InvalidArgument>(HasSubstr("'precision.strength' is 2")));
}

/// Every weight of the filter that is learned.
std::vector<NamedTensor> filter_parameters(const DecoderConfig& config, DecoderWeights& weights) {
  std::vector<NamedTensor> found;
  const auto add = [&](const std::vector<WeightField>& fields, const TensorsByField& tensors) {
    for (const WeightField& field : fields) {
      if (field.wanted && field.kind == WeightField::Kind::precision)
        found.push_back({std::string(field.name), *tensors.at(field.name)});
    }
  };
  add(outer_fields(config), tensors_by_field(weights));
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    add(layer_fields(config, layer), tensors_by_field(weights.layers[static_cast<std::size_t>(layer)]));
  return found;
}

void expect_gradients(const DecoderConfig& config, std::size_t parameters) {
  DecoderWeights weights = RandomWeights(1, at::kDouble).of(config);
  std::vector<NamedTensor> leaves = filter_parameters(config, weights);
  ASSERT_EQ(leaves.size(), parameters);
  for (NamedTensor& leaf : leaves) leaf.tensor.requires_grad_(true);
  Decoder model(config, weights, WeightUse::trained);
  const hooks::Tokens tokens = some_tokens(config, 2, 12);
  const at::Tensor targets = some_tokens(config, 2, 13).ids.slice(1, 1).flatten();
  const auto loss = [&] {
    const at::Tensor hidden = model.forward(tokens, {.training = true}, {}).hidden;
    return at::nll_loss(at::log_softmax(model.unembed(hidden.flatten(0, 1)), -1), targets);
  };
  loss().backward();
  const at::NoGradGuard no_gradient;
  for (NamedTensor& leaf : leaves) {
    ASSERT_TRUE(leaf.tensor.grad().defined()) << leaf.name;
    const at::Tensor direction = at::randn_like(leaf.tensor);
    const double step = 1e-5, expected = (leaf.tensor.grad() * direction).sum().item<double>();
    EXPECT_GT(std::abs(expected), 1e-9) << leaf.name;
    leaf.tensor.add_(direction, step);
    const double above = loss().item<double>();
    leaf.tensor.add_(direction, -2 * step);
    const double below = loss().item<double>();
    leaf.tensor.add_(direction, step);
    EXPECT_NEAR((above - below) / (2 * step), expected, 1e-9 + 1e-5 * std::abs(expected)) << leaf.name;
  }
}

TEST(DecoderFilter, GradientsOfItsParametersMatchCentralDifferences) {
  DecoderConfig config = filtered_config();
  config.layers = 3;
  config.window = {0, 0, 0};
  config.filter->running_jacobian = true;  // a training step takes that of each token all the same
  expect_gradients(config, 5 + 2 + 3);     // the network and tau_range, Q of two layers, rho of three
  config.filter->initial_precision = bft::InitialPrecision::table;
  config.filter->predict = bft::Predict::decay;
  config.gated_mlp = false;
  expect_gradients(config, 1 + 2 + 3);
  config.gate = Gate::headwise;
  expect_gradients(config, 1 + 2 + 3);
}

TEST(DecoderFilter, TheFastPathsOfTrainingHaveTheNumbersOfTheOthers) {
  const DecoderConfig config = filtered_config();
  for (const auto& [dtype, tolerance] : {std::pair{at::kFloat, 1e-4}, std::pair{at::kDouble, 1e-9}}) {
    DecoderWeights weights = RandomWeights(1, dtype).of(config);
    Decoder model(config, weights, WeightUse::trained);
    const hooks::Tokens tokens = some_tokens(config, 2, 30);
    const at::Tensor expected = logits(model, tokens);  // without a gradient
    weights.embedding.requires_grad_(true);
    for (const bool training : {false, true})
      EXPECT_TRUE(at::allclose(logits(model, tokens, {.training = training}), expected, tolerance, tolerance));
  }
}

TEST(DecoderFilter, FullRankIsTheExactJacobian) {
  DecoderConfig exact = filtered_config(), factors = exact;
  factors.filter->jacobian = bft::JacobianForm::low_rank;
  factors.filter->jacobian_rank = 16;
  for (const bool gated : {true, false}) {
    exact.gated_mlp = factors.gated_mlp = gated;
    const hooks::Tokens tokens = some_tokens(exact, 1, 15);
    Decoder of_exact = gainlens::testing::random_decoder(exact),
            of_factors = gainlens::testing::random_decoder(factors);
    EXPECT_TRUE(at::allclose(logits(of_factors, tokens), logits(of_exact, tokens), 1e-9, 1e-9));
    EXPECT_NEAR(of_factors.jacobian_energy().at(0), 1, 1e-12);
    factors.filter->jacobian_rank = 2;
    Decoder of_two = gainlens::testing::random_decoder(factors);
    EXPECT_FALSE(at::allclose(logits(of_two, tokens), logits(of_exact, tokens), 1e-9, 1e-9));
    EXPECT_LT(of_two.jacobian_energy().at(0), 1);
    factors.filter->jacobian_rank = 16;
  }
}

TEST(DecoderFilter, AttentionOperationsAgreeWithWindowsCapsAndOtherBiases) {
  for (const bool rounded : {true, false}) {
    DecoderConfig config = filtered_config();
    config.window = {0, 7};
    config.attention_soft_cap = 0.8;
    config.positions = Positions::alibi;
    config.alibi.bfloat16 = rounded;
    Decoder model = gainlens::testing::random_decoder(config);
    const hooks::Tokens tokens = some_tokens(config, 2, 40);
    MaterialisedAttention materialised;
    StatisticsAttention statistics([](auto, auto&&) {});
    const at::Tensor expected = logits(model, tokens, {.attention = &materialised});
    EXPECT_TRUE(at::allclose(logits(model, tokens), expected, 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(logits(model, tokens, {.attention = &statistics}), expected, 1e-9, 1e-9));
  }
}

TEST(DecoderFilter, StatisticsAreThoseOfTheWeightsWithItsBiases) {
  const DecoderConfig config = filtered_config();
  Decoder model = gainlens::testing::random_decoder(config);
  const hooks::Tokens tokens = some_tokens(config, 2, 30);
  std::vector<kernels::QueryStatistics> found;
  StatisticsAttention statistics([&](auto, kernels::QueryStatistics&& seen) { found.push_back(std::move(seen)); });
  at::Tensor pattern, observation;
  hooks::Hooks hooks;
  const auto keep = [&hooks](const char* site, at::Tensor& into) {
    hooks.observe(hooks::Glob(site), [&into](const hooks::Site&, const at::Tensor& seen) { into = seen; });
  };
  keep("blocks.0.attn.hook_pattern", pattern);
  keep("blocks.0.attn.hook_observation_precision", observation);
  model.forward(tokens, {.attention = &statistics}, hooks);
  ASSERT_EQ(found.size(), 4U);  // two layers of two sequences
  for (std::size_t sequence = 0; sequence < 2; ++sequence) {
    const auto index = static_cast<std::int64_t>(sequence);
    const at::Tensor weights = pattern[index], of_layer = observation[index].transpose(0, 1);  // [head, query, ..]
    EXPECT_TRUE(at::allclose(found[sequence].n_eff, weights.square().sum(-1).reciprocal(), 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(found[sequence].first_mass.select(2, 0), weights.select(2, 0), 1e-9, 1e-9));
    EXPECT_TRUE(at::allclose(found[sequence].observation_precision, of_layer.mean(-1), 1e-9, 1e-9));
    // K of the frozen diagnostics, at lambda = 1.
    EXPECT_TRUE(at::allclose(found[sequence].kalman_gain, (of_layer / (1 + of_layer)).mean(-1), 1e-9, 1e-9));
  }
}

TEST(DecoderFilter, AReplacedPatternDecidesTheMoments) {
  const DecoderConfig config = filtered_config();
  Decoder model = gainlens::testing::random_decoder(config);
  const hooks::Tokens tokens = some_tokens(config, 2, 10);
  hooks::Hooks same;
  same.replace(hooks::Glob("blocks.*.attn.hook_pattern"),
               [](const hooks::Site&, const at::Tensor& pattern) { return pattern; });
  EXPECT_TRUE(at::allclose(logits(model, tokens, {}, same), logits(model, tokens), 1e-9, 1e-9));
}

TEST(DecoderFilter, ANanPrecisionIsNamedWithItsLayer) {
  const DecoderConfig config = filtered_config();
  DecoderWeights weights = RandomWeights(1, at::kFloat).of(config);
  weights.layers[0].filter.process_noise.fill_(NAN);
  Decoder model(config, weights, WeightUse::trained);
  EXPECT_THAT([&] { logits(model, some_tokens(config, 1, 5)); },
              ThrowsMessage<RunFailed>(HasSubstr("precision is NaN or infinite, first in layer 1")));
}

}  // namespace decoder_filter_test
}  // namespace gainlens::models
