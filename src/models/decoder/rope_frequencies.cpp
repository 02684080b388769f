#include "models/decoder/rope_frequencies.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gainlens::models {
namespace {

/// Long waves are slowed by `factor`, short ones are kept. Between the two, the frequency is interpolated linearly in
/// (original length / wavelength).
double llama3_frequency(const RopeConfig& config, double frequency) {
  const double turns = static_cast<double>(config.original_max_positions) * frequency / (2 * std::numbers::pi);
  if (turns < config.low_frequency_factor) return frequency / config.factor;
  if (turns > config.high_frequency_factor) return frequency;
  const double kept =
      (turns - config.low_frequency_factor) / (config.high_frequency_factor - config.low_frequency_factor);
  return (1 - kept) * frequency / config.factor + kept * frequency;
}

/// Dimension pairs [low, high] over which yarn changes from kept to slowed frequencies.
struct YarnRamp {
  double low, high;
};

YarnRamp yarn_ramp(const RopeConfig& config, std::int64_t head_dim) {
  const auto pair_with_turns = [&](double turns) {
    const double wavelength_per_radian =
        static_cast<double>(config.original_max_positions) / (turns * 2 * std::numbers::pi);
    return static_cast<double>(head_dim) * std::log(wavelength_per_radian) / (2 * std::log(config.base));
  };
  double low = pair_with_turns(config.beta_fast);
  double high = pair_with_turns(config.beta_slow);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));  // by convention head_dim, not its number of pairs
  if (low == high) high += 0.001;
  return {low, high};
}

double yarn_frequency(const RopeConfig& config, const YarnRamp& ramp, std::int64_t pair, double frequency) {
  const double slowed = std::clamp((static_cast<double>(pair) - ramp.low) / (ramp.high - ramp.low), 0.0, 1.0);
  return slowed * frequency / config.factor + (1 - slowed) * frequency;
}

double yarn_attention_factor(const RopeConfig& config) {
  if (config.attention_factor) return *config.attention_factor;
  return config.factor <= 1 ? 1.0 : 0.1 * std::log(config.factor) + 1.0;
}

/// longrope: the factors for a sequence of this length, one for each pair.
const std::vector<double>& longrope_factors(const RopeConfig& config, std::int64_t positions) {
  return positions > config.original_max_positions ? config.long_factors : config.short_factors;
}

/// proportional: the number of pairs that are rotated.
std::int64_t proportional_pairs(const RopeConfig& config, std::int64_t head_dim) {
  return static_cast<std::int64_t>(std::floor(config.rotated * static_cast<double>(head_dim) / 2));
}

void check(const RopeConfig& config, std::int64_t head_dim) {
  CHECK(std::isfinite(config.base) && config.base > 1, "rope: base {}; it must be above 1", config.base);
  if (config.scaling == RopeScaling::none) return;
  if (config.scaling == RopeScaling::longrope) {
    const auto pairs = static_cast<std::size_t>(head_dim / 2);
    CHECK(config.short_factors.size() == pairs && config.long_factors.size() == pairs,
          "rope: {} short and {} long factors; longrope needs {} of each kind, one for each rotated pair",
          config.short_factors.size(), config.long_factors.size(), pairs);
    for (const auto* factors : {&config.short_factors, &config.long_factors}) {
      for (const double factor : *factors)
        CHECK(std::isfinite(factor) && factor > 0, "rope: longrope factor {}; it must be positive", factor);
    }
    return;
  }
  CHECK(std::isfinite(config.factor) && config.factor > 0, "rope: scaling factor {}; it must be positive",
        config.factor);
  if (config.scaling == RopeScaling::linear || config.scaling == RopeScaling::proportional) return;
  if (config.scaling == RopeScaling::stretched_base) {
    CHECK(head_dim > 2, "rope: {} dimensions are rotated; a stretched base needs more than 2", head_dim);
    return;
  }
  CHECK(config.original_max_positions > 0,
        "rope: original_max_position_embeddings {}; this scaling needs a positive one", config.original_max_positions);
  if (config.scaling == RopeScaling::llama3) {
    CHECK(config.low_frequency_factor > 0 && config.high_frequency_factor > config.low_frequency_factor,
          "rope: low_freq_factor {} and high_freq_factor {}; they must be positive and in this order",
          config.low_frequency_factor, config.high_frequency_factor);
  } else {
    CHECK(config.beta_slow > 0 && config.beta_fast >= config.beta_slow,
          "rope: beta_fast {} and beta_slow {}; they must be positive, fast >= slow", config.beta_fast,
          config.beta_slow);
  }
}

}  // namespace

std::int64_t rotated_dimensions(const RopeConfig& config, std::int64_t head_dim) {
  // A proportional embedding turns the pairs behind the share by no angle.
  const auto rotated = config.scaling == RopeScaling::proportional
                           ? head_dim
                           : static_cast<std::int64_t>(static_cast<double>(head_dim) * config.rotated);
  CHECK(rotated > 0 && rotated <= head_dim && rotated % 2 == 0,
        "rope: {} of {} dimensions of a head are rotated; it must be an even number, at least 2", rotated, head_dim);
  return rotated;
}

RopeFrequencies rope_frequencies(const RopeConfig& config, std::int64_t full_head_dim, std::int64_t positions) {
  const std::int64_t head_dim = rotated_dimensions(config, full_head_dim);  // below, only the rotated dimensions count
  check(config, head_dim);
  RopeFrequencies result;
  const YarnRamp ramp = config.scaling == RopeScaling::yarn ? yarn_ramp(config, head_dim) : YarnRamp{};
  for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
    const double plain = std::pow(config.base, -static_cast<double>(2 * pair) / static_cast<double>(head_dim));
    switch (config.scaling) {
      case RopeScaling::none:
        result.inverse.push_back(plain);
        break;
      case RopeScaling::linear:
        result.inverse.push_back(plain / config.factor);
        break;
      case RopeScaling::stretched_base:
        // base factor^(d / (d - 2)), to the power of -2 pair / d
        result.inverse.push_back(
            plain * std::pow(config.factor, -static_cast<double>(2 * pair) / static_cast<double>(head_dim - 2)));
        break;
      case RopeScaling::proportional:
        result.inverse.push_back(pair < proportional_pairs(config, head_dim) ? plain / config.factor : 0);
        break;
      case RopeScaling::llama3:
        result.inverse.push_back(llama3_frequency(config, plain));
        break;
      case RopeScaling::yarn:
        result.inverse.push_back(yarn_frequency(config, ramp, pair, plain));
        break;
      case RopeScaling::longrope:
        result.inverse.push_back(plain / longrope_factors(config, positions)[static_cast<std::size_t>(pair)]);
        break;
    }
  }
  if (config.scaling == RopeScaling::yarn) result.attention_factor = yarn_attention_factor(config);
  if (config.scaling == RopeScaling::longrope) result.attention_factor = config.attention_factor.value_or(1);
  return result;
}

}  // namespace gainlens::models
