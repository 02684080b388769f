#pragma once

#include "models/checkpoint/named_tensor.h"
#include "training/replicas.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::training {

/// Parameters that share their settings.
struct ParameterGroup {
  std::string name;
  std::vector<models::NamedTensor> parameters;  ///< leaf tensors that require gradients; float32 or float64
  double learning_rate_factor = 1;              ///< multiplies the common learning rate
  double weight_decay = 0;                      ///< decoupled: shrinks the parameter, is not added to its gradient
};

/// The groups of a model: matrices, whose decay is `weight_decay`; norms and biases, of one dimension, without decay;
/// and the parameters of its precisions, if there are any, without decay and with a learning rate of their own.
/// @param precision_factor  factor on the learning rate of the precisions
std::vector<ParameterGroup> parameter_groups(const std::vector<models::NamedTensor>& weights,
                                             const std::vector<models::NamedTensor>& precisions, double weight_decay,
                                             double precision_factor);

/// Gives each parameter that has no gradient one of zeros: the pass of a step may leave out some, which AdamW refuses.
void give_missing_gradients(const std::vector<models::NamedTensor>& parameters);

struct AdamWOptions {
  double learning_rate = 1e-3;  ///< peak of the schedule
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
};

/// A process's part of the elements of all parameters, in the order of the groups: parts follow each other in the order
/// of the ranks, and differ in length by at most 1.
struct ParameterShare {
  std::int64_t rank = 0, size = 1;
};

/// Neighbouring elements of one parameter.
struct ParameterPiece {
  std::size_t group = 0, index = 0;   ///< of the parameter in its group
  std::int64_t first = 0, count = 0;  ///< elements

  /// The piece of a tensor of the parameter's size: the tensor itself if it is the whole, else flat. A view.
  /// @throws InternalError  a part of a tensor that is not contiguous
  at::Tensor of(const at::Tensor& tensor) const;
};

/// The pieces of a share, in the order of the groups.
std::vector<ParameterPiece> pieces_of(const std::vector<ParameterGroup>& groups, const ParameterShare& share);

/// AdamW (Loshchilov and Hutter, 2019) over parameter groups. Uses libtorch's fused step. Its state can be stored and
/// restored bit for bit. It may hold the moments of a share of the parameters alone, and then steps these alone.
class AdamW {
 public:
  /// @throws InvalidArgument  a learning rate, beta, epsilon or decay out of its range; no parameters
  /// @throws InternalError    a name twice; a parameter that is not a leaf tensor with gradients, or is to be divided
  ///     and not contiguous
  AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options, const ParameterShare& share = {});

  void zero_gradients();
  /// The gradients of all parameters, in the order of the groups. References, not copies: a parameter without a
  /// gradient gets one of zeros.
  std::vector<at::Tensor> gradients();
  /// Scales all gradients by one factor, so that their common L2 norm is at most `max_norm`; 0: no scaling.
  /// @returns the norm before scaling
  /// @throws RunFailed      the norm is NaN or infinite
  /// @throws InternalError  a parameter has no gradient
  double clip_gradients(double max_norm);
  /// Takes one step with the gradients stored in the parameters.
  /// @param factor  factor of the schedule on the learning rate
  /// @throws InternalError  a parameter has no gradient
  void step(double factor);

  /// Parameters and both moments, named "parameter.<name>", "mean.<name>", "square.<name>". References, not copies.
  /// @throws InternalError  it holds a share of the moments
  std::map<std::string, at::Tensor> state() const;
  /// Restores the state that state() returned after `steps` steps, as far as this optimiser holds it.
  /// @throws InvalidArgument  a tensor is missing, unknown, or of another shape or type
  void restore(const std::map<std::string, at::Tensor>& state, std::int64_t steps);

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  /// The moments of the pieces of its share, in their order: first the mean, then the square of each. References.
  std::vector<at::Tensor> moments() const;
  void set_steps(std::int64_t steps);

 private:
  struct Held {
    ParameterPiece piece;
    at::Tensor parameter, mean, square, steps;
  };

  std::vector<ParameterGroup> groups_;
  AdamWOptions options_;
  std::vector<Held> held_;  // in the order of the groups
};

/// AdamW of the processes that train one model together. Each holds all parameters. Either each holds all moments too,
/// and takes the same steps; or the moments are spread: each holds those of its share of the elements, steps this
/// share, and gives it to the others. Source: Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion
/// Parameter Models" (2020), stage 1. Of one process both are AdamW.
///
/// All processes call these functions in the same order. @throws ReplicaLost  every one of them
class SharedAdamW {
 public:
  /// @param replicas  must exist as long as this object
  /// @throws InvalidArgument, InternalError  as AdamW
  SharedAdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options, Replicas& replicas, bool spread_moments);

  void zero_gradients() { own_.zero_gradients(); }
  /// Adds up the shares of the loss, and of the gradients in the parameters, over the processes.
  /// @returns  the loss
  double sum(double loss);
  /// Does what AdamW::clip_gradients() does, with the gradients that sum() has left.
  double clip_gradients(double max_norm) { return own_.clip_gradients(max_norm); }
  /// Does what AdamW::step() does. Afterwards every process has the same parameters.
  void step(double factor);

  /// Does what AdamW::state() does, with the moments of all processes. Gradients are lost: their memory is needed.
  /// @returns  for rank 0; for the others nothing if the moments are spread
  std::map<std::string, at::Tensor> state();
  /// Does what AdamW::restore() does.
  /// @param state  of rank 0; not read in the others. Empty: every process gets the parameters that rank 0 has now
  void restore(const std::map<std::string, at::Tensor>& state, std::int64_t steps);

 private:
  std::vector<at::Tensor> parameter_pieces(std::int64_t rank) const;
  std::map<std::string, at::Tensor> with_moments_of_first(const std::vector<at::Tensor>& own) const;

  Replicas& replicas_;
  bool spread_;
  AdamW own_;
};

}  // namespace gainlens::training
