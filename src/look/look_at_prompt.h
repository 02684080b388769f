#pragma once

#include "core/prompt_look.h"
#include "interventions/question.h"
#include "look/logit_lens.h"
#include "models/decoder/decoder.h"
#include "sweep/token_source.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::look {

/// A head and a query of it.
struct ChosenQuery {
  std::int64_t layer = 0, head = 0, query = 0;
};

struct LookOptions {
  std::int64_t top_keys = 8;                      ///< of each query, 1 to kernels::max_top_keys
  std::int64_t next = 10;                         ///< most likely next tokens
  std::optional<ChosenQuery> query;               ///< whose weights of all keys are wanted
  std::optional<LensOptions> lens;                ///< the logit lens
  std::optional<interventions::AnswerPair> pair;  ///< whose logit difference is attributed
  std::vector<PromptSegment> segments;            ///< attention mass of each; empty: not wanted
  std::int64_t segment_queries = 1;               ///< last queries that the mass is a mean over
  bool allow_extrapolation = false;
};

/// A prompt in tokens, BOS included.
struct Prompt {
  std::vector<tokenizers::TokenId> tokens;
  data::BosDecision bos;
  std::shared_ptr<const tokenizers::Tokenizer> tokenizer;  ///< null if ids were given
  std::optional<std::int64_t> without_line_end;            ///< sweep::TokenSource
};

/// @throws InvalidArgument  as sweep::read_tokens(); it has no token
Prompt read_prompt(const sweep::TokenSourceOptions& from, const models::DecoderConfig& config,
                   const std::filesystem::path& checkpoint);

/// @throws InvalidArgument  more tokens than the model was made for, without LookOptions::allow_extrapolation; a head,
///     a query or a layer of linear attention that is asked for and not there; a model without softmax attention
void check_can_look(const models::DecoderConfig& config, const Prompt& prompt, const LookOptions& options);

/// One forward pass over a prompt, and all that it showed. Memory grows with the number of tokens, not with its square.
/// @throws InvalidArgument  as check_can_look()
/// @throws RunFailed        as Decoder::forward()
PromptLook look_at(models::Decoder& model, const Prompt& prompt, const LookOptions& options);

}  // namespace gainlens::look
