#pragma once

#include "core/prompt_look.h"
#include "models/decoder/decoder.h"
#include "tokenizers/tokenizer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace gainlens::look {

/// What the rows of a lens hold.
struct LensOptions {
  std::optional<std::int64_t> position;  ///< the only one; absent: every position
  std::int64_t next = 3;                 ///< most likely tokens of a row
  std::optional<std::int64_t> answer;    ///< token whose rank and logit are wanted
};

/// The logit lens: the stream after each layer, read by the model's own final norm and output head (nostalgebraist
/// 2020, "interpreting GPT: the logit lens"). It keeps the streams of one pass: layers x positions x width numbers.
class LogitLens {
 public:
  LogitLens(models::Decoder& model, LensOptions options) : model_(model), options_(options) {}

  /// Hooks for the pass; the lens must outlive it.
  void attach(hooks::Hooks& hooks);

  /// Runs the output head over all that was kept, some positions at a time.
  /// @returns  position by position, and of each layer by layer. The entropy is -sum p ln p, and the divergence
  ///     sum q (ln q - ln p) of the last layer's q from the layer's p: both in nats
  /// @throws RunFailed  a logit is NaN or infinite
  std::vector<LensRow> rows(const tokenizers::Tokenizer* tokenizer) const;

 private:
  models::Decoder& model_;
  LensOptions options_;
  std::vector<at::Tensor> streams_;  ///< of each layer [position, width]
};

}  // namespace gainlens::look
