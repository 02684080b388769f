#include "recommend/recommend_task.h"

#include "bft/initial_precision.h"
#include "core/check.h"
#include "core/random.h"
#include "core/ranking_metrics.h"
#include "kernels/gradient/selected_rows.h"
#include "training/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gainlens::recommend {
namespace {

/// Streams of random numbers of one seed. The order of the data has those of its epochs, from 0.
constexpr std::uint64_t dropout_stream = std::uint64_t{1} << 40, negative_stream = std::uint64_t{1} << 41,
                        popularity_stream = std::uint64_t{1} << 42;

/// An untrained model.
std::unique_ptr<Backbone> made_model(const Settings& settings, Arm arm, const data::LeaveOneOut& split,
                                     std::uint64_t seed) {
  check_training(settings, arm, split, "training");
  return settings.backbone->make(plan_of(settings, arm, split.items()), seed);
}

/// tau_base of each id.
std::vector<float> item_bases(const Settings& settings, const data::LeaveOneOut& split, std::uint64_t seed) {
  const auto& counts = split.training_counts();
  std::vector<float> bases = bft::popularity_ranks(std::span(counts).subspan(1));
  if (settings.permute_popularity) Random(seed, popularity_stream).shuffle(bases);
  bases.insert(bases.begin(), 0);  // id 0 is no item
  return bases;
}

/// Users whose sequences the record of an evaluation is made of, the first ones, and those of one pass of em.
constexpr std::int64_t users_at_once = 256;

}  // namespace

void check_training(const Settings& settings, Arm arm, const data::LeaveOneOut& split, const std::string& where) {
  const BackboneKind& kind = *settings.backbone;
  const ModelPlan plan = plan_of(settings, arm, split.items());
  kind.check(plan, where);
  CHECK(!kind.view(plan).times || !split.interactions().time.empty(),
        "{}: backbone {} needs the time of each interaction; the data set has none (format {}){}", where, kind.name,
        data::format_name(split.interactions().format),
        kind.without_times.empty() ? "" : "; " + kind.without_times + " trains it without");
}

std::vector<std::int64_t> users_with_positions(const data::LeaveOneOut& split) {
  std::vector<std::int64_t> users;
  for (std::int64_t user = 0; user < split.training_users(); ++user) {
    if (split.training_inputs(user).size() > 0) users.push_back(user);
  }
  CHECK(!users.empty(), "training: no user has two training items; each needs at least 4 interactions");
  return users;
}

RecommendTask::RecommendTask(const Settings& settings, Arm arm, const data::LeaveOneOut& split, std::uint64_t seed,
                             std::function<Json(Backbone&)> keep, training::Replicas& replicas)
    : settings_(settings),
      split_(split),
      seed_(seed),
      model_(made_model(settings, arm, split, seed)),
      view_(model_->view()),
      users_(users_with_positions(split)),
      order_(seed, std::ssize(users_)),
      validation_(ranking_metrics().size()),
      keep_(std::move(keep)),
      replicas_(replicas) {
  if (training::FilterHost* host = model_->filter())
    filter_.emplace(*host, steps_per_epoch(), item_bases(settings, split, seed), /*tokens=*/view_.mask == 0 ? 0 : 1);
  if (settings_.loss == LossKind::sampled) sampler_.emplace(split.training_counts(), settings_.negative_exponent);
}

std::int64_t RecommendTask::steps_per_epoch() const {
  return (std::ssize(users_) + settings_.batch - 1) / settings_.batch;
}

std::vector<training::ParameterGroup> RecommendTask::parameters() {
  const std::vector<WeightSlot> slots = model_->slots();
  return training::parameter_groups(parameters_of(slots, WeightRole::weight),
                                    parameters_of(slots, WeightRole::precision), settings_.weight_decay,
                                    settings_.precision_learning_rate);
}

