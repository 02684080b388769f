#pragma once

#include "hooks/attention_layout.h"
#include "hooks/hooks.h"
#include "kernels/attention_statistics.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::hooks {

/// Queries, keys and values of one layer, rotated and normalised: what attention works on.
struct Qkv {
  at::Tensor query;  ///< [batch, head, position, head_dim]
  at::Tensor key;    ///< [batch, kv_head, position, head_dim]
  at::Tensor value;  ///< [batch, kv_head, position, head_dim]
};

/// What attention observes at each query: its estimate with the moments of its weights, as
/// kernels::DifferentiableAttention gives them.
struct ObservedAttention {
  at::Tensor output;    ///< [batch, head, position, head_dim] e = sum p v
  at::Tensor n_eff;     ///< [batch, head, position]
  at::Tensor residual;  ///< [batch, head, position, head_dim] S = sum p (v - e)^2
};

/// What the precision of tokens and their distance add to the scores of causal attention.
struct PrecisionBias {
  at::Tensor key;        ///< [batch, position], added to every score of the key; may be undefined
  at::Tensor log_decay;  ///< [1], added to a score as many times as query and key are places apart; may be undefined
};

/// Computes the softmax attention of a layer. Every layer that has it runs it. Implementations:
/// models/decoder/attention_ops.h.
class AttentionOp {
 public:
  virtual ~AttentionOp() = default;
  /// @param layer   original index of the layer
  /// @param options mask, scale, soft cap, sink logits of this layer
  /// @returns [batch, head, position, head_dim]
  virtual at::Tensor run(std::int64_t layer, const Qkv& qkv, const kernels::AttentionOptions& options) = 0;
  /// The same with biases and moments, which a model with the Bayesian filter asks for instead of run().
  /// @param bias  added to the biases of the options
  /// @throws InvalidArgument  the operation gives no moments
  virtual ObservedAttention run_with_moments(std::int64_t layer, const Qkv& qkv,
                                             const kernels::AttentionOptions& options, const PrecisionBias& bias);
};

struct Tokens {
  at::Tensor ids;  ///< [batch, position] int64
};

/// The residual stream.
struct Stream {
  at::Tensor hidden;  ///< [batch, position, width]
};

struct ForwardOptions {
  AttentionOp* attention = nullptr;  ///< null: the model's usual attention
  /// Run layers [0, stop_at_layer) and return the stream without the final norm. -1: run all layers.
  std::int64_t stop_at_layer = -1;
  /// A layer's `hook_pattern` above this size is refused, and `hook_logits` too.
  std::uint64_t pattern_memory_bytes = std::uint64_t{1} << 30;
  bool allow_extrapolation = false;  ///< allow more positions than the model was made for; else they are an error
  /// For a training step. A Bayesian filter takes the stretch of each token instead of its running mean.
  bool training = false;
  /// Of a training step with a filter, [layer]: takes up the sums over positions of the stretch, max((1 + J)^2, 0.01),
  /// [width], without gradients. Null: not wanted.
  std::vector<at::Tensor>* stretch_sums = nullptr;
};

/// One forward pass to run.
struct ForwardRequest {
  const Tokens* tokens = nullptr;
  ForwardOptions options;
  const Hooks* hooks = nullptr;
};

/// Refuses hooks on logits_site() that cannot be served. A model calls this before it runs all of its layers.
/// @param vocabulary  number of logits of a position
/// @throws InvalidArgument  one that replaces them, or logits above ForwardOptions::pattern_memory_bytes
void check_logits_hooks(const ForwardRequest& request, std::int64_t vocabulary, at::ScalarType dtype);

/// A model that calls the hooks at its sites while it runs. For evaluation only, unless the caller enables gradients.
class HookedModel {
 public:
  virtual ~HookedModel() = default;
  /// @returns the residual stream after the final norm (or before layer `stop_at_layer`)
  /// @throws InvalidArgument  ids outside the vocabulary, more positions than the model has, a hook glob that cannot be
  ///     served
  /// @throws RunFailed        NaN or infinity in the stream (names the first layer)
  virtual Stream forward(const Tokens& tokens, const ForwardOptions& options, const Hooks& hooks) = 0;
  /// Runs several forward passes. Each gives the same result as if it ran alone. A model may run them together, layer
  /// by layer.
  virtual std::vector<Stream> forward_all(std::span<const ForwardRequest> requests) {
    std::vector<Stream> streams;
    for (const ForwardRequest& request : requests)
      streams.push_back(forward(*request.tokens, request.options, *request.hooks));
    return streams;
  }
  /// Logits [.., vocabulary] of a normalised stream [.., width]; call it on blocks of positions to bound memory.
  virtual at::Tensor unembed(const at::Tensor& normalized) = 0;
  /// Negative log likelihood of one target for each row of a normalised stream, in nats. By default through unembed, a
  /// block of rows at a time. A model may compute it without ever storing logits.
  /// @param normalized  [row, width]
  /// @param targets     int64 [row]
  /// @returns float64 [row]; NaN or infinite where a logit is
  virtual at::Tensor target_losses(const at::Tensor& normalized, const at::Tensor& targets);
  virtual std::vector<SiteShape> sites() const = 0;
  virtual const AttentionLayout& layout() const = 0;
};

}  // namespace gainlens::hooks
