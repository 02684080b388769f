#include "core/check.h"
#include "kernels/gradient/recomputed.h"
#include "kernels/gradient/row_losses.h"
#include "models/decoder/decoder_pass.h"
#include "models/decoder/separate_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

// Passes of a training: sequences that lie one after another, layers whose activations are not kept, and losses.

namespace gainlens::models {

/// What a pass refers to. Layers that run again keep it until the backward pass.
struct Decoder::TrainingRun {
  TrainingRun(const at::Tensor& ids, const TrainingOptions& options)
      : tokens{ids.unsqueeze(0)},
        request{&tokens, {.training = true, .stretch_sums = options.stretch_sums}, &none},
        attention(options.lengths) {}
  TrainingRun(const TrainingRun&) = delete;

  hooks::Tokens tokens;
  hooks::Hooks none;
  hooks::ForwardRequest request;
  SeparateAttention attention;
};

at::Tensor Decoder::training_stream(const at::Tensor& ids, const TrainingOptions& options) {
  const std::vector<std::int64_t>& lengths = options.lengths;
  ASSERT(!lengths.empty() && *std::min_element(lengths.begin(), lengths.end()) > 0 && ids.dim() == 1 &&
             std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}) == ids.size(0),
         "training pass: the lengths do not fit the tokens");
  ASSERT(config_.attention_layers(config_.layers) == config_.layers, "training pass: a layer without attention");
  ASSERT(source_ == nullptr && followed_.empty(), "training pass: the decoder is not one that is trained");
  const auto run = std::make_shared<TrainingRun>(ids, options);
  check_ids(run->tokens.ids, config_.vocabulary);
  std::vector<PositionRange> ranges;
  for (const std::int64_t length : lengths) {
    check_positions(length, /*allow_extrapolation=*/false);
    ranges.push_back({0, length});
  }
  std::vector<Pass> passes;
  passes.push_back({run->request, run->none, run->attention, {}, {}, {}, {}, {}});
  place(passes[0], std::move(ranges));
  passes[0].hidden = first_stream(passes[0]);
  if (options.recompute) passes[0].recomputed = run;
  return run_layers(std::move(passes), 0).front().hidden[0];
}

/// The tensors that go from layer to layer and may need gradients.
std::array<at::Tensor*, 5> Decoder::carried(Pass& pass) {
  bft::FilterState& filter = pass.filter;
  return {&pass.hidden, &filter.precision, &filter.prior.base, &filter.prior.rest, &filter.key_bias};
}

/// block(), whose activations are not kept. The stream and the precision of the pass become those after the layer.
void Decoder::recomputed_block(const Layer& weights, std::int64_t layer, Pass& pass) const {
  ASSERT(!pass.filter.removed.defined(), "recomputed layer: a filter that takes away from the stream");
  const auto again = std::make_shared<Pass>(pass);
  std::vector<std::size_t> which;
  std::vector<at::Tensor> inputs;
  const std::array<at::Tensor*, 5> own = carried(pass), kept = carried(*again);
  for (std::size_t i = 0; i < own.size(); ++i) {
    *kept[i] = at::Tensor();
    if (!own[i]->defined()) continue;
    which.push_back(i);
    inputs.push_back(*own[i]);
  }
  const auto run = [this, &weights, layer, again, which](const std::vector<at::Tensor>& given) {
    Pass now = *again;
    const std::array<at::Tensor*, 5> to = carried(now);
    for (std::size_t i = 0; i < which.size(); ++i) *to[which[i]] = given[i];
    std::vector<at::Tensor> outputs{block(weights, layer, std::move(now.hidden), now)};
    if (now.filter.precision.defined()) outputs.push_back(now.filter.precision);
    again->filter.stretch_sums = nullptr;  // of a running mean, which counts this layer once
    return outputs;
  };
  std::vector<at::Tensor> outputs = kernels::recomputed(run, inputs);
  pass.hidden = std::move(outputs[0]);
  if (outputs.size() > 1) pass.filter.precision = std::move(outputs[1]);
}

at::Tensor Decoder::token_losses(const at::Tensor& normalized, const at::Tensor& targets) const {
  CHECK(!config_.head_bias, "the output head has a bias; models of this family are not trained");
  const at::Tensor scaled = config_.logit_scale == 1 ? normalized : normalized * config_.logit_scale;
  return kernels::row_losses(scaled, head_.weight(), targets, {.soft_cap = config_.logit_soft_cap});
}

}  // namespace gainlens::models
