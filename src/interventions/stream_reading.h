#pragma once

#include "hooks/hooked_model.h"
#include "interventions/question.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gainlens::interventions {

/// What a stream means for the output.
struct StreamReading {
  std::vector<double> losses;         ///< [target] negative log likelihood of the tokens that are asked for, in nats
  double largest_change = 0;          ///< of a logit, against the base, over the positions that are read
  double largest_logit = 0;           ///< magnitude, of the base alone
  std::optional<double> answer = {};  ///< to the question, if there is one
};

/// A stream after the final norm, with the first of its positions that may differ from the base.
struct ChangedStream {
  at::Tensor normalized;  ///< [1, position, width]
  std::int64_t first_position = 0;
};

/// Reads streams of one document. The output head runs over blocks of positions, so that no [position, vocabulary]
/// tensor is in memory, and once over the base for all streams.
/// @param base    the stream that the others are compared with, [1, position, width]
/// @param tokens  of the document, at least 2
/// @param question  may limit the reading to the last positions; its targets are fewer than the tokens
/// @returns  the reading of the base, then one for each stream. Before its first position a stream has the losses of
///     the base
/// @throws RunFailed  NaN or infinite logits (names the first position)
std::vector<StreamReading> read_streams(hooks::HookedModel& model, const at::Tensor& base,
                                        const std::vector<ChangedStream>& streams, std::span<const std::int32_t> tokens,
                                        const Question& question = {});

}  // namespace gainlens::interventions
