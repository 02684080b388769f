#pragma once

#include "training/adamw.h"
#include "training/replicas.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::training {

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
