#include "depth/feedforward_branch.h"

#include "core/check.h"
#include "depth/linearised_layer.h"
#include "hooks/hooks.h"
#include "models/decoder/feedforward.h"
#include "models/decoder/norm.h"

#include <ATen/ATen.h>

#include <optional>
#include <utility>

namespace gainlens::depth {
namespace {

/// A norm at each row: z, what it gives before its weight, and s, by which it divides. Its Jacobian is
/// (I - z z^T / d) / s for the norm without a mean, and (I - 1 1^T / d - z z^T / d) / s for the one with a mean.
struct NormAt {
  /// The same at one of its rows, which then stands for any number of them.
  NormAt at_row(std::int64_t row) const {
    NormAt one = *this;
    one.normalised = normalised.narrow(0, row, 1);
    one.deviation = deviation.narrow(0, row, 1);
    return one;
  }

  NormAt(const at::Tensor& rows, models::Norm kind, double epsilon)
      : normalised(models::normalised(rows, kind, epsilon)), centred(kind == models::Norm::layer) {
    const at::Tensor square =
        centred ? rows.var(/*dim=*/1, /*unbiased=*/false, /*keepdim=*/true) : rows.square().mean(1, /*keepdim=*/true);
    deviation = (square + epsilon).sqrt();
    width = static_cast<double>(rows.size(1));
  }

  /// v^T times the Jacobian, of each row.
  at::Tensor behind(const at::Tensor& v) const {
    at::Tensor rest = v - normalised * ((v * normalised).sum(1, /*keepdim=*/true) / width);
    if (centred) rest = rest - v.mean(1, /*keepdim=*/true);
    return rest / deviation;
  }

  at::Tensor normalised;  // [row, width]
  at::Tensor deviation;   // [row, 1]
  bool centred;
  double width;
};

}  // namespace

FeedForwardBranch::FeedForwardBranch(const models::DecoderConfig& config, std::int64_t layer,
                                     models::LayerWeights weights)
    : config_(config), layer_(layer), weights_(std::move(weights)), projections_(weights_, models::WeightUse::trained) {
  CHECK(!config.clipped_gate, "layer {}: the MLP clips its gate, and its Jacobian is not known", layer);
}

at::Tensor FeedForwardBranch::input(const at::Tensor& stream) const {
  if (!config_.pre_norm) return stream;
  return models::norm(stream, config_.norm, config_.norm_epsilon, weights_.mlp_norm, config_.norm_offset,
                      weights_.mlp_norm_bias);
}

at::Tensor FeedForwardBranch::expert_weights(const at::Tensor& stream) const {
  if (!config_.has_experts(layer_)) return {};
  at::Tensor seen;
  hooks::Hooks hooks;
  hooks.observe(hooks::block_site(layer_, "mlp.hook_expert_weights"),
                [&](const hooks::Site&, const at::Tensor& weights) { seen = weights.squeeze(0); });
  models::expert_feedforward(config_, projections_, layer_, input(stream).unsqueeze(0), hooks);
  return seen;
}

at::Tensor FeedForwardBranch::before_post_norm(const at::Tensor& input, const at::Tensor& experts) const {
  const at::Tensor rows = input.unsqueeze(0);
  hooks::Hooks hooks;
  if (!config_.has_experts(layer_))
    return models::dense_feedforward(config_, projections_, layer_, rows, {}, hooks).squeeze(0);
  hooks.replace(hooks::Glob(hooks::block_site(layer_, "mlp.hook_expert_weights").name),
                [&](const hooks::Site&, const at::Tensor&) { return experts.unsqueeze(0); });
  return models::expert_feedforward(config_, projections_, layer_, rows, hooks).squeeze(0);
}

at::Tensor FeedForwardBranch::output(const at::Tensor& stream, const at::Tensor& experts) const {
  at::Tensor fed = before_post_norm(input(stream), experts);
  if (config_.post_norm)
    fed = models::norm(fed, config_.norm, config_.norm_epsilon, weights_.mlp_post_norm, config_.norm_offset);
  return config_.residual_scale == 1 ? fed : fed * config_.residual_scale;
}

at::Tensor FeedForwardBranch::jacobian_diagonal(const at::Tensor& stream) const {
  const at::Tensor experts = expert_weights(stream), read = input(stream);
  const LinearisedLayer layer(config_, projections_, read, experts);
  at::Tensor found = layer.diagonal();
  std::optional<NormAt> before;
  at::Tensor weight;
  if (config_.pre_norm) {
    before.emplace(stream, config_.norm, config_.norm_epsilon);
    weight = weights_.mlp_norm + config_.norm_offset;
    // M diag(w) (I - [1 1^T / d] - z z^T / d) / s
    found = found * weight - before->normalised * layer.times(weight * before->normalised) / before->width;
    if (before->centred) found = found - layer.times(weight.expand_as(read)) / before->width;
    found = found / before->deviation;
  }
  if (config_.post_norm) {
    // The rows of the Jacobian so far that z^T and 1^T of the second norm meet.
    const auto row_of = [&](const at::Tensor& left) {
      const at::Tensor row = layer.transposed_times(left);
      return before ? before->behind(row * weight) : row;
    };
    const NormAt after(before_post_norm(read, experts), config_.norm, config_.norm_epsilon);
    found = found - after.normalised * row_of(after.normalised) / after.width;
    if (after.centred) found = found - row_of(at::ones_like(read)) / after.width;
    found = found / after.deviation * (weights_.mlp_post_norm + config_.norm_offset);
  }
  return found * config_.residual_scale;
}

at::Tensor FeedForwardBranch::carried(const at::Tensor& stream, const at::Tensor& variance) const {
  const at::Tensor experts = expert_weights(stream), read = input(stream);
  const LinearisedLayer layer(config_, projections_, read, experts);
  std::optional<NormAt> before, after;
  if (config_.pre_norm) before.emplace(stream, config_.norm, config_.norm_epsilon);
  if (config_.post_norm) after.emplace(before_post_norm(read, experts), config_.norm, config_.norm_epsilon);
  at::Tensor found = at::empty_like(variance);
  for (std::int64_t row = 0; row < stream.size(0); ++row) {
    at::Tensor jacobian = layer.matrix(row);
    if (before) jacobian = before->at_row(row).behind(jacobian * (weights_.mlp_norm + config_.norm_offset));
    if (after) {
      // The Jacobian of a norm before its weight is symmetric.
      jacobian =
          after->at_row(row).behind(jacobian.t()).t() * (weights_.mlp_post_norm + config_.norm_offset).unsqueeze(1);
    }
    jacobian = jacobian * config_.residual_scale;
    jacobian.diagonal().add_(1);
    found[row].copy_(at::mv(jacobian.square_(), variance[row]));
  }
  return found;
}

std::int64_t FeedForwardBranch::neurons() const {
  if (!config_.has_experts(layer_)) return config_.mlp_width;
  return config_.experts.per_token * config_.experts.width + config_.experts.shared_width;
}

}  // namespace gainlens::depth
