#include "models/checkpoint/model_size.h"

#include "core/checked.h"
#include "models/decoder/decoder_weights.h"

namespace gainlens::models {
namespace {

using Unsigned = std::uint64_t;

Unsigned product(std::initializer_list<Unsigned> factors) {
  Unsigned result = 1;
  for (const Unsigned factor : factors) result = checked_mul(result, factor, "memory needed");
  return result;
}

}  // namespace

std::int64_t parameter_count(const DecoderConfig& config) {
  std::int64_t total = 0;
  const auto add = [&total](const std::vector<WeightField>& fields) {
    for (const WeightField& field : fields) {
      if (field.wanted) total = checked_add(total, checked_elements(field.shape, field.name), "number of parameters");
    }
  };
  DecoderWeights unused;
  add(outer_fields(config, unused));
  LayerWeights layer;
  for (std::int64_t index = 0; index < config.layers; ++index) add(layer_fields(config, index, layer));
  return total;
}

std::uint64_t memory_needed(const DecoderConfig& config, at::ScalarType dtype, std::int64_t positions) {
  const auto unsigned_of = [](std::int64_t value) { return checked_cast<Unsigned>(value, "memory needed"); };
  const Unsigned element = c10::elementSize(dtype), accumulator = dtype == at::kDouble ? 8 : 4;
  const Unsigned tokens = unsigned_of(positions), heads = unsigned_of(config.heads),
                 kv_heads = unsigned_of(config.kv_heads);
  const Unsigned gate_heads = config.gate == Gate::none ? 0 : heads;
  // Sizes of a parsed configuration are small enough for these sums of two or three products.
  const Unsigned attention = (2 * (heads + gate_heads + 2 * kv_heads) + heads) * unsigned_of(config.head_dim);
  const Unsigned per_position = 3 * unsigned_of(config.width) + attention;
  const Unsigned block = std::min<Unsigned>(tokens, 512);

  Unsigned total = product({unsigned_of(parameter_count(config)), element});
  for (const Unsigned part : {product({tokens, element, per_position}), product({tokens, accumulator, heads, 12 + 8}),
                              product({block, element, 3 * unsigned_of(config.mlp_width)}),
                              product({block, unsigned_of(config.vocabulary), element + accumulator})}) {
    total = checked_add(total, part, "memory needed");
  }
  return total;
}

}  // namespace gainlens::models
