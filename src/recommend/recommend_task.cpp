#include "recommend/recommend_task.h"

#include "core/check.h"
#include "core/random.h"
#include "core/ranking_metrics.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace gainlens::recommend {
namespace {

/// Streams of random numbers of one seed. The order of the data has those of its epochs, from 0.
constexpr std::uint64_t dropout_stream = std::uint64_t{1} << 40, negative_stream = std::uint64_t{1} << 41;

SasRecConfig config_of(const Settings& settings, const data::LeaveOneOut& split) {
  SasRecConfig config = settings.model;
  config.items = split.items();
  return config;
}

}  // namespace

std::vector<std::int64_t> users_with_positions(const data::LeaveOneOut& split) {
  std::vector<std::int64_t> users;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    if (split.training(user).size() >= 2) users.push_back(user);
  }
  CHECK(!users.empty(), "training: no user has two training items; each needs at least 4 interactions");
  return users;
}

RecommendTask::RecommendTask(const Settings& settings, const data::LeaveOneOut& split, std::uint64_t seed,
                             std::function<void(const SasRec&)> keep, training::Replicas& replicas)
    : settings_(settings),
      split_(split),
      seed_(seed),
      model_(config_of(settings, split), initial_sasrec_weights(config_of(settings, split), seed)),
      users_(users_with_positions(split)),
      order_(seed, std::ssize(users_)),
      validation_(ranking_metrics().size()),
      keep_(std::move(keep)),
      replicas_(replicas) {
  if (settings_.loss == LossKind::sampled) sampler_.emplace(split.training_counts(), settings_.negative_exponent);
}

std::int64_t RecommendTask::steps_per_epoch() const {
  return (std::ssize(users_) + settings_.batch - 1) / settings_.batch;
}

std::vector<training::ParameterGroup> RecommendTask::parameters() {
  training::ParameterGroup matrices{"matrices", {}, 1, settings_.weight_decay};
  training::ParameterGroup vectors{"norms and biases", {}, 1, 0};
  SasRecWeights weights = model_.weights();
  for (const models::NamedTensor& parameter : sasrec_parameters(model_.config(), weights))
    (parameter.tensor.dim() > 1 ? matrices : vectors).parameters.push_back(parameter);
  return {matrices, vectors};
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
  if (!sampler_) return model_.mean_loss(hidden, targets);
  const auto drawn = sampler_->draw(settings_.negatives, seed_, negative_stream + static_cast<std::uint64_t>(step));
  return sampled_softmax_loss(hidden, model_.head(), targets - 1, at::tensor(drawn, at::kLong).to(targets.device()) - 1,
                              sampler_->log_probability().to(targets.device()));
}

std::int64_t RecommendTask::positions_of(std::int64_t user) const {
  return std::min(std::ssize(split_.training(user)) - 1, settings_.model.positions);
}

double RecommendTask::accumulate_gradients(std::int64_t step) {
  const std::vector<std::int64_t> users = users_of(step);
  const training::Range own = replicas_.part_of(std::ssize(users));
  std::vector<std::span<const data::ItemId>> inputs;
  std::vector<std::int64_t> targets;
  std::int64_t all_positions = 0, positions_before = 0;
  for (std::int64_t i = 0; i < std::ssize(users); ++i) {
    const std::int64_t user = users[static_cast<std::size_t>(i)], positions = positions_of(user);
    all_positions += positions;
    if (i < own.first) positions_before += positions;
    if (i < own.first || i >= own.last) continue;
    const auto items = split_.training(user);
    inputs.push_back(items.first(items.size() - 1));
    for (const data::ItemId item : items.last(static_cast<std::size_t>(positions))) targets.push_back(item);
  }
  if (targets.empty()) return 0;
  const at::Device device = model_.weights().item_embedding.device();
  const PackedSequences packed = pack(inputs, model_.config(), device);
  const TrainingNoise noise{settings_.dropout, settings_.attention_dropout,
                            Random(seed_, dropout_stream + static_cast<std::uint64_t>(step)).bits(), positions_before};
  at::Tensor loss = loss_of(model_.hidden(packed, noise), at::tensor(targets, at::kLong).to(device), step);
  if (std::ssize(targets) < all_positions)
    loss = loss * (static_cast<double>(targets.size()) / static_cast<double>(all_positions));
  loss.backward();
  return loss.item<double>();
}

double RecommendTask::amount(std::int64_t step) const {
  const std::int64_t first = step % steps_per_epoch() * settings_.batch;
  return static_cast<double>(std::min<std::int64_t>(settings_.batch, std::ssize(users_) - first));
}

std::vector<float> RecommendTask::ranks(data::HeldOut held_out) const {
  SasRecScorer scorer(model_);
  const training::Range own = replicas_.part_of(split_.users());
  const std::vector<float> of_part = rank_users(scorer, split_, held_out, {own.first, own.last});
  std::vector<float> all(static_cast<std::size_t>(split_.users()));
  std::copy(of_part.begin(), of_part.end(), all.begin() + own.first);
  replicas_.sum({at::from_blob(all.data(), {split_.users()}, at::kFloat)});  // 0 where another process has the rank
  return all;
}

double RecommendTask::validation_loss() {
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
  return {{"validation", validation_}};
}

void RecommendTask::restore(const Json& notes) {
  validation_ = notes.at("validation").get<std::vector<std::vector<double>>>();
  CHECK(validation_.size() == ranking_metrics().size(), "training state: {} metrics; must be {}", validation_.size(),
        ranking_metrics().size());
}

std::string RecommendTask::name_of(std::int64_t step) const {
  return fmt::format("epoch {}, batch {}", step / steps_per_epoch() + 1, step % steps_per_epoch() + 1);
}

std::string RecommendTask::describe(double validation_loss) const {
  return fmt::format("validation NDCG@10 {:.4f}", -validation_loss);
}

}  // namespace gainlens::recommend
