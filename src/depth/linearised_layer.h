#pragma once

#include "models/decoder/decoder_config.h"
#include "models/decoder/projection.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace gainlens::depth {

/// The Jacobian M of a feed-forward layer at each row of its input, as a sum of products that are never multiplied out:
/// of a gated layer W2 (diag(phi'(g) u) Wg + diag(phi(g)) Wu), of a plain one W2 diag(phi'(a)) W1, of a mixture the sum
/// over the chosen experts, each times its weight, and of an expert that every token passes and that has a score also
/// the part that goes through the score.
class LinearisedLayer {
 public:
  /// @param input    [row, width] what the layer reads
  /// @param experts  [row, expert] weights of the experts, 0 where one is not chosen; undefined without experts
  LinearisedLayer(const models::DecoderConfig& config, const models::LayerProjections& projections,
                  const at::Tensor& input, const at::Tensor& experts);

  /// M_ii of each row, [row, width].
  at::Tensor diagonal() const;
  /// M of one row, [width, width].
  at::Tensor matrix(std::int64_t row) const;
  /// M x of each row. @param x  [row, width]
  at::Tensor times(const at::Tensor& x) const;
  /// y^T M of each row. @param y  [row, width]
  at::Tensor transposed_times(const at::Tensor& y) const;

 private:
  /// One gated or plain layer, of all rows or of some.
  struct Part {
    at::Tensor gate, up, down;          // [neuron, width], [neuron, width], [width, neuron]; no gate: undefined
    at::Tensor gate_slopes, up_slopes;  // [row, neuron] derivatives of a neuron by what Wg and Wu give
    at::Tensor rows;                    // int64, those of the input; undefined: all
    at::Tensor share;                   // [row, 1] factor; undefined: 1
  };
  /// output slope weight^T: a score that multiplies an output.
  struct Score {
    at::Tensor output, slope, weight;  // [row, width], [row, 1], [width]
  };

  static Part part_of(const models::DecoderConfig& config, const models::Projection& gate, const models::Projection& up,
                      const models::Projection& down, const at::Tensor& input);
  void add_shared_expert(const models::DecoderConfig& config, const models::LayerProjections& projections,
                         const at::Tensor& input);
  template <typename Term>
  at::Tensor sum(const Term& term) const;

  at::Tensor zeros_;  // [row, width]
  std::vector<Part> parts_;
  std::vector<Score> scores_;
};

}  // namespace gainlens::depth
