#include "models/checkpoint/operations_needed.h"

#include "core/check.h"
#include "kernels/fixed_sizes.h"
#include "models/decoder/weight_fields.h"

#include <algorithm>

namespace gainlens::models {
namespace {

/// Pairs of a query and a key that it sees.
double visible_pairs(std::int64_t positions, std::int64_t window) {
  const auto all = static_cast<double>(positions), seen = static_cast<double>(std::min(window, positions));
  if (window == 0 || window >= positions) return all * (all + 1) / 2;
  return seen * (seen + 1) / 2 + (all - seen) * seen;
}

/// Weights of a layer that each token is multiplied with.
double weights_of_token(const DecoderConfig& config, std::int64_t layer) {
  double total = 0;
  for (const WeightField& field : layer_fields(config, layer)) {
    if (!field.wanted || field.kind != WeightField::Kind::projection) continue;
    double weights = 1;
    for (const std::int64_t size : field.shape) weights *= static_cast<double>(size);
    // A stack of experts [expert, out, in], of which a token passes some.
    if (field.shape.size() == 3)
      weights *= static_cast<double>(config.experts.per_token) / static_cast<double>(config.experts.count);
    total += weights;
  }
  return total;
}

/// The gated delta rule for one token: products over chunks (kernels/delta).
double delta_of_token(const DeltaLayers& delta) {
  constexpr double chunk = kernels::delta_chunk_positions;
  const auto key_dim = static_cast<double>(delta.key_dim), value_dim = static_cast<double>(delta.value_dim);
  // k k^T, q k^T; the triangular system, the weighted corrections; three products with the state
  const double head = 2 * chunk * (2 * key_dim + 1.5 * value_dim) + 2 * 3 * key_dim * value_dim;
  return static_cast<double>(delta.value_heads) * head;
}

}  // namespace

OperationsNeeded operations_needed(const DecoderConfig& config, std::int64_t positions) {
  CHECK(positions > 0, "length: {}; must be positive", positions);
  OperationsNeeded needed;
  const auto tokens = static_cast<double>(positions);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    needed.products += 2 * tokens * weights_of_token(config, layer);
    if (config.has_delta(layer)) {
      needed.products += tokens * delta_of_token(config.delta);
      continue;
    }
    if (config.has_convolution(layer)) {
      needed.products += 2 * tokens * static_cast<double>(config.convolution.kernel * config.width);
      continue;
    }
    // A product of queries and keys; of weights with values, and with their squares.
    needed.attention += static_cast<double>(config.heads * (2 * config.head_dim + 4 * config.value_dim())) *
                        visible_pairs(positions, config.window[static_cast<std::size_t>(layer)]);
  }
  needed.likelihood = 2 * tokens * static_cast<double>(config.width) * static_cast<double>(config.vocabulary);
  return needed;
}

}  // namespace gainlens::models
