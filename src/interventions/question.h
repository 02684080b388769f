#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace gainlens::interventions {

/// Two tokens whose logits are compared at the last position.
struct AnswerPair {
  std::int64_t answer = 0;
  std::int64_t foil = 0;
};

/// What is asked of the output: the losses of which tokens, and at most one number of the last position.
struct Question {
  std::optional<AnswerPair> pair;  ///< asks for logit(answer) - logit(foil)
  /// Asks for the Kullback-Leibler divergence from this distribution in nats, sum p (log p - log q): its log p, float64
  /// [vocabulary]. Undefined: not asked for.
  at::Tensor reference;
  /// The losses of so many last tokens are read, and the logits that predict them or follow the last one; the output
  /// head runs over no other position. 0: the last position alone, no losses. Absent: all tokens but the first.
  std::optional<std::int64_t> targets = {};
  /// So many tokens after the targets are not read: they end before the document does. 0 where `targets` is absent.
  std::int64_t after = 0;

  bool any() const { return pair || reference.defined(); }
};

/// The number that is asked for.
/// @param logits  of the last position, [vocabulary], finite
/// @pre  any()
double answer_to(const Question& question, const at::Tensor& logits);

/// log p, float64 [vocabulary].
at::Tensor log_probabilities(const at::Tensor& logits);

}  // namespace gainlens::interventions
