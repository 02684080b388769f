#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"
#include "models/decoder/projection.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::depth {

/// What the feed-forward layer adds to the stream, as a function of each row of the stream that it reads: the norm
/// before it, the neurons or the chosen experts, the norm after it, and the factor on the result. Computes in float64.
///
/// The weights of experts are held fixed: the router chooses, and a choice has no derivative.
class FeedForwardBranch {
 public:
  /// @param config   must exist as long as this object
  /// @param weights  of the layer, in float64
  /// @throws InvalidArgument  a gate that clips, which has no Jacobian here
  FeedForwardBranch(const models::DecoderConfig& config, std::int64_t layer, models::LayerWeights weights);

  /// The weight of every expert for each row, [row, expert]; undefined for a layer without experts.
  /// @param stream  [row, width]
  at::Tensor expert_weights(const at::Tensor& stream) const;

  /// What the layer adds to the stream.
  /// @param stream   [row, width]
  /// @param experts  as expert_weights() gives them for this or a neighbouring stream; undefined without experts
  /// @returns [row, width]
  at::Tensor output(const at::Tensor& stream, const at::Tensor& experts) const;

  /// The diagonal of the Jacobian of output() with respect to the stream: J_ii for each row, without the Jacobian.
  /// @param stream  [row, width]
  /// @returns [row, width]
  /// Source: docs/analyses/depth.md, "The Jacobian".
  at::Tensor jacobian_diagonal(const at::Tensor& stream) const;

  /// What the whole Jacobian J does to independent errors of the stream: ((I + J) .* (I + J)) variance. Multiplies out
  /// J of one row at a time, which takes width^2 times neurons() products.
  /// @param stream    [row, width]
  /// @param variance  [row, width]
  /// @returns [row, width]
  at::Tensor carried(const at::Tensor& stream, const at::Tensor& variance) const;

  /// Neurons that a row goes through.
  std::int64_t neurons() const;

 private:
  at::Tensor input(const at::Tensor& stream) const;
  at::Tensor before_post_norm(const at::Tensor& input, const at::Tensor& experts) const;

  const models::DecoderConfig& config_;
  std::int64_t layer_;
  models::LayerWeights weights_;
  models::LayerProjections projections_;
};

}  // namespace gainlens::depth
