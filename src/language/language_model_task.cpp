#include "language/language_model_task.h"

#include "core/check.h"
#include "core/random.h"
#include "language/token_windows.h"
#include "models/checkpoint/initial_weights.h"
#include "training/adamw.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>

namespace gainlens::language {
namespace {

/// Start of the random streams that draw the offsets. It keeps the orders and offsets of all stages independent.
constexpr std::uint64_t offset_stream = std::uint64_t{1} << 40;

std::uint64_t stage_seed(std::uint64_t seed, std::size_t stage) {
  return Random(seed, stage).bits();
}

}  // namespace

HeldOutSequences held_out_sequences(const Recipe& recipe, std::int64_t tokens) {
  HeldOutSequences sequences;
  for (const Stage& stage : recipe.stages) sequences.context = std::max(sequences.context, stage.context);
  const std::int64_t available = tokens / sequences.context;
  const std::int64_t used = std::clamp<std::int64_t>(recipe.validation_tokens / sequences.context, 1, available);
  for (std::int64_t i = 0; i < used; ++i) sequences.evaluated.push_back(i * available / used * sequences.context);
  for (std::int64_t i = 0; i < available; ++i) {
    const std::int64_t begin = i * sequences.context;
    if (!std::ranges::binary_search(sequences.evaluated, begin)) sequences.others.push_back(begin);
  }
  return sequences;
}

LanguageModelTask::LanguageModelTask(const Recipe& recipe, models::DecoderConfig config, models::DecoderWeights weights,
                                     TrainingTokens tokens, std::uint64_t seed,
                                     std::function<Json(const models::DecoderWeights&)> keep, double precision_factor)
    : recipe_(recipe),
      config_(std::move(config)),
      weights_(std::move(weights)),
      decoder_(config_, weights_, models::WeightUse::trained),
      precision_factor_(precision_factor),
      filter_host_(decoder_, config_, weights_),
      filter_(filter_host_, recipe.save_every),
      tokens_(std::move(tokens)),
      seed_(seed),
      keep_(std::move(keep)) {
  const auto available = static_cast<std::int64_t>(tokens_.training.size());
  for (std::size_t stage = 0; stage < recipe_.stages.size(); ++stage) {
    const std::int64_t context = recipe_.stages[stage].context;
    // One sequence less than would fit, because the offset of an epoch takes up to one.
    const std::int64_t sequences = available / context - 1;
    CHECK(sequences >= 1, "training text: {} tokens to train on; a context of {} needs at least {}", available, context,
          2 * context);
    CHECK(static_cast<std::int64_t>(tokens_.validation.size()) >= context,
          "training text: {} tokens are held out; a context of {} needs at least {}. Give more text or a larger "
          "'validation_fraction'",
          tokens_.validation.size(), context, context);
    orders_.emplace_back(stage_seed(seed_, stage), sequences);
  }
}

std::vector<training::ParameterGroup> LanguageModelTask::parameters() {
  return training::parameter_groups(models::decoder_parameters(config_, weights_),
                                    models::decoder_parameters(config_, weights_, models::WeightRole::precision),
                                    recipe_.weight_decay, precision_factor_);
}

Json LanguageModelTask::notes() const {
  Json notes = filter_.notes();
  if (!kept_.is_null()) notes["kept"] = kept_;
  return notes;
}

void LanguageModelTask::restore(const Json& notes) {
  filter_.restore(notes);
  kept_ = notes.is_object() ? notes.value("kept", Json()) : Json();
}

LanguageModelTask::Place LanguageModelTask::place_of(std::int64_t step) const {
  for (std::size_t stage = 0; stage < recipe_.stages.size(); ++stage) {
    if (step < recipe_.stages[stage].steps)
      return {stage, step * (recipe_.tokens_per_step / recipe_.stages[stage].context)};
    step -= recipe_.stages[stage].steps;
  }
  ASSERT(false, "the step lies after the last stage");
  return {};
}

std::int64_t LanguageModelTask::begin_of(const Place& place, std::int64_t sequence) {
  training::DataOrder& order = orders_[place.stage];
  const std::int64_t context = recipe_.stages[place.stage].context;
  const auto epoch = static_cast<std::uint64_t>(order.epoch_of(sequence));
  Random random(stage_seed(seed_, place.stage), offset_stream + epoch);
  const auto offset = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(context)));
  return offset + order.at(sequence) * context;
}

at::Tensor LanguageModelTask::loss_of(const Batch& batch, bool training) {
  const hooks::Hooks none;
  const hooks::ForwardOptions options{.training = training,
                                      .stretch_sums = training ? filter_.stretch_sums() : nullptr};
  const hooks::Stream stream = decoder_.forward({batch.inputs}, options, training ? none : filter_.evaluation_hooks());
  return decoder_.mean_loss(stream.hidden.flatten(0, 1), batch.targets.flatten());
}

double LanguageModelTask::accumulate_gradients(std::int64_t step) {
  const Place place = place_of(step);
  const std::int64_t context = recipe_.stages[place.stage].context;
  const std::int64_t sequences = recipe_.tokens_per_step / context, at_once = recipe_.tokens_at_once / context;
  const std::int64_t parts = sequences / at_once;
  const auto batch_from = [&](std::int64_t first) {
    std::vector<std::int64_t> begins;
    for (std::int64_t i = first; i < first + at_once; ++i) begins.push_back(begin_of(place, place.sequence + i));
    return windows_at(tokens_.training, tokens_.bos, context, begins);
  };
  // All parts of the step, so that their number changes nothing. The first layer is enough: its precision is asked for.
  filter_.prepare(step, {.batch = [&](const hooks::Hooks& hooks) {
                    for (std::int64_t first = 0; first < sequences; first += at_once)
                      decoder_.forward({batch_from(first).inputs}, {.stop_at_layer = 1}, hooks);
                  }});
  double loss = 0;
  for (std::int64_t first = 0; first < sequences; first += at_once) {
    const at::Tensor part = loss_of(batch_from(first), /*training=*/true) / static_cast<double>(parts);
    part.backward();
    loss += part.item<double>();
  }
  training::SingleReplica alone;
  filter_.learn_from(recipe_.tokens_per_step, alone);
  // While the filter warms up, its parameters have no effect and get no gradient.
  training::give_missing_gradients(models::decoder_parameters(config_, weights_, models::WeightRole::precision));
  return loss;
}

double LanguageModelTask::validation_loss() {
  const c10::InferenceMode inference;
  const HeldOutSequences sequences = held_out_sequences(recipe_, std::ssize(tokens_.validation));
  double sum = 0;
  for (const std::int64_t& begin : sequences.evaluated) {
    const Batch batch = windows_at(tokens_.validation, tokens_.bos, sequences.context, {&begin, 1});
    sum += loss_of(batch, /*training=*/false).item<double>();
  }
  filter_.record();
  return sum / static_cast<double>(sequences.evaluated.size());
}

}  // namespace gainlens::language
