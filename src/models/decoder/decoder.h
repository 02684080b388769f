#pragma once

#include "bft/feedforward_jacobian.h"
#include "bft/filter_pass.h"
#include "hooks/hooked_model.h"
#include "models/decoder/decoder_config.h"
#include "models/decoder/decoder_weights.h"
#include "models/decoder/feedforward.h"
#include "models/decoder/last_query.h"
#include "models/decoder/projection.h"

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::models {

class KeyValueCache;
struct PositionRange;
struct RopeTables;

/// New tokens of a sequence.
struct Extension {
  KeyValueCache* cache = nullptr;     ///< of the tokens before them; it holds these too afterwards
  std::span<const std::int64_t> ids;  ///< at least one
};

/// What a training pass asks for.
struct TrainingOptions {
  /// Of sequences that lie one after another in the ids: none sees another, and each begins at position 0.
  std::vector<std::int64_t> lengths;
  /// Of each layer only what enters it is kept; the backward pass runs the layer again, to the same bits.
  bool recompute = false;
  std::vector<at::Tensor>* stretch_sums = nullptr;  ///< as hooks::ForwardOptions
};

/// Gives the weights of one layer when the forward pass reaches it. For models that are not held in memory.
class LayerSource {
 public:
  virtual ~LayerSource() = default;
  /// @throws InvalidArgument  as load_checkpoint
  virtual LayerWeights load(std::int64_t layer) = 0;
};

/// A decoder whose behaviour depends only on its configuration. It computes in the dtype of its weights; normalisation
/// runs in float32 for narrower types. No operation changes in place what a gradient needs.
///
/// Sites have the names and layouts of TransformerLens. `sites()` lists them with their shapes. Details that a name
/// does not tell:
/// - `hook_embed` is the tokens after the embedding's scale; `hook_pos_embed` is what learned positions add. Both are
///   before the embedding's norm.
/// - `ln1.hook_normalized`, `ln2.hook_normalized` and `ln_final.hook_normalized` are before the norm's weight and bias;
///   those of TransformerLens' LayerNorm are after them. `ln1_post` and `ln2_post` are the same of the norms after
///   attention and MLP; `hook_attn_out` and `hook_mlp_out` are the results of these norms.
/// - `attn.hook_q` and `hook_k` are projected (and clipped), before their norm and rotation; `hook_rot_q` and
///   `hook_rot_k` are after both and exist only in a model with rotary position embedding.
/// - With latent attention, `attn.hook_k` and `attn.hook_v` are what is expanded for every head. The rotated dimensions
///   of queries and keys come last, half by half.
/// - A layer of the gated delta rule or of short convolutions has no site `attn.*`: it has no attention weights.
/// - `attn.hook_z` is the result of attention before the gate. `attn.hook_gate` is the sigmoid of the score, which then
///   multiplies z.
/// - `attn.hook_result` is what each head adds to the stream (after the gate, without bias, norm and a gain behind
///   W_O). If it is replaced, the output of attention is the sum of the replacement over heads.
/// - `attn.hook_pattern`, if observed, is computed in addition to the attention operation, whose output is used. If it
///   is replaced, the layer's output is the new pattern times the values, and the attention operation does not run in
///   this layer.
/// - `mlp.hook_expert_weights` exists in a layer with experts, in place of the sites of the neurons.
/// - `hook_resid_mid` does not exist if attention and MLP read the same stream.
/// - `hook_logits` is what unembed() gives of the result: after the final norm, the output head, the scale of the
/// logits
///   and their soft cap. It can be observed and not replaced.
/// - With a filter: `hook_precision` is lambda of the stream that enters the layer, `attn.hook_observation_precision`
///   and `attn.hook_gain` are lambda_obs and K; `attn.hook_z` is the estimate before the gain. A gain that acts behind
///   W_O has the shape of the stream, unless the heads together are as wide. `mlp.hook_stretch` is
///   max((1 + J)^2, 0.01) of each token, and fires where the layer computes it. None of them fires while the strength
///   of the filter is 0.
class Decoder : public hooks::HookedModel {
 public:
  /// Frozen projections are packed for the processor: in place if nobody else holds the tensor, else into a copy.
  /// @param weights  hand them over (std::move) if they are frozen, so that memory holds them once
  /// @throws InternalError    weights that do not fit the configuration
  /// @throws InvalidArgument  as rope_frequencies
  Decoder(DecoderConfig config, DecoderWeights weights, WeightUse use = WeightUse::frozen);
  /// @param outer   the weights outside the layers
  /// @param source  asked for each layer in turn
  /// @throws InternalError, InvalidArgument  as above
  Decoder(DecoderConfig config, DecoderWeights outer, std::unique_ptr<LayerSource> source);
  ~Decoder() override;

  hooks::Stream forward(const hooks::Tokens& tokens, const hooks::ForwardOptions& options,
                        const hooks::Hooks& hooks) override;
  /// Runs every request through a layer before the next layer begins. So weights that come from a source are read once
  /// for all requests. The bits of each result are those of forward().
  std::vector<hooks::Stream> forward_all(std::span<const hooks::ForwardRequest> requests) override;
  /// Continues a forward pass before a layer, from the stream that `hook_resid_pre` showed there. The sites of earlier
  /// layers and of the embedding do not fire. What comes out has the bits of a whole pass in which nothing changed
  /// before this layer. Requests go through each layer together, as in forward_all().
  /// @param layer   0 to the number of layers; with that number only the final norm runs
  /// @param hidden  [batch, position, width], of the tokens of every request
  /// @throws InternalError    the decoder has a filter, whose precision is not in the stream; another shape
  /// @throws InvalidArgument, RunFailed  as forward()
  std::vector<hooks::Stream> forward_from(std::int64_t layer, const at::Tensor& hidden,
                                          std::span<const hooks::ForwardRequest> requests);
  /// Continues sequences by further tokens, all sequences together. The plain pass over a whole sequence gives the same
  /// stream, up to rounding: forward() is the oracle of this function. No site fires. To be called without gradients.
  ///
  /// With longrope the frequencies of all positions change where a sequence becomes longer than the original length of
  /// the model. There the whole sequence is computed again.
  /// @param extensions  each with a cache of its own, made for this decoder. A cache may be empty
  /// @param see  is called with the statistics of the last query of every sequence; null: none are computed. They
  ///     change no bit of the stream
  /// @returns [sequence, width] the stream of the last token of each, after the final norm
  /// @throws InvalidArgument, RunFailed  as forward(). Then the caches must be cleared before they are used again
  /// @throws InternalError  the decoder follows a filter that it does not have
  at::Tensor extend(std::span<const Extension> extensions, bool allow_extrapolation = false,
                    const SeeLastQuery& see = nullptr);
  at::Tensor unembed(const at::Tensor& normalized) override;
  /// The final norm of a stream of any layer, as forward() ends.
  at::Tensor final_normed(const at::Tensor& hidden) const;
  /// What the final norm and the output head multiply a normalised stream n by, in float64: before the soft cap, the
  /// logit of the token of row i is sum_w rows[i, w] (norm_weight[w] n[w]) + constant[i].
  struct OutputRows {
    at::Tensor norm_weight;  ///< [width] with its offset
    at::Tensor rows;         ///< [token, width] with the scale of the logits
    at::Tensor constant;     ///< [token] from the biases of norm and head
  };
  /// @param ids  int64 [token]
  OutputRows output_rows(const at::Tensor& ids) const;
  at::Tensor target_losses(const at::Tensor& normalized, const at::Tensor& targets) override;
  /// Mean negative log likelihood of the targets, with a gradient: the loss of a training step. No logits are kept.
  /// @param normalized  [row, width]
  /// @param targets     int64 [row]
  at::Tensor mean_loss(const at::Tensor& normalized, const at::Tensor& targets) const;
  /// The stream of a training pass after the final norm. No site fires.
  /// @param ids  int64 [position]
  /// @returns [position, width]
  /// @throws InvalidArgument, RunFailed  as forward()
  at::Tensor training_stream(const at::Tensor& ids, const TrainingOptions& options);
  /// Negative log likelihood of each target, with a gradient: for losses of a few tokens (mean_loss() is for all).
  /// @param normalized  [row, width]
  /// @param targets     int64 [row]
  /// @returns [row], float32 or wider
  at::Tensor token_losses(const at::Tensor& normalized, const at::Tensor& targets) const;
  /// Lets the precision of a filter go along with the stream of a frozen decoder that has none. Its gain does not act:
  /// no bit of the stream changes. The sites of a filter exist from now on. Its weights are those before a training;
  /// the precision of every token is tau_range + ln 2 with `content`, and the Jacobian is that of each token.
  /// @param range  tau_range
  /// @throws InvalidArgument  the decoder has a part that the filter does not know, or a filter
  void follow_filter(const bft::FilterOptions& options, double range);
  /// Computes the factors of the low-rank Jacobians from the weights as they are now, without gradients. The optimiser
  /// of a trained decoder does not change them: call it from time to time. Does nothing for other forms.
  void refresh_jacobian();
  /// Share of the squared singular values that the factors of a layer keep, the smaller of its two; empty if there are
  /// no factors.
  std::vector<double> jacobian_energy() const;
  std::vector<hooks::SiteShape> sites() const override;
  const hooks::AttentionLayout& layout() const override { return layout_; }
  const DecoderConfig& config() const { return config_; }

 private:
  struct Pass;         // the state of one request during the pass
  struct TrainingRun;  // what the pass of a training refers to
  struct Layer {
    LayerProjections projections;
    LayerWeights rest;  // norms and the like
  };

  Decoder(DecoderConfig config, DecoderWeights weights, WeightUse use, std::unique_ptr<LayerSource> source);
  static Layer make_layer(LayerWeights weights, WeightUse use);

  void check_request(const hooks::ForwardRequest& request) const;
  void check_positions(std::int64_t positions, bool allow_extrapolation) const;
  void check_pattern_memory(const hooks::ForwardRequest& request) const;
  std::int64_t last_layer(const hooks::ForwardOptions& options) const;

  Pass prepared(const hooks::ForwardRequest& request, hooks::AttentionOp& fused) const;
  void place(Pass& pass, std::vector<PositionRange> ranges) const;
  RopeTables rotations(const RopeConfig& rope, const std::vector<PositionRange>& ranges) const;
  bool begins_anew(std::int64_t before, std::int64_t positions) const;
  at::Tensor first_stream(Pass& pass) const;
  std::vector<hooks::Stream> run_layers(std::vector<Pass> passes, std::int64_t first);
  hooks::Stream finish(const Pass& pass) const;
  at::Tensor logits_of(const at::Tensor& normalized) const;
  at::Tensor normed(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const hooks::Site& site,
                    const Pass& pass) const;
  at::Tensor embedded(const at::Tensor& ids) const;
  bool adds_in_product(const hooks::Site& site, const Pass& pass) const;
  at::Tensor block(const Layer& weights, std::int64_t layer, at::Tensor hidden, Pass& pass) const;
  at::Tensor attention(const Layer& weights, std::int64_t layer, const at::Tensor& input, const at::Tensor& residual,
                       Pass& pass) const;
  at::Tensor without_attention(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                               const at::Tensor& residual, const Pass& pass) const;
  kernels::AttentionOptions attention_options(std::int64_t layer, const Pass& pass) const;
  hooks::Qkv projected(const Layer& weights, std::int64_t layer, const at::Tensor& input, const Pass& pass) const;
  hooks::Qkv expanded(const Layer& weights, std::int64_t layer, const at::Tensor& input, const Pass& pass) const;
  at::Tensor inner_normed(const at::Tensor& x, const at::Tensor& weight) const;
  at::Tensor positioned(const at::Tensor& heads, const at::Tensor& weight, std::int64_t layer, std::string_view site,
                        const Pass& pass) const;
  at::Tensor weighted_values(const at::Tensor& sink_logit, std::int64_t layer, const hooks::Qkv& qkv,
                             const Pass& pass) const;
  at::Tensor with_output_gate(const Projection& score, std::int64_t layer, const at::Tensor& z, const at::Tensor& input,
                              const Pass& pass) const;
  at::Tensor output_projection(const Projection& output, std::int64_t layer, const at::Tensor& z,
                               const at::Tensor& residual, const Pass& pass) const;

  // Training: decoder_training.cpp
  static std::array<at::Tensor*, 5> carried(Pass& pass);
  void recomputed_block(const Layer& weights, std::int64_t layer, Pass& pass) const;

  // The filter: decoder_filter.cpp
  class LayerSites;
  void start_filter(WeightUse use);
  std::vector<bft::JacobianFactors> factors_of(const Layer& weights) const;
  void begin_filter(Pass& pass, const at::Tensor& ids, const at::Tensor& embedded) const;
  const bft::FilterWeights& filter_weights(const Layer& weights, std::int64_t layer) const;
  /// Whether the layer differs from that of a plain decoder, or its precision is followed.
  bool filters(const Pass& pass) const;
  bool gains_in_stream(const Pass& pass) const;
  /// What attention gives the stream, with its gain.
  at::Tensor gained(const Layer& weights, std::int64_t layer, const at::Tensor& attended, const at::Tensor& input,
                    Pass& pass) const;
  /// factor e, or e if the gain acts in the stream; [batch, position, head, head_dim].
  at::Tensor filtered_values(const Layer& weights, std::int64_t layer, const at::Tensor& input, Pass& pass) const;
  hooks::ObservedAttention observed(std::int64_t layer, const hooks::Qkv& qkv, const bft::ScoreBiases& biases,
                                    const Pass& pass) const;
  at::Tensor followed_values(const Layer& weights, std::int64_t layer, const at::Tensor& input, Pass& pass) const;
  at::Tensor filtered_feedforward(const Layer& weights, std::int64_t layer, const at::Tensor& input,
                                  const at::Tensor& residual, Pass& pass) const;
  at::Tensor jacobian(const Layer& weights, std::int64_t layer, const PreActivations& seen) const;

  DecoderConfig config_;
  bft::Filter filter_;      // that of the configuration, or the one that is followed
  at::TensorOptions like_;  // type and device of weights and activations
  DecoderWeights weights_;  // without layers, and without what is packed
  Projection head_;         // the embedding too, if it is tied and packed
  std::vector<Layer> layers_;
  std::int64_t runnable_layers_ = 0;  // the first ones may be all that was loaded
  std::unique_ptr<LayerSource> source_;
  hooks::AttentionLayout layout_;
  std::vector<std::vector<bft::JacobianFactors>> factors_;  // [layer]: of gate and up, or of up; low-rank form
  std::vector<bft::FilterWeights> followed_;  // [layer] of a filter that the decoder does not have; else empty
};

}  // namespace gainlens::models
