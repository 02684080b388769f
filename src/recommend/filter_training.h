#pragma once

#include "core/json.h"
#include "data/leave_one_out.h"
#include "recommend/sasrec.h"
#include "training/replicas.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// What the training of a filter does besides gradients: the warm-up, the initial precision that follows from data, the
/// factors of the Jacobian, the running means for evaluation, and a record of each epoch. For an arm without precisions
/// every function does nothing. Source: docs/bft.md, "Training".
class FilterTraining {
 public:
  /// Gives the model the tau_base of its items. The arguments must exist as long as this object.
  /// @param users            those that have positions to train at
  /// @param steps_per_epoch  above 0
  FilterTraining(SasRec& model, const data::LeaveOneOut& split, const std::vector<std::int64_t>& users,
                 std::int64_t steps_per_epoch);

  /// Before a step: the share of the filter that is in force; before the first step with a share, tau_range; at the
  /// first step of an epoch, the factors of the Jacobian and the tau of em.
  /// @param batch  the sequences of the step, those of all processes
  /// @throws RunFailed  the precisions of that step are NaN (names the layer)
  void prepare(std::int64_t step, const PackedSequences& batch);
  /// After the pass of a step: the running means take it up.
  /// @param positions  of this process
  void learn_from(std::int64_t positions, training::Replicas& replicas);
  /// The pass of a step.
  at::Tensor hidden_of_step(const PackedSequences& inputs, const TrainingNoise& noise);
  /// @throws RunFailed  names the first layer whose precisions are NaN in this pass; nothing if there is none
  void refuse_nan(const PackedSequences& inputs, const TrainingNoise& noise) const;
  /// After an epoch: adds a point to each curve.
  void record_epoch();
  /// @throws RunFailed  names the first layer whose precisions are NaN in this trace; nothing if there is none
  static void refuse_nan(const FilterTrace& trace);

  /// [epoch, layer] by name of the curve: runfile::filter_curves().
  const std::map<std::string, std::vector<double>>& curves() const { return curves_; }
  /// The share of lambda_obs at its upper bound, if it is almost all of some layer after the last epoch; else empty.
  std::string warning() const;

  Json notes() const;
  void restore(const Json& notes);

 private:
  double share() const;
  bool has_precision() const { return weights_.precision.strength.defined(); }
  void start_initial_precision(const PackedSequences& batch);
  void estimate_items();  // em
  /// The trace of sequences without dropout.
  FilterTrace trace_of(const PackedSequences& sequences) const;
  /// Training sequences of some users.
  PackedSequences sequences_of(std::int64_t first, std::int64_t last) const;

  SasRec& model_;
  SasRecWeights weights_;  // of the model: the same tensors
  const data::LeaveOneOut& split_;
  const std::vector<std::int64_t>& users_;
  std::int64_t steps_per_epoch_;
  double started_from_ = 0;        // precision of observations that the initial precision follows from; 0: not yet
  std::int64_t batches_seen_ = 0;  // by the running means
  FilterTrace of_step_;
  std::map<std::string, std::vector<double>> curves_;
};

}  // namespace gainlens::recommend
