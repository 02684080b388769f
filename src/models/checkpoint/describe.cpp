#include "models/checkpoint/describe.h"

#include "core/check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <system_error>

namespace gainlens::models {
namespace {

std::uint64_t size_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  CHECK(!error, "{}: its size cannot be read: {}", printable(file.string()), error.message());
  return size;
}

/// The length of the shortest run of layers that the other layers repeat, at least once in full. The number of layers
/// if there is no such run.
std::size_t period_of(const std::vector<std::string>& kinds) {
  for (std::size_t period = 1; 2 * period <= kinds.size(); ++period) {
    if (std::equal(kinds.begin() + static_cast<std::ptrdiff_t>(period), kinds.end(), kinds.begin())) return period;
  }
  return kinds.size();
}

std::string scaling_text(const RopeConfig& rope) {
  switch (rope.scaling) {
    case RopeScaling::none:
      return "";
    case RopeScaling::proportional:
      return rope.factor == 1 ? "" : fmt::format(", positions divided by {}", rope.factor);
    case RopeScaling::linear:
      return fmt::format(", positions divided by {}", rope.factor);
    case RopeScaling::stretched_base:
      return fmt::format(", stretched by {:.10g}", rope.factor);
    case RopeScaling::llama3:
      return fmt::format(", llama3 scaling by {} from {} positions", rope.factor, rope.original_max_positions);
    case RopeScaling::yarn:
      return fmt::format(", yarn scaling by {} from {} positions", rope.factor, rope.original_max_positions);
    case RopeScaling::longrope:
      return fmt::format(", longrope from {} positions", rope.original_max_positions);
  }
  ASSERT(false, "unknown scaling");
}

std::string rope_text(const RopeConfig& rope) {
  const std::string share = rope.rotated == 1 ? ""
                            : rope.scaling == RopeScaling::proportional
                                ? fmt::format(", of the first {:g}% of the pairs of each head", 100 * rope.rotated)
                                : fmt::format(", on the first {:g}% of each head", 100 * rope.rotated);
  return fmt::format("rotary, base {:.10g}{}{}", rope.base, share, scaling_text(rope));
}

}  // namespace

CheckpointDescription describe_checkpoint(const CheckpointSource& source) {
  CheckpointDescription found;
  const auto* const gguf = std::get_if<formats::GgufFile>(&source.tensors);
  found.format = gguf != nullptr ? fmt::format("GGUF version {}", gguf->version()) : "safetensors";
  found.files = source.files.size();
  for (const auto& file : source.files) {
    found.bytes_on_disk += size_of(file);
    found.weight_files += file.extension() == ".json" ? 0 : 1;
  }
  found.tensors = source.entries().size();
  for (const auto& [name, entry] : source.entries()) {
    DTypeShare& share = found.dtypes[std::string(formats::name_of(entry.dtype))];
    ++share.tensors;
    share.bytes += entry.bytes.size();
  }
  return found;
}

std::vector<LayerRun> layer_runs(const std::vector<std::string>& kinds) {
  std::vector<LayerRun> runs;
  for (std::int64_t layer = 0; layer < std::ssize(kinds); ++layer) {
    const std::string& kind = kinds[static_cast<std::size_t>(layer)];
    if (runs.empty() || runs.back().kind != kind) runs.push_back({layer, layer, kind});
    runs.back().last = layer;
  }
  return runs;
}

std::string layer_runs_text(const std::vector<std::string>& kinds) {
  const auto text_of = [](const std::vector<LayerRun>& runs) {
    std::vector<std::string> texts;
    texts.reserve(runs.size());
    for (const LayerRun& run : runs) {
      texts.push_back(run.first == run.last ? fmt::format("{} {}", run.first, run.kind)
                                            : fmt::format("{}-{} {}", run.first, run.last, run.kind));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  const std::size_t period = period_of(kinds);
  if (period == 1 || period == kinds.size()) return text_of(layer_runs(kinds));
  const std::vector<std::string> once(kinds.begin(), kinds.begin() + static_cast<std::ptrdiff_t>(period));
  return fmt::format("{}, and so on every {} layers", text_of(layer_runs(once)), period);
}

std::vector<PositionEncoding> position_encodings(const DecoderConfig& config) {
  switch (config.positions) {
    case Positions::learned:
      return {{"all layers", "learned vectors, added to the embedding"}};
    case Positions::alibi:
      return {{"all layers", "ALiBi: scores fall linearly with the distance"}};
    case Positions::rotary:
      break;
  }
  std::vector<std::string> texts;  // of the layers with softmax attention
  bool by_window = true;           // layers with a window are alike, and layers without
  std::map<bool, std::string> text_by_kind;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (!config.attends(layer)) continue;  // the others have no positions
    const bool windowed = config.window[static_cast<std::size_t>(layer)] > 0;
    texts.push_back(config.rotates(layer) ? rope_text(config.rope_of(layer)) : "none");
    by_window = by_window && text_by_kind.try_emplace(windowed, texts.back()).first->second == texts.back();
  }
  if (texts.empty()) return {{"all layers", "none"}};
  const bool others = config.attention_layers(config.layers) < config.layers;
  if (others && text_by_kind.size() == 1 && by_window) return {{"global layers", texts.front()}};
  if (std::equal(texts.begin() + 1, texts.end(), texts.begin())) return {{"all layers", texts.front()}};
  if (by_window) return {{"global layers", text_by_kind[false]}, {"window layers", text_by_kind[true]}};
  return {{"layers", layer_runs_text(texts)}};
}

}  // namespace gainlens::models
