#pragma once

#include "language/filter_host.h"
#include "language/recipe.h"
#include "language/token_windows.h"
#include "models/decoder/decoder.h"
#include "tokenizers/tokenizer.h"
#include "training/filter_training.h"
#include "training/schedule.h"
#include "training/trainer.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace gainlens::language {

/// The tokens a language model learns from.
struct TrainingTokens {
  std::vector<tokenizers::TokenId> training;
  std::vector<tokenizers::TokenId> validation;  ///< held out
  tokenizers::TokenId bos = 0;
};

/// Where held-out text is cut into sequences of the longest context of a recipe.
struct HeldOutSequences {
  std::int64_t context = 0;
  std::vector<std::int64_t> evaluated;  ///< where those begin that every evaluation uses, spread evenly
  std::vector<std::int64_t> others;     ///< the same of all others
};
/// @param tokens  that are held out; at least one sequence
HeldOutSequences held_out_sequences(const Recipe& recipe, std::int64_t tokens);

/// Next-token prediction by one Decoder. Each epoch cuts the token stream at a new offset and takes the sequences in a
/// new order.
class LanguageModelTask : public training::Task {
 public:
  /// @param keep  called with the weights at each new best validation loss; returns what notes() says of it
  /// @param precision_factor  of the filter's parameters: their learning rate over that of the others
  /// @throws InvalidArgument  too few tokens for one sequence of the longest context, in training or validation
  LanguageModelTask(const Recipe& recipe, models::DecoderConfig config, models::DecoderWeights weights,
                    TrainingTokens tokens, std::uint64_t seed, std::function<Json(const models::DecoderWeights&)> keep,
                    double precision_factor = 1);

  std::vector<training::ParameterGroup> parameters() override;
  double accumulate_gradients(std::int64_t step) override;
  double amount(std::int64_t) const override { return static_cast<double>(recipe_.tokens_per_step); }
  /// Mean loss per token over held-out sequences of the longest context, in nats.
  double validation_loss() override;
  void keep_best() override { kept_ = keep_(weights_); }
  Json notes() const override;
  void restore(const Json& notes) override;
  /// What `keep` returned at the best step; null if nothing was kept, or if the state that was restored does not say
  /// it.
  const Json& kept() const { return kept_; }
  const training::FilterTraining& filter() const { return filter_; }
  /// The weights as they are now.
  const models::DecoderWeights& weights() const { return weights_; }

 private:
  /// The place of a step in the training: its stage, and the number of sequences of this stage before it.
  struct Place {
    std::size_t stage;
    std::int64_t sequence;
  };
  Place place_of(std::int64_t step) const;
  std::int64_t begin_of(const Place& place, std::int64_t sequence);
  at::Tensor loss_of(const Batch& batch, bool training);

  const Recipe& recipe_;
  models::DecoderConfig config_;
  models::DecoderWeights weights_;
  models::Decoder decoder_;
  double precision_factor_;
  DecoderFilterHost filter_host_;
  training::FilterTraining filter_;
  TrainingTokens tokens_;
  std::uint64_t seed_;
  std::vector<training::DataOrder> orders_;  // [stage]
  std::function<Json(const models::DecoderWeights&)> keep_;
  Json kept_;
};

}  // namespace gainlens::language