std::vector<std::int64_t> RecommendTask::users_of(std::int64_t step) {
  const std::int64_t epoch = step / steps_per_epoch(), first = step % steps_per_epoch() * settings_.batch;
  const std::int64_t last = std::min<std::int64_t>(first + settings_.batch, std::ssize(users_));
  std::vector<std::int64_t> users;
  for (std::int64_t i = first; i < last; ++i)
    users.push_back(users_[static_cast<std::size_t>(order_.at(epoch * std::ssize(users_) + i))]);
  return users;
}

at::Tensor RecommendTask::loss_of(const at::Tensor& hidden, const at::Tensor& targets, std::int64_t step) const {
  if (!sampler_) return model_->mean_loss(hidden, targets);
  const ScoreFactors factors = model_->score_factors(hidden);
  const auto drawn = sampler_->draw(settings_.negatives, seed_, negative_stream + static_cast<std::uint64_t>(step));
  return sampled_softmax_loss(factors.hidden, factors.head, targets - 1,
                              at::tensor(drawn, at::kLong).to(targets.device()) - 1,
                              sampler_->log_probability().to(targets.device()));
}

PackedSequences RecommendTask::inputs_of(std::span<const std::int64_t> users) const {
  return pack_training(split_, users, view_, model_->device());
}

TrainingBatch RecommendTask::batch_of(std::int64_t step, bool all_processes) {
  const std::vector<std::int64_t> users = users_of(step);
  const training::Range all{0, std::ssize(users)};
  return training_batch(split_, users, all_processes ? all : replicas_.part_of(all.last), view_,
                        step / steps_per_epoch(), model_->device());
}

double RecommendTask::accumulate_gradients(std::int64_t step) {
  const TrainingBatch batch = batch_of(step);
  if (filter_) {
    filter_->prepare(step,
                     {.batch = [&](const hooks::Hooks& hooks) { run_evaluation(batch_of(step, true).inputs, hooks); },
                      .all = [&](const hooks::Hooks& hooks) { return run_all(hooks); }});
  }
  double loss = 0;
  if (!batch.targets.empty()) loss = add_gradients(batch, step);
  if (filter_) filter_->learn_from(batch.inputs.positions(), replicas_);
  return loss;
}

void RecommendTask::run_evaluation(const PackedSequences& inputs, const hooks::Hooks& hooks) const {
  const at::NoGradGuard no_gradients;
  model_->run(inputs, {}, hooks);
}

void RecommendTask::start_filter() {
  if (!filter_) return;
  const at::NoGradGuard no_gradients;
  const PackedSequences inputs = batch_of(0, /*all_processes=*/true).inputs;
  filter_->start_in_force({.batch = [&](const hooks::Hooks& hooks) { run_evaluation(inputs, hooks); }});
  model_->run(inputs, {.training = true, .stretch_sums = filter_->stretch_sums()});
  filter_->learn_from(inputs.items.numel(), replicas_);
}

std::vector<at::Tensor> RecommendTask::run_all(const hooks::Hooks& hooks) const {
  std::vector<at::Tensor> items;
  for (std::int64_t first = 0; first < std::ssize(users_); first += users_at_once) {
    const PackedSequences inputs = inputs_of(first_users(first));
    items.push_back(inputs.items);
    run_evaluation(inputs, hooks);
  }
  return items;
}

