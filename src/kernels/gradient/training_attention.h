#pragma once

#include <ATen/core/Tensor.h>

namespace gainlens::kernels {

/// Whether training_attention takes these tensors: float32 on the CPU, at most 256 dimensions, as many for keys as for
/// values.
bool training_attention_takes(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value);

/// softmax(scale Q K^T) V, and nothing else, for training on the CPU in float32. libtorch's autograd can differentiate
/// it with respect to query, key and value. A T x T tensor never exists: the forward pass keeps the inputs, the output,
/// and for each query its largest score and its total; the backward pass computes the weights again.
///
/// Heads of queries share kv heads: head h belongs to kv head h / (heads / kv heads). The bits depend neither on the
/// number of threads nor on chance. NaN and infinite inputs reach all that depends on them, and may also reach a few
/// results that a causal mask should keep apart from them.
///
/// @param query   [batch, head, query, head_dim], float32; the last dimension is contiguous or copied, as of all inputs
/// @param key     [batch, kv_head, key, head_dim]
/// @param value   [batch, kv_head, key, head_dim]
/// @param scale   of the products of queries and keys
/// @param causal  query i sees the keys 0..i; else all keys
/// @return [batch, head, query, head_dim], in memory as [batch, query, head, head_dim]; so are the gradients
/// @throws InvalidArgument  shapes do not fit each other, there is no key, training_attention_takes is false, or in the
///     backward pass a second derivative is asked for (create_graph)
at::Tensor training_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, double scale,
                              bool causal);

/// What is added to scores. Both have gradients and may be undefined.
struct ScoreBiases {
  at::Tensor key;             ///< [batch, key], float32: added to every score of the key
  at::Tensor distance_slope;  ///< [1]: added as many times as query and key are places apart
};

struct TrainedMoments {
  at::Tensor output;    ///< [batch, head, query, head_dim]: e
  at::Tensor n_eff;     ///< [batch, head, query]: 1 / sum p^2, at least 1
  at::Tensor residual;  ///< [batch, head, query, head_dim]: S = sum p (v - e)^2 of each dimension
};

/// Attention over softmax(scale Q K^T + biases) with its moments, all with gradients. S is a sum of squares of offsets
/// from e and does not cancel; it is kept for the backward pass, beside what training_attention() keeps. In the
/// backward pass, squares are those of offsets from the mean value of a head. A task holds the scores of a panel of
/// queries, [key, 2 vectors]. Everything else, and the errors: as training_attention().
TrainedMoments training_attention_moments(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                          double scale, bool causal, const ScoreBiases& biases = {});

}  // namespace gainlens::kernels
