#include "language/answer_task.h"

#include "core/check.h"
#include "models/checkpoint/initial_weights.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
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
                       std::function<Json(const models::DecoderWeights&)> keep, training::Replicas* replicas)
    : config_(std::move(config)),
      masters_(options.dtype == at::kFloat
                   ? std::nullopt
                   : std::optional<MasterWeights>(std::in_place, config_, learning(config_, weights), options.dtype)),
      weights_(masters_ ? masters_->copy() : learning(config_, std::move(weights))),
      decoder_(config_, weights_, models::WeightUse::trained),
      filter_host_(decoder_, config_, trained()),
      training_(std::move(training)),
      validation_(std::move(validation)),
      order_(seed, std::ssize(training_)),
      options_(options),
      filter_(filter_host_, steps_of(1)),
      keep_(std::move(keep)),
      replicas_(replicas) {
  ASSERT(!validation_.empty() && options_.batch >= 1, "answer task: no validation rows, or an empty batch");
  if (options_.focal && options_.focal->learned) alpha_ = at::zeros({1}, at::kFloat).set_requires_grad(true);
}

std::vector<training::ParameterGroup> AnswerTask::parameters() {
  std::vector<training::ParameterGroup> groups =
      training::parameter_groups(models::decoder_parameters(config_, trained()),
                                 models::decoder_parameters(config_, trained(), models::WeightRole::precision),
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
  if (start_) notes["start"] = {start_->plain, start_->filtered};
  return notes;
}

void AnswerTask::restore(const Json& notes) {
  filter_.restore(notes);
  kept_ = notes.is_object() ? notes.value("kept", Json()) : Json();
  gammas_ = notes.is_object() ? notes.value("gamma", std::vector<double>()) : std::vector<double>();
  start_.reset();
  if (notes.is_object() && notes.contains("start"))
    start_ = {notes.at("start").at(0).get<double>(), notes.at("start").at(1).get<double>()};
}

at::Tensor AnswerTask::gamma() const {
  return alpha_.defined() ? at::softplus(alpha_) : at::full({1}, options_.focal->gamma, at::kFloat);
}

/// All tokens but the last one, which nothing follows.
hooks::Tokens AnswerTask::inputs_of(const AnswerRow& row) const {
  return {at::tensor(row.ids, at::kLong).slice(0, 0, std::ssize(row.ids) - 1).unsqueeze(0)};
}

/// -ln p of each answer token.
at::Tensor AnswerTask::validation_losses(const AnswerRow& row, const hooks::Hooks& hooks) {
  const at::Tensor hidden = decoder_.forward(inputs_of(row), {}, hooks).hidden[0];
  const at::Tensor answering = hidden.slice(0, row.first_answer - 1);
  const at::Tensor targets = at::tensor(row.ids, at::kLong).slice(0, row.first_answer);
  return -at::log_softmax(decoder_.unembed(answering), -1).gather(1, targets.unsqueeze(1)).squeeze(1);
}

/// How many of the first rows go through the model together.
std::int64_t AnswerTask::rows_at_once(std::span<const std::int64_t> rows) const {
  std::int64_t count = 0, tokens = 0;
  for (const std::int64_t row : rows) {
    tokens += std::ssize(training_[static_cast<std::size_t>(row)].ids) - 1;
    if (count > 0 && tokens > options_.tokens_at_once) break;
    ++count;
  }
  return count;
}

/// The sum over training rows that go through the model together.
at::Tensor AnswerTask::sum_of_losses(std::span<const std::int64_t> rows) {
  models::TrainingOptions options{.recompute = options_.recompute, .stretch_sums = filter_.stretch_sums()};
  std::vector<std::int64_t> ids, answering, targets;
  for (const std::int64_t index : rows) {
    const AnswerRow& row = training_[static_cast<std::size_t>(index)];
    for (auto place = row.first_answer - 1; place + 1 < std::ssize(row.ids); ++place)
      answering.push_back(std::ssize(ids) + place);
    targets.insert(targets.end(), row.ids.begin() + row.first_answer, row.ids.end());
    ids.insert(ids.end(), row.ids.begin(), row.ids.end() - 1);
    options.lengths.push_back(std::ssize(row.ids) - 1);
  }
  const at::Tensor hidden = decoder_.training_stream(at::tensor(ids, at::kLong), options);
  const at::Tensor losses =
      decoder_.token_losses(hidden.index_select(0, at::tensor(answering, at::kLong)), at::tensor(targets, at::kLong));
  if (!options_.focal) return losses.sum();
  // 1 - p without cancellation; a token with p = 1 has a loss of 0, and a finite gradient of the power.
  const at::Tensor wrong = (-at::expm1(-losses)).clamp_min(1e-12);
  return (wrong.pow(gamma()) * losses).sum();
}

std::span<const std::int64_t> AnswerTask::own_part(std::span<const std::int64_t> rows) {
  const training::Range part = replicas().part_of(std::ssize(rows));
  return rows.subspan(static_cast<std::size_t>(part.first), static_cast<std::size_t>(part.last - part.first));
}

void AnswerTask::each_pass(std::span<const std::int64_t> rows, const std::function<void(const at::Tensor&)>& use) {
  while (!rows.empty()) {
    const auto count = static_cast<std::size_t>(rows_at_once(rows));
    use(sum_of_losses(rows.first(count)));
    rows = rows.subspan(count);
  }
}

std::int64_t AnswerTask::positions_of(std::span<const std::int64_t> rows) const {
  std::int64_t positions = 0;
  for (const std::int64_t row : rows) positions += std::ssize(training_[static_cast<std::size_t>(row)].ids) - 1;
  return positions;
}

training::FilterPasses AnswerTask::passes_over(std::span<const std::int64_t> rows) {
  return {.batch = [this, rows](const hooks::Hooks& hooks) {
    if (masters_) masters_->refresh();  // what the filter has written
    for (const std::int64_t row : rows)
      decoder_.forward(inputs_of(training_[static_cast<std::size_t>(row)]), {.stop_at_layer = 1}, hooks);
  }};
}

double AnswerTask::accumulate_gradients(std::int64_t step) {
  const std::span<const std::int64_t> rows = rows_of(step), own = own_part(rows);
  std::int64_t tokens = 0;  // of the whole step
  for (const std::int64_t row : rows) tokens += answer_tokens(training_[static_cast<std::size_t>(row)]);
  if (masters_) masters_->refresh();
  filter_.prepare(step, passes_over(rows));
  if (masters_) masters_->refresh();
  double loss = 0;
  each_pass(own, [&](const at::Tensor& sum) {
    const at::Tensor share = sum / static_cast<double>(tokens);
    share.backward();
    if (masters_) masters_->collect_gradients();
    loss += share.item<double>();
  });
  filter_.learn_from(positions_of(own), replicas());
  // While a filter warms up, its parameters have no effect and get no gradient.
  training::give_missing_gradients(models::decoder_parameters(config_, trained(), models::WeightRole::precision));
  return loss;
}

double AnswerTask::held_out_loss(const hooks::Hooks& hooks) {
  if (masters_) masters_->refresh();
  const c10::InferenceMode inference;
  const training::Range own = replicas().part_of(std::ssize(validation_));
  double sum = 0;
  for (std::int64_t row = own.first; row < own.last; ++row)
    sum += validation_losses(validation_[static_cast<std::size_t>(row)], hooks).sum(at::kDouble).item<double>();
  replicas().sum({at::from_blob(&sum, {1}, at::kDouble)});
  std::int64_t tokens = 0;
  for (const AnswerRow& row : validation_) tokens += answer_tokens(row);
  return sum / static_cast<double>(tokens);
}

double AnswerTask::validation_loss() {
  const double loss = held_out_loss(filter_.evaluation_hooks());
  filter_.record(&replicas());
  if (options_.focal) gammas_.push_back(gamma().item<double>());
  return loss;
}

void AnswerTask::measure_start() {
  const Json before = filter_.notes();
  if (before.is_null()) return;  // no filter with precisions
  const at::NoGradGuard no_gradients;
  StartLoss found;
  filter_.take_out_of_force();
  found.plain = held_out_loss({});
  const std::span<const std::int64_t> rows = rows_of(0), own = own_part(rows);
  if (masters_) masters_->refresh();
  filter_.start_in_force(passes_over(rows));
  if (masters_) masters_->refresh();
  each_pass(own, [](const at::Tensor&) {});  // for the running means
  filter_.learn_from(positions_of(own), replicas());
  found.filtered = held_out_loss({});
  filter_.restore(before);
  start_ = found;
}

}  // namespace gainlens::language
