#include "language/answer_task.h"

#include "core/check.h"
#include "models/checkpoint/initial_weights.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <utility>

namespace gainlens::language {
namespace {

/// The weights as parameters.
models::DecoderWeights learning(const models::DecoderConfig& config, models::DecoderWeights weights) {
  if (config.tied_head) weights.head = weights.embedding;
  for (const models::WeightRole role : {models::WeightRole::weight, models::WeightRole::precision}) {
    for (const models::NamedTensor& weight : models::decoder_parameters(config, weights, role)) {
      at::Tensor tensor = weight.tensor;
      tensor.set_requires_grad(true);
    }
  }
  return weights;
}

std::int64_t answer_tokens(const AnswerRow& row) {
  return std::ssize(row.ids) - row.first_answer;
}

}  // namespace

AnswerTask::AnswerTask(models::DecoderConfig config, models::DecoderWeights weights, std::vector<AnswerRow> training,
                       std::vector<AnswerRow> validation, std::uint64_t seed, const AnswerTaskOptions& options,
                       std::function<Json(const models::DecoderWeights&)> keep)
    : config_(std::move(config)),
      weights_(learning(config_, std::move(weights))),
      decoder_(config_, weights_, models::WeightUse::trained),
      filter_host_(decoder_, config_, weights_),
      training_(std::move(training)),
      validation_(std::move(validation)),
      order_(seed, std::ssize(training_)),
      options_(options),
      filter_(filter_host_, steps_of(1)),
      keep_(std::move(keep)) {
  ASSERT(!validation_.empty() && options_.batch >= 1, "answer task: no validation rows, or an empty batch");
  if (options_.focal && options_.focal->learned) alpha_ = at::zeros({1}, at::kFloat).set_requires_grad(true);
}

std::vector<training::ParameterGroup> AnswerTask::parameters() {
  std::vector<training::ParameterGroup> groups =
      training::parameter_groups(models::decoder_parameters(config_, weights_),
                                 models::decoder_parameters(config_, weights_, models::WeightRole::precision),
                                 options_.weight_decay, options_.precision_factor);
  if (alpha_.defined()) groups.push_back({"focal", {{"focal.alpha", alpha_}}, 1, 0});
  return groups;
}

std::int64_t AnswerTask::steps_of(std::int64_t epochs) const {
  return (epochs * std::ssize(training_) + options_.batch - 1) / options_.batch;
}

std::span<const std::int64_t> AnswerTask::rows_of(std::int64_t step) {
  present_.clear();
  for (std::int64_t i = 0; i < options_.batch; ++i) present_.push_back(order_.at(step * options_.batch + i));
  return present_;
}

double AnswerTask::amount(std::int64_t) const {
  return static_cast<double>(options_.batch);
}

Json AnswerTask::notes() const {
  Json notes = filter_.notes();
  if (!kept_.is_null()) notes["kept"] = kept_;
  if (!gammas_.empty()) notes["gamma"] = gammas_;
  return notes;
}

void AnswerTask::restore(const Json& notes) {
  filter_.restore(notes);
  kept_ = notes.is_object() ? notes.value("kept", Json()) : Json();
  gammas_ = notes.is_object() ? notes.value("gamma", std::vector<double>()) : std::vector<double>();
}

at::Tensor AnswerTask::gamma() const {
  return alpha_.defined() ? at::softplus(alpha_) : at::full({1}, options_.focal->gamma, at::kFloat);
}

/// All tokens but the last one, which nothing follows.
hooks::Tokens AnswerTask::inputs_of(const AnswerRow& row) const {
  return {at::tensor(row.ids, at::kLong).slice(0, 0, std::ssize(row.ids) - 1).unsqueeze(0)};
}

/// -ln p of each answer token.
at::Tensor AnswerTask::losses_of(const AnswerRow& row, bool training) {
  const hooks::Hooks none;
  const hooks::ForwardOptions options{.training = training,
                                      .stretch_sums = training ? filter_.stretch_sums() : nullptr};
  const at::Tensor hidden =
      decoder_.forward(inputs_of(row), options, training ? none : filter_.evaluation_hooks()).hidden[0];
  const at::Tensor answering = hidden.slice(0, row.first_answer - 1);
  const at::Tensor targets = at::tensor(row.ids, at::kLong).slice(0, row.first_answer);
  return -at::log_softmax(decoder_.unembed(answering), -1).gather(1, targets.unsqueeze(1)).squeeze(1);
}

/// Of the training.
at::Tensor AnswerTask::sum_of_losses(const AnswerRow& row) {
  const at::Tensor losses = losses_of(row, /*training=*/true);
  if (!options_.focal) return losses.sum();
  // 1 - p without cancellation; a token with p = 1 has a loss of 0, and a finite gradient of the power.
  const at::Tensor wrong = (-at::expm1(-losses)).clamp_min(1e-12);
  return (wrong.pow(gamma()) * losses).sum();
}

double AnswerTask::accumulate_gradients(std::int64_t step) {
  const std::span<const std::int64_t> rows = rows_of(step);
  std::int64_t tokens = 0, positions = 0;
  for (const std::int64_t row : rows) {
    tokens += answer_tokens(training_[static_cast<std::size_t>(row)]);
    positions += std::ssize(training_[static_cast<std::size_t>(row)].ids) - 1;
  }
  // The first layer is enough: its precision is asked for.
  filter_.prepare(step, {.batch = [&](const hooks::Hooks& hooks) {
                    for (const std::int64_t row : rows)
                      decoder_.forward(inputs_of(training_[static_cast<std::size_t>(row)]), {.stop_at_layer = 1},
                                       hooks);
                  }});
  double loss = 0;
  for (const std::int64_t row : rows) {
    const at::Tensor share = sum_of_losses(training_[static_cast<std::size_t>(row)]) / static_cast<double>(tokens);
    share.backward();
    loss += share.item<double>();
  }
  training::SingleReplica alone;
  filter_.learn_from(positions, alone);
  // While a filter warms up, its parameters have no effect and get no gradient.
  training::give_missing_gradients(models::decoder_parameters(config_, weights_, models::WeightRole::precision));
  return loss;
}

double AnswerTask::validation_loss() {
  const c10::InferenceMode inference;
  double sum = 0;
  std::int64_t tokens = 0;
  for (const AnswerRow& row : validation_) {
    sum += losses_of(row, /*training=*/false).sum(at::kDouble).item<double>();
    tokens += answer_tokens(row);
  }
  filter_.record();
  if (options_.focal) gammas_.push_back(gamma().item<double>());
  return sum / static_cast<double>(tokens);
}

}  // namespace gainlens::language