std::span<const std::int64_t> RecommendTask::first_users(std::int64_t first) const {
  const std::int64_t count = std::min(users_at_once, std::ssize(users_) - first);
  return std::span(users_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
}

double RecommendTask::add_gradients(const TrainingBatch& batch, std::int64_t step) {
  const PackedSequences& inputs = batch.inputs;
  const TrainingNoise noise{settings_.dropout, settings_.attention_dropout,
                            Random(seed_, dropout_stream + static_cast<std::uint64_t>(step)).bits(),
                            batch.positions_before};
  const at::Tensor targets_there = at::tensor(batch.targets, at::kLong).to(inputs.items.device());
  const RunOptions options{
      .training = true, .noise = noise, .stretch_sums = filter_ ? filter_->stretch_sums() : nullptr};
  const at::Tensor hidden = model_->run(inputs, options);
  at::Tensor loss =
      loss_of(batch.asked.defined() ? kernels::selected_rows(hidden, batch.asked) : hidden, targets_there, step);
  if (std::ssize(batch.targets) < batch.all_targets)
    loss = loss * (static_cast<double>(batch.targets.size()) / static_cast<double>(batch.all_targets));
  const auto value = loss.item<double>();
  if (!std::isfinite(value) && filter_) {
    const at::NoGradGuard no_gradients;
    hooks::Hooks hooks;
    filter_->refuse_nan(hooks);
    model_->run(inputs, {.training = true, .noise = noise}, hooks);
  }
  loss.backward();
  // Parameters of precision have no gradient while the filter warms up, nor those that only a later layer would read.
  training::give_missing_gradients(parameters_of(model_->slots(), WeightRole::precision));
  return value;
}

void RecommendTask::take_weights(Backbone* best) {
  const at::NoGradGuard no_gradients;
  std::vector<at::Tensor> tensors;
  for (const WeightSlot& slot : model_->slots()) tensors.push_back(*slot.tensor);
  if (best != nullptr) {
    auto tensor = tensors.begin();
    for (const WeightSlot& slot : best->slots()) (tensor++)->copy_(*slot.tensor);
  }
  replicas_.copy_from_first(tensors);
  model_->weights_changed();
}

double RecommendTask::amount(std::int64_t step) const {
  const std::int64_t first = step % steps_per_epoch() * settings_.batch;
  return static_cast<double>(std::min<std::int64_t>(settings_.batch, std::ssize(users_) - first));
}

std::vector<float> RecommendTask::ranks(data::HeldOut held_out) const {
  BackboneScorer scorer(*model_);
  const training::Range own = replicas_.part_of(split_.users());
  const std::vector<float> part =
      rank_users(scorer, split_, held_out, {own.first, own.last}, {.keep_seen = settings_.keep_seen});
  std::vector<float> all(static_cast<std::size_t>(split_.users()));
  std::copy(part.begin(), part.end(), all.begin() + own.first);
  replicas_.sum({at::from_blob(all.data(), {split_.users()}, at::kFloat)});  // 0 where another process has the rank
  return all;
}

double RecommendTask::validation_loss() {
  if (filter_ && model_->filter()->armed_filter().has_gain()) {
    model_->weights_changed();
    run_evaluation(inputs_of(first_users(0)), filter_->evaluation_hooks());
    filter_->record();
  }
  const std::vector<float> ranks = this->ranks(data::HeldOut::validation);
  double found = 0;
  for (std::size_t i = 0; i < ranking_metrics().size(); ++i) {
    const RankingMetric& metric = ranking_metrics()[i];
    validation_[i].push_back(mean_of(metric, ranks));
    if (metric == RankingMetric{RankingMetric::Kind::gain, 10}) found = validation_[i].back();
  }
  return -found;
}

Json RecommendTask::notes() const {
  Json notes = {{"validation", validation_}, {"filter", filter_ ? filter_->notes() : Json()}};
  if (!kept_.is_null()) notes["kept"] = kept_;
  return notes;
}

void RecommendTask::restore(const Json& notes) {
  validation_ = notes.at("validation").get<std::vector<std::vector<double>>>();
  CHECK(validation_.size() == ranking_metrics().size(), "training state: {} metrics; must be {}", validation_.size(),
        ranking_metrics().size());
  if (filter_) filter_->restore(notes.at("filter"));
  kept_ = notes.value("kept", Json());
}

std::string RecommendTask::name_of(std::int64_t step) const {
  return fmt::format("epoch {}, batch {}", step / steps_per_epoch() + 1, step % steps_per_epoch() + 1);
}

std::string RecommendTask::describe(double validation_loss) const {
  return fmt::format("validation NDCG@10 {:.4f}", -validation_loss);
}

}  // namespace gainlens::recommend
