#pragma once

#include "bft/filter_weights.h"
#include "core/json.h"
#include "hooks/hooks.h"
#include "models/checkpoint/named_tensor.h"
#include "training/replicas.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::training {

/// Site of a layer whose weights may be negative: |sum w| / sum |w| of each query and head, [batch, position, head].
/// Where it is below bft::EstimatorOptions::least_weight_share, the sum was raised to that share.
inline constexpr std::string_view balance_site = "attn.hook_weight_balance";

/// What the training of a filter asks of its model. Weights are those of the model: what is written into them acts.
class FilterHost {
 public:
  virtual ~FilterHost() = default;
  virtual const bft::Filter& armed_filter() const = 0;
  virtual std::int64_t head_dim() const = 0;
  virtual bft::InitialPrecisionWeights& initial_precision_weights() = 0;
  virtual std::vector<bft::FilterWeights*> layer_filter_weights() = 0;
  /// What no gradient changes, by name.
  virtual std::vector<models::NamedTensor> filter_constants() = 0;
  /// Takes the low-rank factors of the Jacobians from the weights as they are now, without gradients. Does nothing for
  /// other forms.
  virtual void refresh_jacobian() = 0;
  /// [layer] share of the squared singular values that the factors keep; empty without factors.
  virtual std::vector<double> jacobian_energy() const = 0;
  /// Whether attention weights may be negative; then the model has balance_site.
  virtual bool has_signed_weights() const { return false; }
};

/// Passes that a filter's training asks for besides those of the steps: without dropout, as in evaluation.
struct FilterPasses {
  /// Runs the sequences of the coming step, those of all processes, in one pass or several; at least the first layer.
  std::function<void(const hooks::Hooks&)> batch;
  /// Runs all training sequences, a part at a time. Returns the ids of each part's rows, in order. For `em` alone.
  std::function<std::vector<at::Tensor>(const hooks::Hooks&)> all = {};
};

/// What the training of a filter does besides gradients: the warm-up, the initial precision that follows from data, the
/// factors of the Jacobian, the running means for evaluation, and a record of each evaluation. For an arm without
/// precisions every function does nothing. Source: docs/bft.md, "Training".
class FilterTraining {
 public:
  /// @param host           must exist as long as this object
  /// @param refresh_every  steps between two computations of the factors, and of the tau of em: an epoch of a
  ///     recommender. A training that is resumed at a multiple of it has the bits of one that never stopped
  /// @param bases          tau_base of each id, which the model is given; id 0 is none of the data. Empty: 1 for each
  /// @param tokens         ids after those of the bases that are none of the data, such as a mask: their tau_base is 0
  FilterTraining(FilterHost& host, std::int64_t refresh_every, const std::vector<float>& bases = {},
                 std::int64_t tokens = 0);

  /// Sets, before a step, the share of the filter that is in force; before the first step with a share, tau_range; when
  /// their time has come, the factors of the Jacobian and the tau of em.
  /// @throws RunFailed  a precision is NaN (names the layer)
  void prepare(std::int64_t step, const FilterPasses& passes);
  /// The whole filter acts, in a model that has not been trained: tau_range and the factors of the Jacobian.
  /// @throws RunFailed  a precision is NaN (names the layer)
  void start_in_force(const FilterPasses& passes);
  /// Nothing of the filter acts: the model is the plain one.
  void take_out_of_force();
  /// Takes up what the passes of a step give: bft::FilterState::stretch_sums. Null if no running mean is kept.
  std::vector<at::Tensor>* stretch_sums();
  /// Adds the sums of a step's passes to the running means.
  /// @param positions  of this process
  void learn_from(std::int64_t positions, Replicas& replicas);
  /// Hooks for the passes of an evaluation. They collect what record() writes down, and change nothing.
  const hooks::Hooks& evaluation_hooks() const { return evaluation_; }
  /// Adds, after an evaluation, a point for each layer to every curve.
  /// @param replicas  of which each has evaluated a part; null: this process has evaluated all
  void record(Replicas* replicas = nullptr);
  /// Adds observers that throw RunFailed, naming the first layer whose precisions are NaN.
  void refuse_nan(hooks::Hooks& hooks) const;

  /// [evaluation, layer] by name of the curve: runfile::filter_curves(). NaN: does not exist, as while the filter warms
  /// up.
  const std::map<std::string, std::vector<double>>& curves() const { return curves_; }
  /// The curves as CSV with a header line: step, layer, and the curves in the order of their list. A NaN is an empty
  /// cell.
  std::string csv() const;
  /// Says, after the last evaluation, that almost all lambda_obs of a layer are at their upper bound, or half of the
  /// precisions of the stream. Empty if none is.
  std::string warning() const;

  Json notes() const;
  void restore(const Json& notes);

 private:
  /// What hooks have seen of a quantity of one layer.
  struct Sum {
    double sum = 0, count = 0;
    void add(const at::Tensor& values);
    double mean() const;  // NaN if nothing was seen
  };

  const bft::FilterOptions& options() const { return host_.armed_filter().options; }
  bool has_precision() const { return precision_.strength.defined(); }
  double share() const { return precision_.strength.item<double>(); }
  void observe_evaluation();
  /// Adds up what the processes have seen.
  void share_seen(Replicas& replicas);
  void start_initial_precision(const FilterPasses& passes);
  /// tau_range of the first layer (undefined for kinds of tau that have none), and of each that begins anew.
  std::vector<at::Tensor> ranges() const;
  /// Medians of lambda_obs in a batch, of the first layers.
  std::vector<double> median_observations(std::size_t layers, const FilterPasses& passes);
  void estimate_items(const FilterPasses& passes);  // em
  void restore_points(const Json& points);

  FilterHost& host_;
  bft::InitialPrecisionWeights& precision_;
  std::vector<bft::FilterWeights*> layers_;
  std::int64_t refresh_every_;
  at::Tensor bases_;               // [id]; undefined: 1 for each
  std::int64_t tokens_;            // the last ids
  std::int64_t steps_ = 0;         // steps begun
  double started_from_ = 0;        // precision of observations that the initial precision follows from; 0: not yet
  std::int64_t batches_seen_ = 0;  // by the running means
  std::vector<at::Tensor> stretch_sums_;
  hooks::Hooks evaluation_;
  std::map<std::pair<std::string, std::int64_t>, Sum> seen_;  // by curve and layer, since the last record
  std::map<std::string, std::vector<double>> curves_;
  std::vector<std::int64_t> recorded_at_;  // [evaluation]: steps begun
};

}  // namespace gainlens::training
