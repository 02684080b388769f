#include "language/finetune_memory.h"

#include "core/check.h"
#include "core/quantity.h"

#include <algorithm>

namespace gainlens::language {
namespace {

constexpr std::uint64_t logit_bytes = std::uint64_t{128} << 20;

/// Numbers that a layer keeps for each token.
std::int64_t numbers_of_layer(const models::DecoderConfig& config) {
  const std::int64_t width = config.width, mlp = config.mlp_width,
                     heads = (config.heads + config.kv_heads) * config.head_dim;
  std::int64_t count = 4 * width + 2 * heads + (config.gated_mlp ? 3 : 2) * mlp;
  if (config.post_norm) count += 2 * width;
  if (config.qk_norm != models::QkNorm::none) count += heads;
  if (config.filter) count += 5 * width + 4 * mlp;
  return count;
}

}  // namespace

std::uint64_t trained_bytes(std::int64_t parameters, std::int64_t processes) {
  const std::int64_t share = (parameters + processes - 1) / processes;
  return static_cast<std::uint64_t>(2 * parameters + 2 * share) * sizeof(float);
}

std::uint64_t activation_bytes(const models::DecoderConfig& config, const ActivationShape& shape) {
  const std::int64_t layer = numbers_of_layer(config);
  const std::int64_t stream = config.width * (config.filter ? 2 : 1);
  const std::int64_t kept = shape.recompute ? stream * config.layers + layer : layer * config.layers;
  const std::int64_t backward = 3 * config.mlp_width + 2 * config.width;
  return static_cast<std::uint64_t>((kept + backward) * shape.tokens * shape.value_bytes) + logit_bytes;
}

void check_fits(const models::DecoderConfig& config, const TrainingMemory& memory, std::uint64_t available) {
  const auto needed = [&](bool recompute, std::int64_t tokens) {
    ActivationShape shape = memory.shape;
    shape.recompute = recompute;
    shape.tokens = tokens;
    return memory.state + activation_bytes(config, shape);
  };
  const bool recompute = memory.shape.recompute;
  const std::int64_t tokens = std::max(memory.longest, memory.row_tokens);
  if (needed(recompute, tokens) <= available) return;
  std::string instead;
  if (needed(true, tokens) <= available) {
    instead = "give --recompute";
  } else if (needed(recompute, memory.longest) <= available) {
    instead = fmt::format("give --tokens-at-once {}", memory.longest);
  } else if (needed(true, memory.longest) <= available) {
    instead = fmt::format("give --recompute --tokens-at-once {}", memory.longest);
  } else {
    std::int64_t fits = memory.longest;
    while (fits > 0 && needed(true, fits) > available) fits = fits * 9 / 10;
    instead = fits >= 3 ? fmt::format("give --recompute --max-length {0} --tokens-at-once {0}", fits)
                        : std::string("give a smaller model");
  }
  throw_invalid(
      "{}: weights, gradients and moments take {}, activations of {} tokens {}, and {} of memory are "
      "available; {}",
      memory.where, format_bytes(memory.state), tokens, format_bytes(needed(recompute, tokens) - memory.state),
      format_bytes(available), instead);
}

}  // namespace gainlens::language
