#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gainlens {

/// What a training predicts, for messages.
struct PredictionWords {
  std::string_view first = "of the first epoch";  ///< where the first loss comes from
  std::string_view choice = "item";               ///< what is predicted, one of `choices`
};

/// Why a training has diverged; empty if it has not. It has if the last of its mean losses is more than a tenth above
/// the first, or more than a tenth above that of guessing evenly, the logarithm of the number of choices.
/// @param losses   cross-entropy in nats, in order of time; fewer than one: it has not
/// @param choices  at least 1; 0: not known, and the first loss alone is compared
std::string divergence(std::span<const double> losses, std::int64_t choices, const PredictionWords& words = {});

}  // namespace gainlens
