#pragma once

#include "language/answer_rows.h"
#include "language/filter_host.h"
#include "language/master_weights.h"
#include "models/decoder/decoder.h"
#include "training/filter_training.h"
#include "training/schedule.h"
#include "training/trainer.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace gainlens::language {

/// What the loss of a token is. With p the probability of the right token, it is (1 - p)^gamma (-ln p): gamma 0 is
/// cross-entropy. Source: Lin et al., "Focal Loss for Dense Object Detection" (2017).
struct FocalLoss {
  double gamma = 0;  ///< if it is not learned
  /// gamma = softplus(alpha) with alpha 0 at the start, ln 2, as in the paper. The loss falls as gamma grows, so its
  /// gradient can only raise it.
  bool learned = false;
};

/// Mean cross-entropy of the held-out answer tokens before any training.
struct StartLoss {
  double plain = 0;     ///< of the pretrained model
  double filtered = 0;  ///< with the whole filter in force
};

struct AnswerTaskOptions {
  std::int64_t batch = 4;  ///< rows of a step
  double weight_decay = 0.05;
  std::optional<FocalLoss> focal;  ///< empty: cross-entropy
  double precision_factor = 100;   ///< of a filter's parameters: their learning rate over that of the others
  /// Rows of a step go through the model together, one after another, up to so many tokens; a longer row alone. Another
  /// value changes the last digits.
  std::int64_t tokens_at_once = 2048;
  bool recompute = false;  ///< models::TrainingOptions::recompute
  /// Of the computation. bfloat16 computes with a rounded copy of the weights (MasterWeights).
  at::ScalarType dtype = at::kFloat;
};

/// Fine-tuning of a decoder on answers. The loss of a step is the mean over the answer tokens of its rows, the end
/// included; tokens of prompts have no loss. Rows that go through the model together do not see each other, and no
/// padding is computed. Of several processes, each takes a part of the rows of a step, and of those that are held out.
class AnswerTask : public training::Task {
 public:
  /// @param weights  of the pretrained model, float32; trained in place
  /// @param keep     called with the weights at each new best validation loss; returns what notes() says of it
  /// @param replicas  the processes that train together; null: this one alone. Must exist as long as the task
  AnswerTask(models::DecoderConfig config, models::DecoderWeights weights, std::vector<AnswerRow> training,
             std::vector<AnswerRow> validation, std::uint64_t seed, const AnswerTaskOptions& options,
             std::function<Json(const models::DecoderWeights&)> keep, training::Replicas* replicas = nullptr);

  std::vector<training::ParameterGroup> parameters() override;
  double accumulate_gradients(std::int64_t step) override;
  double amount(std::int64_t step) const override;
  /// Mean cross-entropy of the answer tokens, whatever the loss of the training is, in nats.
  double validation_loss() override;
  void keep_best() override { kept_ = keep_(trained()); }
  Json notes() const override;
  void restore(const Json& notes) override;

  /// Measures start(), if the model has a filter that warms up. To be called before the training; it leaves everything
  /// as it was. The filter begins from the rows of the first step. All processes call it.
  void measure_start();
  /// Also what an earlier call of the training measured.
  const std::optional<StartLoss>& start() const { return start_; }

  /// Steps of so many epochs; the last batch of an epoch goes on into the next one.
  std::int64_t steps_of(std::int64_t epochs) const;
  const Json& kept() const { return kept_; }
  /// gamma at each evaluation; empty without focal loss.
  const std::vector<double>& gammas() const { return gammas_; }
  const training::FilterTraining& filter() const { return filter_; }

 private:
  hooks::Tokens inputs_of(const AnswerRow& row) const;
  at::Tensor validation_losses(const AnswerRow& row, const hooks::Hooks& hooks);
  double held_out_loss(const hooks::Hooks& hooks);
  /// What a filter's training asks for: a pass over training rows, through the first layer, whose precision it needs.
  training::FilterPasses passes_over(std::span<const std::int64_t> rows);
  /// The rows of a step that this process takes.
  std::span<const std::int64_t> own_part(std::span<const std::int64_t> rows);
  std::int64_t positions_of(std::span<const std::int64_t> rows) const;
  at::Tensor sum_of_losses(std::span<const std::int64_t> rows);
  /// Training rows go through the model, as many together as AnswerTaskOptions::tokens_at_once allows.
  /// @param use  gets the sum of the losses of each pass
  void each_pass(std::span<const std::int64_t> rows, const std::function<void(const at::Tensor&)>& use);
  /// What the optimiser changes.
  models::DecoderWeights& trained() { return masters_ ? masters_->masters() : weights_; }
  std::int64_t rows_at_once(std::span<const std::int64_t> rows) const;
  at::Tensor gamma() const;
  /// Those of all processes.
  std::span<const std::int64_t> rows_of(std::int64_t step);
  training::Replicas& replicas() { return replicas_ != nullptr ? *replicas_ : alone_; }

  models::DecoderConfig config_;
  std::optional<MasterWeights> masters_;  // if another type computes
  models::DecoderWeights weights_;        // that compute
  models::Decoder decoder_;
  DecoderFilterHost filter_host_;
  std::vector<AnswerRow> training_, validation_;
  training::DataOrder order_;
  AnswerTaskOptions options_;
  training::FilterTraining filter_;
  std::function<Json(const models::DecoderWeights&)> keep_;
  at::Tensor alpha_;  // [1]; undefined: gamma is not learned
  Json kept_;
  std::vector<double> gammas_;
  std::optional<StartLoss> start_;
  std::vector<std::int64_t> present_;  // rows of the last step
  training::SingleReplica alone_;
  training::Replicas* replicas_;  // null: alone
};

}  // namespace gainlens::language
