#pragma once

#include "core/head_queries.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gainlens {

/// A token that may come next.
struct NextToken {
  std::int32_t id = 0;
  std::string text;  ///< empty without a tokenizer; not safe to print
  double logit = 0;
  double probability = 0;
};

/// What one query head did at every query of a prompt.
struct LookedHead : HeadQueries {
  std::vector<std::int32_t> top_keys;  ///< [query x top_count] the largest weight first; -1 where there are fewer keys
  std::vector<float> top_weights;      ///< [query x top_count] of these keys (over keys and sink); NaN at -1
  std::vector<float> column_mean;      ///< [key] mean weight over the queries from the key on; NaN: none sees any key
  std::vector<float> key_mean;         ///< [key] mean weight over the queries that see the key; NaN: none does
  std::vector<double> segment_mass;    ///< [segment] share of the weights of the last queries; empty: not asked for
};

/// All weights of one query of one head.
struct LookedQuery {
  std::int64_t layer = 0, head = 0, query = 0;
  std::vector<double> weights;  ///< [key] over keys and sink; 0: hidden or later
};

/// A token in a distribution over all tokens.
struct LensAnswer {
  std::int64_t rank = 0;  ///< 1: no token is more likely
  double logit = 0;
  double probability = 0;
};

/// What the stream of a position says after a layer, read by the final norm and the output head.
struct LensRow {
  std::int64_t position = 0, layer = 0;
  std::vector<NextToken> next;       ///< the most likely first
  double entropy = 0;                ///< of the distribution, nats
  double kl_to_last = 0;             ///< sum q (ln q - ln p), nats: q of the last layer, p of this one
  std::optional<LensAnswer> answer;  ///< of PromptLook::lens_answer
};

/// A part of the last position's stream, and what it adds to a logit difference.
struct LogitPart {
  std::string name;  ///< "embedding", "blocks.3.attn[head=1]", "blocks.3.attn.bias", "blocks.3.mlp", "output bias"
  double value = 0;
};

/// Direct logit attribution: the stream of the last position is a sum, and the final norm and the output head are
/// linear in it once the norm's divisor is given.
struct LogitParts {
  std::int32_t answer = 0, foil = 0;
  std::string answer_text, foil_text;  ///< empty without a tokenizer; not safe to print
  double difference = 0;               ///< logit of answer less that of foil, as the model gives it
  double linear = 0;                   ///< the same before the soft cap; equal to `difference` without one
  std::vector<LogitPart> parts;
  double sum = 0;       ///< of the parts
  std::string missed;   ///< "" or why `sum` is not `difference` within 1e-4
  std::string divided;  ///< "" or why heads have no parts of their own
};

/// A named piece of a prompt.
struct PromptSegment {
  std::string name;
  std::int64_t begin = 0, end = 0;  ///< token positions, BOS included
};

/// One prompt, looked at: one forward pass.
struct PromptLook {
  std::vector<std::int32_t> tokens;         ///< BOS included
  std::vector<std::string> token_texts;     ///< [position]; empty without a tokenizer; not safe to print
  std::string bos_policy;                   ///< in words
  std::optional<std::int64_t> trained_for;  ///< positions that the model was made for, if the prompt is longer
  std::int64_t top_count = 0;               ///< keys of each query
  std::vector<std::int64_t> windows;        ///< [layer of the model] visible keys; 0: all
  std::vector<NextToken> next;              ///< after the last token, the most likely first
  std::vector<LookedHead> heads;            ///< layer by layer
  std::optional<LookedQuery> query;
  std::vector<LensRow> lens;                ///< position by position, and of each layer by layer
  std::optional<std::int32_t> lens_answer;  ///< token whose rank the rows of the lens hold
  std::string lens_answer_text;             ///< empty without a tokenizer; not safe to print
  std::optional<LogitParts> parts;
  std::vector<PromptSegment> segments;
  std::int64_t segment_queries = 0;  ///< number of last queries that LookedHead::segment_mass is a mean over
};

}  // namespace gainlens
