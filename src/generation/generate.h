#pragma once

#include "core/head_queries.h"
#include "generation/next_token.h"
#include "models/decoder/decoder.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace gainlens::generation {

struct GenerationOptions {
  std::int64_t max_new = 0;               ///< most tokens that are added to each prompt; at least 1
  std::optional<Sampling> sampling;       ///< empty: greedy, the most likely token each time
  std::uint64_t seed = 0;                 ///< of sampling; each prompt has a stream of its own
  std::vector<tokenizers::TokenId> ends;  ///< a text ends behind any of these; empty: it never ends by itself
  bool allow_extrapolation = false;       ///< go beyond the model's number of positions
  /// Of a message about too many tokens: what the caller offers beside fewer.
  std::string_view remedy = ", or give --allow-extrapolation to go beyond them";
  bool statistics = false;  ///< of the query that each new token comes from
};

/// What a model adds to one prompt.
struct Continued {
  std::vector<tokenizers::TokenId> tokens;  ///< the end included, if it was reached
  std::vector<double> log_probabilities;    ///< of each of them, ln p under the model itself
  bool ended = false;                       ///< whether the last token is an end
  /// Layer by layer, on request. Query i is the token before token i: the last of those that the model had read when it
  /// chose token i. Its numbers are those of this position in a sweep of the text.
  std::vector<HeadQueries> heads;
};

/// The texts, with the time they took.
struct Generated {
  std::vector<Continued> continued;  ///< [prompt]
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0;     ///< to the first new token of every prompt
  std::int64_t step_tokens = 0;  ///< the other new tokens
  double step_seconds = 0;
};

/// Is called with the number of a prompt and a token that is added to it.
using SeeNewToken = std::function<void(std::size_t prompt, tokenizers::TokenId id)>;

/// @param prompts  tokens of each
/// @throws InvalidArgument  no prompt or an empty one, max_new below 1, sampling out of range, a prompt that is longer
///     than the model's positions with what is to be added (without allow_extrapolation, and always if positions are
///     learned), an id outside the vocabulary
void check_can_generate(const models::DecoderConfig& config, std::span<const std::vector<tokenizers::TokenId>> prompts,
                        const GenerationOptions& options);

/// Continues every prompt. They go through the model together, a token each at a time, from caches of their keys and
/// values (Decoder::extend). The tokens of a prompt do not depend on the other prompts.
/// @param see  is called with every new token, as soon as it is chosen; may be null
/// @throws InvalidArgument  as check_can_generate()
/// @throws RunFailed  as Decoder::forward(); a logit is NaN or infinite
Generated generate(models::Decoder& model, std::span<const std::vector<tokenizers::TokenId>> prompts,
                   const GenerationOptions& options, const SeeNewToken& see = nullptr);

}  // namespace gainlens::generation
