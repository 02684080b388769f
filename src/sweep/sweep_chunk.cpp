#include "sweep/sweep_chunk.h"

#include "core/error.h"
#include "models/attention_ops.h"
#include "sweep/chunk_reducer.h"
#include "sweep/likelihood.h"
#include "sweep/one_sequence.h"
#include "sweep/windows.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <functional>

namespace gainlens::sweep {
namespace {

/// Statistics in the layers that are measured, libtorch's fused attention in the others.
class MeasuredLayers : public hooks::AttentionOp {
 public:
  MeasuredLayers(const std::vector<std::int64_t>& layers, models::StatisticsAttention& statistics)
      : layers_(layers), statistics_(statistics) {}

  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override {
    const bool measured = std::binary_search(layers_.begin(), layers_.end(), layer);
    return measured ? statistics_.run(layer, qkv, options) : plain_.run(layer, qkv, options);
  }

 private:
  const std::vector<std::int64_t>& layers_;
  models::StatisticsAttention& statistics_;
  models::SdpaAttention plain_;
};

/// Calls `see(layer, tensor)` at one site of every measured layer.
void observe_layers(hooks::Hooks& hooks, const std::vector<std::int64_t>& layers, const std::string& rest,
                    const std::function<void(std::int64_t, const at::Tensor&)>& see) {
  for (const std::int64_t layer : layers) {
    hooks.observe(hooks::Glob(hooks::block_site(layer, rest).name),
                  [layer, see](const hooks::Site&, const at::Tensor& tensor) { see(layer, tensor); });
  }
}

}  // namespace

ChunkMeasurement sweep_chunk(hooks::HookedModel& model, const data::Chunk& chunk, const SweepPlan& plan) {
  CHECK(chunk.length >= shortest_length, "lengths: {}; at least {} tokens are needed for a last quarter with a query in it", chunk.length,
        shortest_length);
  const c10::InferenceMode inference;
  const hooks::AttentionLayout& layout = model.layout();
  ChunkReducer reducer(plan.statistics ? plan.layers : std::vector<std::int64_t>{}, layout, chunk.length, plan.per_query);

  hooks::Hooks hooks;
  at::Tensor value;  // of the layer that is running: its values pass by before its attention
  models::StatisticsAttention statistics([&](std::int64_t layer, kernels::QueryStatistics&& found) { reducer.add(layer, found, value); });
  MeasuredLayers measured(plan.layers, statistics);
  hooks::ForwardOptions options;
  options.allow_extrapolation = plan.allow_extrapolation;
  if (plan.statistics) {
    options.attention = &measured;
    observe_layers(hooks, plan.layers, "attn.hook_v",
                   [&](std::int64_t, const at::Tensor& seen) { value = seen.squeeze(0).transpose(0, 1); });
    if (layout.gated) {
      observe_layers(hooks, plan.layers, "attn.hook_gate",
                     [&](std::int64_t layer, const at::Tensor& gate) { reducer.add_gate(layer, gate.squeeze(0)); });
    }
  }

  if (!plan.nll && !plan.layers.empty()) options.stop_at_layer = plan.layers.back() + 1;  // nothing later is looked at
  const hooks::Stream stream = model.forward(one_sequence(chunk.tokens), options, hooks);
  if (plan.nll) reducer.add_nll(mean_negative_log_likelihood(model, stream.hidden, chunk.tokens));
  const std::int64_t without_keys = reducer.queries_without_keys();
  return {std::move(reducer).finish(), without_keys};
}

}  // namespace gainlens::sweep
