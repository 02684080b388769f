#pragma once

#include "kernels/linear/linear.h"
#include "models/decoder/decoder_weights.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace gainlens::models {

/// What the weights of a decoder are for.
enum class WeightUse {
  frozen,   ///< evaluation: projections are packed for the processor, in the memory of the weights where they are alone
  trained,  ///< the weights stay as they are, since an optimiser changes them; products have gradients
};

/// A linear layer: input weight^T + bias. With an adapter, the weight is W + scale B A; the sum is never made.
class Projection {
 public:
  Projection() = default;
  /// @param weight  [out, in]; undefined: there is no such layer
  /// @param bias    [out], may be undefined
  /// @param low_rank  of a trained projection; undefined: there is no adapter
  Projection(at::Tensor weight, at::Tensor bias, WeightUse use, LowRank low_rank = {});
  /// A frozen part of a stack of weights, packed in the memory of the stack. Nothing else may use the part afterwards.
  static Projection in_stack(const at::Tensor& weight, at::Tensor bias);

  bool defined() const { return plain_.defined() || packed_.defined(); }
  /// Whether weight and input can take the packed way: no gradient is asked for.
  bool is_packed_for(const at::Tensor& input) const;

  /// f(input weight^T + bias) + residual.
  /// @param input   [.., in]
  /// @param output  written to, if defined (only without gradients)
  at::Tensor operator()(const at::Tensor& input, kernels::Activation activation = kernels::Activation::none,
                        const at::Tensor& residual = {}, const at::Tensor& output = {}) const;

  /// Rows of the weight, [ids.., in]: for an embedding that is the head too.
  at::Tensor rows(const at::Tensor& ids) const;
  /// [out, in]; a copy if the weight is packed or has an adapter, which is in it.
  at::Tensor weight() const;
  const kernels::PackedWeight& packed() const { return packed_; }
  const at::Tensor& bias() const { return bias_; }

 private:
  friend std::vector<at::Tensor> projected_by(std::initializer_list<const Projection*> projections,
                                              const at::Tensor& input);
  /// Whether our products with gradients take the input.
  bool is_trained_for(const at::Tensor& input) const {
    return !is_packed_for(input) && input.is_cpu() && input.scalar_type() == at::kFloat;
  }
  at::Tensor base_weight() const;
  /// The part of an adapter that projections with the same A share: scale input A^T.
  at::Tensor inner(const at::Tensor& input) const;
  /// `base` plus what the adapter adds; without adapter `base` itself.
  at::Tensor adapted(const at::Tensor& base, const at::Tensor& input) const;
  at::Tensor adapted_from(const at::Tensor& base, const at::Tensor& inner) const;

  at::Tensor plain_;
  kernels::PackedWeight packed_;
  at::Tensor bias_;
  LowRank low_rank_;
};

/// The products of one input with several projections, without activation. If a gradient is asked for, the products add
/// up that of the input in one tensor.
std::vector<at::Tensor> projected_by(std::initializer_list<const Projection*> projections, const at::Tensor& input);

/// The projections of one layer. A part that the layer does not have is undefined.
struct LayerProjections {
  Projection query_latent, key_latent, key_rotated;
  Projection query, gate_score, key, value, output;
  Projection mlp_gate, mlp_up, mlp_down, router;
  at::Tensor router_correction;                                 ///< [expert]; may be undefined
  std::vector<Projection> expert_gate, expert_up, expert_down;  ///< [expert]
  Projection delta_query, delta_key, delta_value, delta_gate, delta_beta, delta_decay, delta_output;
  Projection convolution_gate, convolution_output_gate, convolution_input, convolution_output;
  Projection shared_gate, shared_up, shared_down, shared_score;

  LayerProjections() = default;
  /// Frozen projections are taken out of `weights`: the tensors there are undefined afterwards.
  LayerProjections(LayerWeights& weights, WeightUse use);
};

}  // namespace gainlens::models
