#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace gainlens::hooks {

/// Describes the attention of a model to callers that read statistics.
struct AttentionLayout {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;                 ///< if layers differ, the largest number
  std::vector<std::int64_t> layer_kv_heads;  ///< per layer, each a divisor of kv_heads; empty: kv_heads in all
  std::int64_t head_dim = 0;         ///< of values: d of docs/method.md. Queries and keys may have another number
  std::int64_t max_positions = 0;    ///< what the model was made for
  std::vector<std::int64_t> window;  ///< per layer; 0: global
  bool gated = false;
  bool sink_logits = false;
  std::vector<bool> sink_layers;  ///< with sink_logits: per layer, whether its heads have one; empty: all have
  bool filtered = false;  ///< precisions of a Bayesian filter (BFT) add to the scores, and its gain scales the result
  /// Per layer, whether it has linear attention by the gated delta rule, or short convolutions. Such a layer has no
  /// attention weights: it does not run an AttentionOp and fires no site `attn.*`. Empty: no layer is one.
  std::vector<bool> delta, convolution;

  bool has_delta(std::int64_t layer) const { return !delta.empty() && delta.at(static_cast<std::size_t>(layer)); }
  bool has_convolution(std::int64_t layer) const {
    return !convolution.empty() && convolution.at(static_cast<std::size_t>(layer));
  }
  std::int64_t kv_heads_of(std::int64_t layer) const {
    return layer_kv_heads.empty() ? kv_heads : layer_kv_heads.at(static_cast<std::size_t>(layer));
  }
  bool has_sink_logits(std::int64_t layer) const {
    return sink_logits && (sink_layers.empty() || sink_layers.at(static_cast<std::size_t>(layer)));
  }
  /// Whether the layer has attention weights.
  bool attends(std::int64_t layer) const { return !has_delta(layer) && !has_convolution(layer); }
  /// "global", "window:512", "gated delta rule" or "short convolution".
  std::string kind(std::int64_t layer) const {
    if (has_delta(layer)) return "gated delta rule";
    if (has_convolution(layer)) return "short convolution";
    const std::int64_t visible = window.at(static_cast<std::size_t>(layer));
    return visible == 0 ? "global" : "window:" + std::to_string(visible);
  }
  /// The kind of every layer.
  std::vector<std::string> kinds() const {
    std::vector<std::string> all;
    for (std::int64_t layer = 0; layer < std::ssize(window); ++layer) all.push_back(kind(layer));
    return all;
  }
};

}  // namespace gainlens::hooks
