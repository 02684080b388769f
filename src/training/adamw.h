#pragma once

#include "models/checkpoint/named_tensor.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::training {

/// Parameters that share their settings.
struct ParameterGroup {
  std::string name;
  std::vector<models::NamedTensor> parameters;  ///< leaves that require gradients; float32 or float64
  double learning_rate_factor = 1;              ///< on the common learning rate
  double weight_decay = 0;                      ///< decoupled: taken off the parameter, not added to its gradient
};

struct AdamWOptions {
  double learning_rate = 1e-3;  ///< peak
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
};

/// AdamW (Loshchilov and Hutter, 2019) over parameter groups, by libtorch's fused step; its state can be stored and put
/// back, bit for bit.
class AdamW {
 public:
  /// @throws InvalidArgument  a learning rate, beta, epsilon or decay out of its range; no parameters; a name twice
  AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options);

  void zero_gradients();
  /// Scales all gradients together to an L2 norm of at most `max_norm`; 0 leaves them as they are.
  /// @returns the norm before
  /// @throws RunFailed  the norm is NaN or infinite
  double clip_gradients(double max_norm);
  /// One step with the gradients that are there; a parameter without one is an InternalError.
  /// @param factor  of the schedule, on the learning rate
  void step(double factor);

  /// Parameters and both moments, "parameter.<name>", "mean.<name>", "square.<name>": references, not copies.
  std::map<std::string, at::Tensor> state() const;
  /// Takes in what state() gave after `steps` steps.
  /// @throws InvalidArgument  a tensor is missing, surplus or of another shape or type
  void restore(const std::map<std::string, at::Tensor>& state, std::int64_t steps);

 private:
  struct Moments {
    std::vector<at::Tensor> parameter, mean, square, steps;
  };

  std::vector<ParameterGroup> groups_;
  AdamWOptions options_;
  std::vector<Moments> moments_;  // [group]
};

}  // namespace gainlens::training
