#pragma once

#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::data {

/// What a command can do about a text that is too short: what to give if at most so many samples, or lengths of at most
/// so many tokens, fit into it. Empty: nothing that the command takes. Commands differ in their options and in what
/// these allow.
struct ChunkAdvice {
  std::function<std::string(std::int64_t most)> samples = give_samples;
  std::function<std::string(std::int64_t most)> lengths = give_lengths;

  /// "--samples of at most 3"; empty: 0 of them.
  static std::string give_samples(std::int64_t most);
  /// "--lengths of at most 64"; empty: below 2, which predict nothing.
  static std::string give_lengths(std::int64_t most);
};

/// How a token stream is cut (docs/method.md, "Sweep protocol").
struct ChunkPlan {
  std::vector<std::int64_t> lengths;  ///< context lengths T, sorted, each >= 1
  std::int64_t samples = 1;           ///< chunks per length
  bool nested = false;                ///< cut the shorter chunks from the starts of the longest ones
  bool spread = false;                ///< spread the chunks of a length evenly over the text; else one after another
  std::optional<tokenizers::TokenId> bos;  ///< takes position 0 of every chunk; the stride is then T - 1
  ChunkAdvice advice = {};
};

struct Chunk {
  std::int64_t length = 0;
  std::int64_t sample = 0;
  std::vector<tokenizers::TokenId> tokens;  ///< `length` ids, BOS included
};

/// Tokens of text that the chunks of a plan need, from its start on; nothing if they need all, as spread chunks do.
/// @throws InvalidArgument  lengths or samples are wrong
std::optional<std::int64_t> tokens_needed(const ChunkPlan& plan);

/// Cuts the chunks of each length; runfile::text_span() gives their places. Shortest lengths first, samples in order.
/// @throws InvalidArgument  too few tokens for a length (says how many there are, how many are needed, and what
///     ChunkPlan::advice says); a length below 2 with a BOS
std::vector<Chunk> cut(std::span<const tokenizers::TokenId> tokens, const ChunkPlan& plan);

enum class BosPolicy { automatic, always, never };

/// The result of `--bos`.
struct BosDecision {
  std::optional<tokenizers::TokenId> token;  ///< put before each chunk
  std::string explanation;                   ///< in words, printed with every sink figure
};

/// @param tokenizer   null where ids were given (`--tokens`): auto means never
/// @param config_bos  bos_token_id of the checkpoint's config
/// @throws InvalidArgument  `always` without a known BOS, or ids that already start with it; `automatic` where the
///     tokenizer is in doubt (Tokenizer::bos_doubt)
BosDecision decide_bos(BosPolicy policy, const tokenizers::Tokenizer* tokenizer,
                       std::optional<tokenizers::TokenId> config_bos, std::span<const tokenizers::TokenId> tokens);

}  // namespace gainlens::data
