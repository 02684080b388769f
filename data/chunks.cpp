#include "data/chunks.h"

#include "core/check.h"
#include "core/quantity.h"
#include "runfile/text_layout.h"

#include <algorithm>

namespace gainlens::data {
namespace {

void check(const ChunkPlan& plan) {
  CHECK(!plan.lengths.empty(), "chunks: no context length; give at least one");
  CHECK(plan.samples >= 1, "chunks: {} samples per length; at least 1", plan.samples);
  const std::int64_t shortest = plan.bos ? 2 : 1;
  for (std::size_t i = 0; i < plan.lengths.size(); ++i) {
    CHECK(plan.lengths[i] >= shortest, "chunks: context length {}; at least {}{}", plan.lengths[i], shortest,
          plan.bos ? ", since a BOS takes position 0" : "");
    CHECK(i == 0 || plan.lengths[i - 1] < plan.lengths[i],
          "chunks: context length {} after {}; give them sorted, each once", plan.lengths[i], plan.lengths[i - 1]);
  }
}

runfile::TextLayout layout_of(const ChunkPlan& plan) {
  return {plan.lengths, plan.samples, plan.nested, std::nullopt, plan.bos.has_value()};
}

}  // namespace

std::optional<std::int64_t> tokens_needed(const ChunkPlan& plan) {
  check(plan);
  if (plan.spread) return std::nullopt;
  const runfile::TextLayout layout = layout_of(plan);
  std::int64_t most = 0;
  for (const std::int64_t length : plan.lengths) most = std::max(most, runfile::tokens_needed(layout, length));
  return most;
}

std::vector<Chunk> cut(std::span<const tokenizers::TokenId> tokens, const ChunkPlan& plan) {
  check(plan);
  const auto available = static_cast<std::int64_t>(tokens.size());
  runfile::TextLayout layout = layout_of(plan);
  if (plan.spread) layout.spread = available;
  std::vector<Chunk> chunks;
  for (const std::int64_t length : plan.lengths) {
    const std::int64_t needed = runfile::tokens_needed(layout, length);
    CHECK(needed <= available,
          "chunks: the text has {} tokens, but {} samples of length {}{}{} need {}; give a longer text, "
          "fewer --samples or shorter --lengths",
          available, plan.samples, format_count(plan.nested ? plan.lengths.back() : length),
          plan.nested ? " (nested)" : "", plan.spread ? " (spread)" : "", needed);
    for (std::int64_t sample = 0; sample < plan.samples; ++sample) {
      Chunk chunk{length, sample, {}};
      chunk.tokens.reserve(static_cast<std::size_t>(length));
      if (plan.bos) chunk.tokens.push_back(*plan.bos);
      const runfile::TextSpan span = runfile::text_span(layout, length, sample);
      const auto text = tokens.subspan(static_cast<std::size_t>(span.begin), static_cast<std::size_t>(span.size()));
      chunk.tokens.insert(chunk.tokens.end(), text.begin(), text.end());
      chunks.push_back(std::move(chunk));
    }
  }
  return chunks;
}

}  // namespace gainlens::data
