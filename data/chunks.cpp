#include "data/chunks.h"

#include "core/checked.h"
#include "core/error.h"
#include "core/quantity.h"

namespace gainlens::data {
namespace {

void check(const ChunkPlan& plan) {
  CHECK(!plan.lengths.empty(), "chunks: no context length; give at least one");
  CHECK(plan.samples >= 1, "chunks: {} samples per length; at least 1", plan.samples);
  const std::int64_t shortest = plan.bos ? 2 : 1;
  for (std::size_t i = 0; i < plan.lengths.size(); ++i) {
    CHECK(plan.lengths[i] >= shortest, "chunks: context length {}; at least {}{}", plan.lengths[i], shortest,
          plan.bos ? ", since a BOS takes position 0" : "");
    CHECK(i == 0 || plan.lengths[i - 1] < plan.lengths[i], "chunks: context length {} after {}; give them sorted, each once",
          plan.lengths[i], plan.lengths[i - 1]);
  }
}

}  // namespace

std::vector<Chunk> cut(std::span<const TokenId> tokens, const ChunkPlan& plan) {
  check(plan);
  const std::int64_t bos = plan.bos ? 1 : 0;
  std::vector<Chunk> chunks;
  for (const std::int64_t length : plan.lengths) {
    // A nested plan starts every chunk where the longest one with the same number starts.
    const std::int64_t span = plan.nested ? plan.lengths.back() : length;
    const std::int64_t stride = span - bos;
    const std::int64_t needed =
        checked_add(checked_mul(plan.samples - 1, stride, "chunks: samples x length"), length - bos, "chunks: tokens");
    CHECK(needed <= static_cast<std::int64_t>(tokens.size()),
          "chunks: the text has {} tokens, {} samples of length {}{} need {}; give a longer text, fewer --samples or shorter --lengths",
          tokens.size(), plan.samples, format_count(length), plan.nested ? " (nested)" : "", needed);
    for (std::int64_t sample = 0; sample < plan.samples; ++sample) {
      Chunk chunk{length, sample, {}};
      chunk.tokens.reserve(static_cast<std::size_t>(length));
      if (plan.bos) chunk.tokens.push_back(*plan.bos);
      const auto text = tokens.subspan(static_cast<std::size_t>(sample * stride), static_cast<std::size_t>(length - bos));
      chunk.tokens.insert(chunk.tokens.end(), text.begin(), text.end());
      chunks.push_back(std::move(chunk));
    }
  }
  return chunks;
}

}  // namespace gainlens::data
