#pragma once

#include "bft/filter_options.h"
#include "core/json.h"
#include "core/knobs.h"
#include "hooks/hooked_model.h"
#include "kernels/gradient/packed_attention.h"
#include "recommend/arm.h"
#include "recommend/foreign_options.h"
#include "recommend/history_view.h"
#include "recommend/packed_sequences.h"
#include "recommend/weight_slot.h"
#include "training/filter_training.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// The contract between a recommender and what trains, ranks, stores and shows it. docs/developer-guide.md says how to
// add a backbone.

namespace gainlens::recommend {

struct BackboneKind;

/// The random part of a training step. All masks follow from these numbers (kernels/gradient/dropout.h).
struct TrainingNoise {
  double hidden_rate = 0;      ///< dropout of the embedding, and of what each part of a layer adds to the stream
  double attention_rate = 0;   ///< dropout of the attention weights
  std::uint64_t key = 0;       ///< another one for each step
  std::int64_t first_row = 0;  ///< positions of the step's batch before the first of these, if it is done in parts
};

/// What a layer computes its attention from, in a pass over packed histories: after the hooks.
struct SeenAttention {
  std::int64_t layer;
  const at::Tensor &query, &key, &value;           ///< [position, head, head_dim]
  const kernels::PackedAttentionOptions& options;  ///< with the biases that a filter adds to the scores
};
using AttentionWatcher = std::function<void(const SeenAttention&)>;

/// How a pass over packed histories runs.
struct RunOptions {
  /// A filter takes the Jacobian of this pass; else its running mean where the options ask for it.
  bool training = false;
  TrainingNoise noise = {};  ///< dropout of a training step
  /// [layer] of a training step: takes up the sums over positions that bft::FilterState names; null: not wanted.
  std::vector<at::Tensor>* stretch_sums = nullptr;
  /// Called in each layer that has one weight for all dimensions of a key's value, before the weights are computed.
  /// Null: nobody watches. Layers without such weights do not call it: they have no site `attn.hook_pattern`.
  const AttentionWatcher* watch = nullptr;
};

/// Rows whose dot product is the score of an item.
struct ScoreFactors {
  at::Tensor hidden;  ///< [row, n]
  at::Tensor head;    ///< [items, n]
};

/// What a model knows at the last position of each history: what it recommends from.
struct LastStates {
  at::Tensor hidden;  ///< [sequence, width] as Backbone::run() gives it
  /// [sequence, width] lambda' of the stream: after the update of the last layer, behind which nothing is predicted.
  /// Undefined: the model has no filter with a gain, or its filter is not in force.
  at::Tensor precision;
};

/// A line about a model, for `gainlens inspect`.
struct ModelFact {
  std::string name;  ///< with _ in place of spaces it is the key in JSON
  std::string text;
  Json value;
};

/// A model that recommends: it reads the histories of users and scores the items of a catalogue. It computes in the
/// type and on the device of its weights.
class Backbone : public hooks::HookedModel {
 public:
  virtual const BackboneKind& kind() const = 0;
  virtual HistoryView view() const = 0;
  virtual std::int64_t items() const = 0;  ///< of the catalogue: ids 1 to this number

  /// What the output head is applied to: the stream after the last norm. Hooks see rows as [1, position, ..].
  /// @param sequences  packed with view()
  /// @returns [position, width]
  virtual at::Tensor run(const PackedSequences& sequences, const RunOptions& options = {},
                         const hooks::Hooks& hooks = {}) const = 0;
  /// The last position of each history, for evaluation. A backbone with a filter gives its precision too.
  /// @param sequences  packed with view()
  virtual LastStates last_states(const PackedSequences& sequences) const;
  /// The output head, [items, width]: row i belongs to item i + 1.
  virtual at::Tensor head() const = 0;
  /// What is added to the score of each item, [items]; undefined: nothing.
  virtual at::Tensor head_bias() const { return {}; }
  /// The head as a product alone: a bias is one more column, beside a column of ones.
  /// @param hidden  [row, width]
  ScoreFactors score_factors(const at::Tensor& hidden) const;
  /// Mean cross-entropy over all items of the catalogue, with a gradient.
  /// @param hidden   [row, width]
  /// @param targets  int64 [row]: ids from 1
  virtual at::Tensor mean_loss(const at::Tensor& hidden, const at::Tensor& targets) const;

