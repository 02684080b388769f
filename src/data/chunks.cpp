#include "data/chunks.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "runfile/text_layout.h"

#include <algorithm>
#include <numeric>

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

/// The largest number from 1 to `above` - 1 that fits; 0: none does. If a number fits, smaller ones do too.
template <typename Fits>
std::int64_t largest(std::int64_t above, const Fits& fits) {
  std::int64_t most = 0;
  while (above - most > 1) {
    const std::int64_t tried = std::midpoint(most, above);
    (fits(tried) ? most : above) = tried;
  }
  return most;
}

/// What to do if chunks need more tokens than there are.
std::string remedies(const ChunkPlan& plan, const runfile::TextLayout& layout, std::int64_t length,
                     std::int64_t available) {
  const std::int64_t samples = largest(plan.samples, [&](std::int64_t tried) {
    runfile::TextLayout fewer = layout;
    fewer.samples = tried;
    return std::ranges::all_of(plan.lengths,
                               [&](std::int64_t one) { return runfile::tokens_needed(fewer, one) <= available; });
  });
  const std::int64_t tokens = largest(plan.nested ? plan.lengths.back() : length, [&](std::int64_t tried) {
    runfile::TextLayout shorter = layout;
    shorter.lengths = {tried};
    return runfile::tokens_needed(shorter, tried) <= available;
  });
  std::string all = "a longer text";
  for (const std::string& one : {plan.advice.samples(samples), plan.advice.lengths(tokens)})
    if (!one.empty()) all += " or " + one;
  return all;
}

}  // namespace

std::string ChunkAdvice::give_samples(std::int64_t most) {
  return most >= 1 ? fmt::format("--samples of at most {}", most) : std::string();
}

std::string ChunkAdvice::give_lengths(std::int64_t most) {
  return most >= 2 ? fmt::format("--lengths of at most {}", most) : std::string();
}

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
    CHECK(needed <= available, "chunks: the text has {} tokens, but {} of length {}{}{} {} {}; give {}", available,
          counted(plan.samples, "sample"), format_count(plan.nested ? plan.lengths.back() : length),
          plan.nested ? " (nested)" : "", plan.spread ? " (spread)" : "", plan.samples == 1 ? "needs" : "need", needed,
          remedies(plan, layout, length, available));
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
