#pragma once

#include "core/json.h"
#include "models/decoder/decoder.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::language {

/// Means over the positions and dimensions of one layer, after some step. NaN: does not exist.
struct FilterPoint {
  std::int64_t step = 0;  ///< number of steps done
  std::int64_t layer = 0;
  double precision = 0;              ///< lambda that enters the layer
  double observation_precision = 0;  ///< lambda_obs
  double gain = 0;                   ///< K
  double share_at_most = 0;          ///< share of lambda_obs at its upper bound
  double process_noise = 0;          ///< Q
  double stretch = 0;                ///< running mean of max((1 + J)^2, 0.01)
  double decay = 0;                  ///< rho
  double jacobian_energy = 0;        ///< share of the squared singular values that the low-rank form keeps
};

/// As CSV with a header line. A NaN is an empty cell.
std::string filter_csv(const std::vector<FilterPoint>& points);

/// What the training of a decoder's filter does besides gradients: the warm-up, the initial precision that follows from
/// data, the factors of the Jacobian, the running means for evaluation, and a record of each evaluation. Without a
/// filter every function does nothing. Source: docs/bft.md, "Training".
class FilterTraining {
 public:
  /// @param decoder, weights  the trained decoder and its tensors; must exist as long as this object
  /// @param refresh_every     steps between two computations of the factors. A training that is resumed at a multiple
  /// of
  ///     it has the bits of one that never stopped
  FilterTraining(models::Decoder& decoder, const models::DecoderConfig& config, models::DecoderWeights& weights,
                 std::int64_t refresh_every);

  /// Before a step: the share of the filter that is in force, tau_range before the first step with a share, and the
  /// factors of the Jacobian when their time has come.
  /// @param inputs  token ids [sequence, context] of the step
  /// @throws RunFailed  a precision is NaN (names the layer)
  void prepare(std::int64_t step, const at::Tensor& inputs);
  /// Hooks for the forward passes of a training step. They collect the stretch.
  const hooks::Hooks& training_hooks() const { return training_; }
  /// After the passes of a step: the running means take up what the hooks collected.
  void learn();
  /// Hooks for the forward passes of an evaluation. They collect what record() writes down.
  const hooks::Hooks& evaluation_hooks() const { return evaluation_; }
  /// After an evaluation: adds a point for each layer.
  void record();

  const std::vector<FilterPoint>& points() const { return points_; }
  Json notes() const;
  void restore(const Json& notes);

 private:
  struct Sum {
    at::Tensor values;  // [dimension], or a number
    double count = 0;   // positions, or numbers
  };

  void start_range(const at::Tensor& inputs);
  void observe(hooks::Hooks& hooks, std::string_view site, std::map<std::int64_t, Sum>& sums, bool by_dimension) const;

  models::Decoder& decoder_;
  const models::DecoderConfig& config_;
  models::DecoderWeights& weights_;
  std::int64_t refresh_every_;
  std::int64_t steps_ = 0;                                                          // steps done
  bool started_ = false;                                                            // tau_range has been set
  std::int64_t batches_seen_ = 0;                                                   // by the running means
  std::map<std::int64_t, Sum> stretch_, precision_, observation_, gain_, at_most_;  // by layer
  hooks::Hooks training_, evaluation_;
  std::vector<FilterPoint> points_;
};

}  // namespace gainlens::language