  /// Every weight, in one order: that of the checkpoint and of the optimiser.
  virtual std::vector<WeightSlot> slots() = 0;
  /// What config.json says. `BackboneKind::open` reads it.
  virtual OrderedJson document() const = 0;
  /// Calculates again what follows from the weights. Called after others have written into the tensors of slots().
  virtual void weights_changed() {}
  /// What the training of a filter asks of the model; null: the model has none.
  virtual training::FilterHost* filter() { return nullptr; }
  /// What `gainlens inspect` shows of the model besides its backbone, weights and data.
  virtual std::vector<ModelFact> facts() const = 0;

  /// The device of the head and of all other weights.
  at::Device device() const { return head().device(); }
};

/// What a model is made from.
struct ModelPlan {
  Json options = Json::object();  ///< values of the backbone's knobs; one that is absent has its default
  Arm arm = Arm::plain;
  bft::FilterOptions filter = {};
  std::int64_t items = 0;  ///< of the catalogue
};

/// How many numbers a training keeps, for estimates of memory.
struct ModelNumbers {
  double parameters = 0;    ///< with their gradients and the moments of the optimiser
  double one_position = 0;  ///< for the backward pass of one position of a batch
};

/// A model of another program.
struct ForeignModel {
  std::unique_ptr<Backbone> model;
  std::vector<std::string> items;  ///< [id - 1] names; empty: they are named by their ids
};

/// A way in which another program stores models of a backbone.
struct ForeignLayout {
  std::string_view name;  ///< of --layout
  ForeignModel (*open)(const std::filesystem::path& path, const ForeignOptions& options);
};

/// Settings with a name, for --preset.
struct Preset {
  std::string name;
  std::string help;
  Json changes;  ///< of the defaults, by key
};

/// A kind of model that can be trained: all that training, ranking, checkpoints and commands know of it.
struct BackboneKind {
  std::string name;  ///< of --backbone; config.json has model_type_of(name)
  std::string help;
  std::vector<Knob<Json>> knobs;  ///< of ModelPlan::options; erased_knobs() makes them
  /// @throws InvalidArgument  a model that cannot be made: numbers out of range, an arm that the backbone does not have
  void (*check)(const ModelPlan& plan, const std::string& where);
  HistoryView (*view)(const ModelPlan& plan);  ///< what the model sees, and what its training asks
  /// An untrained model. Its weights are leaf tensors in float32, with gradients but for the constants.
  std::unique_ptr<Backbone> (*make)(const ModelPlan& plan, std::uint64_t seed);
  /// A model with stored weights, for evaluation.
  /// @param config   the content of config.json, without the key 'data'
  /// @param where    names it in messages
  /// @param weights  is asked for each slot, after `config` was found right
  /// @throws InvalidArgument  what `config` or a weight says cannot be
  std::unique_ptr<Backbone> (*open)(const Json& config, const std::string& where, const WeightSource& weights);
  ModelNumbers (*memory)(const ModelPlan& plan);
  std::vector<ForeignLayout> layouts = {};
  Json defaults = Json::object();    ///< settings that begin with another value than elsewhere, by key
  std::vector<Preset> presets = {};  ///< beside those of all backbones
  double max_dropout = 1;            ///< a rate above it is refused
  /// Why a key of `knobs` changes nothing in such a model; empty: it acts. Null: all act in every arm.
  std::string (*why_idle)(const ModelPlan& plan, std::string_view key) = nullptr;
  std::string without_times = {};  ///< the option with which a model of this kind needs no times; empty: there is none
};

/// Every backbone; the first is the default.
const std::vector<BackboneKind>& backbones();
/// @throws InvalidArgument  no backbone has this name (nearest match named)
const BackboneKind& backbone_named(std::string_view name, const std::string& where);

/// The knobs of a configuration as those of a JSON object that holds their values.
template <typename Config>
std::vector<Knob<Json>> erased_knobs(std::span<const Knob<Config>> knobs) {
  std::vector<Knob<Json>> erased;
  for (const Knob<Config>& knob : knobs) {
    erased.push_back(
        {knob.key, knob.help,
         [knob](const Json& options) { return options.contains(knob.key) ? options.at(knob.key) : knob.get(Config()); },
         [knob](Json& options, const Json& value, const std::string& what) {
           Config checked;
           knob.set(checked, value, what);
           options[knob.key] = knob.get(checked);
         },
         knob.absent});
  }
  return erased;
}

}  // namespace gainlens::recommend
