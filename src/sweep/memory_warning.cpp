#include "sweep/memory_warning.h"

#include "core/quantity.h"
#include "sweep/moments.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::sweep {
namespace {

models::MemoryOptions at_length(models::MemoryOptions options, std::int64_t length) {
  const std::int64_t longest = std::max<std::int64_t>(options.positions, 1);
  options.positions_together = std::max(length, options.positions_together / longest * length);
  options.positions = length;
  return options;
}

models::MemoryOptions in_bfloat16(models::MemoryOptions options) {
  options.dtype = models::ComputeDtype::bfloat16;
  return options;
}

models::MemoryOptions streamed(models::MemoryOptions options) {
  options.stream_weights = true;
  return options;
}

/// Whether options that need so many bytes can be recommended. The need is an estimate, so a tenth more has to be free.
bool fits_well(std::uint64_t bytes, std::uint64_t available) {
  return bytes <= available && available - bytes >= bytes / 10;
}

/// The most layers that fit; empty if not even one fits. Only for a sweep that measures every layer.
std::optional<models::MemoryOptions> with_fewer_layers(const models::DecoderConfig& config,
                                                       models::MemoryOptions options, std::uint64_t available) {
  const std::int64_t layers = options.stop_at_layer.value_or(config.layers);
  if (options.measured_layers != 0 && options.measured_layers != config.attention_layers(layers)) return std::nullopt;
  for (std::int64_t stop = layers - 1; stop >= 1; --stop) {
    options.stop_at_layer = stop;
    options.measured_layers = config.attention_layers(stop);
    if (options.measured_layers == 0) return std::nullopt;
    if (fits_well(memory_needed(config, options).beyond_process(), available)) return options;
  }
  return std::nullopt;
}

/// The lengths to try: those of the sweep, then halves of the shortest.
std::vector<std::int64_t> shorter_lengths(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> shorter(lengths.rbegin(), lengths.rend());
  if (!shorter.empty()) shorter.erase(shorter.begin());
  for (std::int64_t length = lengths.empty() ? 0 : lengths.front() / 2; length >= shortest_length; length /= 2)
    shorter.push_back(length);
  return shorter;
}

}  // namespace

std::optional<std::string> memory_warning(const models::DecoderConfig& config, const models::MemoryOptions& options,
                                          const std::vector<std::int64_t>& lengths,
                                          std::optional<std::uint64_t> available) {
  const auto needed = [&](const models::MemoryOptions& of) { return memory_needed(config, of).beyond_process(); };
  if (!available || needed(options) <= *available) return std::nullopt;
  std::vector<std::string> remedies;
  const auto fits = [&](const models::MemoryOptions& other, const std::string& how) {
    const std::uint64_t bytes = needed(other);
    if (!fits_well(bytes, *available)) return false;
    remedies.push_back(fmt::format("{} with {}", format_bytes(bytes), how));
    return true;
  };
  if (bytes_of(options.dtype) > 2) fits(in_bfloat16(options), "--dtype bfloat16");
  if (!options.stream_weights) fits(streamed(options), "--stream-weights");
  if (const auto fewer = with_fewer_layers(config, options, *available))
    fits(*fewer, fmt::format("--stop-at-layer {} (the first layers alone, no likelihood)", *fewer->stop_at_layer));
  for (const std::int64_t length : shorter_lengths(lengths)) {
    if (fits(at_length(options, length), fmt::format("--lengths up to {}", format_count(length)))) break;
  }
  if (remedies.empty()) {
    const models::MemoryOptions both = bytes_of(options.dtype) > 2 ? in_bfloat16(streamed(options)) : streamed(options);
    remedies.push_back(
        fmt::format("{} with --stream-weights and a dtype of two bytes together", format_bytes(needed(both))));
  }
  return fmt::format("the sweep needs about {} of memory for {} tokens, and {} are available; it needs {}",
                     format_bytes(needed(options)), format_count(options.positions), format_bytes(*available),
                     fmt::join(remedies, ", or "));
}

}  // namespace gainlens::sweep
