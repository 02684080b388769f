#include "models/decoder/separate_attention.h"

#include <ATen/ATen.h>

namespace gainlens::models {
namespace {

/// The inputs of each sequence. Split at once, so that the gradient is put together once.
std::vector<hooks::Qkv> split(const hooks::Qkv& qkv, const std::vector<std::int64_t>& lengths) {
  const std::vector<at::Tensor> query = qkv.query.split_with_sizes(lengths, 2),
                                key = qkv.key.split_with_sizes(lengths, 2),
                                value = qkv.value.split_with_sizes(lengths, 2);
  std::vector<hooks::Qkv> sequences;
  for (std::size_t i = 0; i < lengths.size(); ++i) sequences.push_back({query[i], key[i], value[i]});
  return sequences;
}

/// The options of a sequence: biases by position begin anew.
kernels::AttentionOptions shortened(const kernels::AttentionOptions& options, std::int64_t positions) {
  kernels::AttentionOptions own = options;
  if (own.key_bias.defined()) own.key_bias = own.key_bias.slice(-1, 0, positions);
  if (own.distance_bias.defined()) own.distance_bias = own.distance_bias.slice(-1, 0, positions);
  return own;
}

}  // namespace

at::Tensor SeparateAttention::run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) {
  UsualAttention usual;
  if (lengths_.size() == 1) return usual.run(layer, qkv, options);
  std::vector<at::Tensor> outputs;
  for (const hooks::Qkv& own : split(qkv, lengths_))
    outputs.push_back(usual.run(layer, own, shortened(options, own.query.size(2))));
  return at::cat(outputs, 2);
}

hooks::ObservedAttention SeparateAttention::run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                                             const kernels::AttentionOptions& options,
                                                             const hooks::PrecisionBias& bias) {
  UsualAttention usual;
  if (lengths_.size() == 1) return usual.run_with_moments(layer, qkv, options, bias);
  std::vector<at::Tensor> key_biases;
  if (bias.key.defined()) key_biases = bias.key.split_with_sizes(lengths_, 1);
  std::vector<at::Tensor> outputs, n_effs, residuals;
  const std::vector<hooks::Qkv> sequences = split(qkv, lengths_);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    hooks::PrecisionBias own = bias;
    if (bias.key.defined()) own.key = key_biases[i];
    const hooks::ObservedAttention found =
        usual.run_with_moments(layer, sequences[i], shortened(options, lengths_[i]), own);
    outputs.push_back(found.output);
    n_effs.push_back(found.n_eff);
    residuals.push_back(found.residual);
  }
  return {at::cat(outputs, 2), at::cat(n_effs, 2), at::cat(residuals, 2)};
}

}  // namespace gainlens::models
