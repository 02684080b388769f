#include "sweep/sweep_chunk.h"

#include "core/check.h"
#include "models/decoder/attention_ops.h"
#include "sweep/chunk_reducer.h"
#include "sweep/likelihood.h"
#include "sweep/moments.h"
#include "sweep/one_sequence.h"
#include "sweep/sink_collector.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace gainlens::sweep {
namespace {

/// The statistics that a run stores. Fields that it does not store are not computed.
constexpr kernels::ReturnedFields stored_fields{
    .without_first_moments = false, .key_means = collected_keys, .min_key_mean = runfile::min_stored_mean};

/// Statistics in the layers that are measured, the usual attention in the others.
class MeasuredLayers : public hooks::AttentionOp {
 public:
  MeasuredLayers(const std::vector<std::int64_t>& layers, models::StatisticsAttention& statistics)
      : layers_(layers), statistics_(statistics) {}

  at::Tensor run(std::int64_t layer, const hooks::Qkv& qkv, const kernels::AttentionOptions& options) override {
    const bool measured = std::binary_search(layers_.begin(), layers_.end(), layer);
    return measured ? statistics_.run(layer, qkv, options) : plain_.run(layer, qkv, options);
  }
  hooks::ObservedAttention run_with_moments(std::int64_t layer, const hooks::Qkv& qkv,
                                            const kernels::AttentionOptions& options,
                                            const hooks::PrecisionBias& bias) override {
    const bool measured = std::binary_search(layers_.begin(), layers_.end(), layer);
    return measured ? statistics_.run_with_moments(layer, qkv, options, bias)
                    : plain_.run_with_moments(layer, qkv, options, bias);
  }

 private:
  const std::vector<std::int64_t>& layers_;
  models::StatisticsAttention& statistics_;
  models::UsualAttention plain_;
};

/// Calls `see(layer, tensor)` at one site of every measured layer.
void observe_layers(hooks::Hooks& hooks, const std::vector<std::int64_t>& layers, const std::string& rest,
                    const std::function<void(std::int64_t, const at::Tensor&)>& see) {
  for (const std::int64_t layer : layers) {
    hooks.observe(hooks::block_site(layer, rest),
                  [layer, see](const hooks::Site&, const at::Tensor& tensor) { see(layer, tensor); });
  }
}

/// One chunk on its way through the model, with the hooks that watch it and the statistics that they have collected.
class WatchedChunk {
 public:
  WatchedChunk(const hooks::AttentionLayout& layout, const data::Chunk& chunk, const SweepPlan& plan)
      : plan_(plan),
        tokens_(one_sequence(chunk.tokens)),
        sinks_(plan.layers, layout.heads, chunk.tokens),
        reducer_(plan.statistics ? plan.layers : std::vector<std::int64_t>{}, layout, chunk.length, plan.per_query),
        statistics_(
            [this](std::int64_t layer, kernels::QueryStatistics&& found) {
              reducer_.add(layer, found, value_);
              sinks_.see_attention(layer, found, statistics_.inputs());
              const auto rest = sinks_.without_sinks(layer, found, statistics_.inputs(), statistics_.options());
              reducer_.add_without_sinks(layer, rest.n_eff, rest.kalman_gain);
            },
            plan.kernel, stored_fields, plan.estimator),
        measured_(plan.layers, statistics_) {
    if (!plan.statistics) return;
    observe_layers(hooks_, plan.layers, "attn.hook_v",
                   [this](std::int64_t, const at::Tensor& seen) { value_ = seen.squeeze(0).transpose(0, 1); });
    observe_layers(hooks_, plan.layers, "hook_resid_pre",
                   [this](std::int64_t, const at::Tensor& hidden) { sinks_.see_stream_before(hidden); });
    observe_layers(hooks_, plan.layers, "hook_resid_post",
                   [this](std::int64_t layer, const at::Tensor& hidden) { sinks_.see_stream_after(layer, hidden); });
    if (!layout.gated) return;
    observe_layers(hooks_, plan.layers, "attn.hook_gate",
                   [this](std::int64_t layer, const at::Tensor& gate) { reducer_.add_gate(layer, gate.squeeze(0)); });
  }
  WatchedChunk(const WatchedChunk&) = delete;  // the hooks hold its address
  WatchedChunk& operator=(const WatchedChunk&) = delete;

  hooks::ForwardRequest request() {
    hooks::ForwardRequest request{&tokens_, {}, &hooks_};
    request.options.allow_extrapolation = plan_.allow_extrapolation;
    if (plan_.statistics) request.options.attention = &measured_;
    request.options.stop_at_layer = plan_.stop_at_layer().value_or(-1);
    return request;
  }
  void add_nll(double nll) { reducer_.add_nll(nll); }
  ChunkMeasurement finish() {
    ChunkMeasurement measured{.queries_without_keys = reducer_.queries_without_keys(),
                              .queries_undefined = reducer_.queries_undefined()};
    measured.shard = std::move(reducer_).finish();
    if (plan_.statistics) std::move(sinks_).finish(plan_.token_text, measured.shard);
    return measured;
  }

 private:
  const SweepPlan& plan_;
  hooks::Tokens tokens_;
  SinkCollector sinks_;
  ChunkReducer reducer_;
  at::Tensor value_;  // values of the running layer; the hook sees them before the attention of that layer
  models::StatisticsAttention statistics_;
  MeasuredLayers measured_;
  hooks::Hooks hooks_;
};

}  // namespace

std::vector<ChunkMeasurement> sweep_chunks(hooks::HookedModel& model, std::span<const data::Chunk> chunks,
                                           const SweepPlan& plan) {
  const c10::InferenceMode inference;
  std::vector<std::unique_ptr<WatchedChunk>> watched;
  std::vector<hooks::ForwardRequest> requests;
  for (const data::Chunk& chunk : chunks) {
    CHECK(chunk.length >= shortest_length,
          "lengths: {}; must be at least {} tokens, so that the last quarter holds a query", chunk.length,
          shortest_length);
    watched.push_back(std::make_unique<WatchedChunk>(model.layout(), chunk, plan));
    requests.push_back(watched.back()->request());
  }
  std::vector<hooks::Stream> streams = model.forward_all(requests);
  std::vector<ChunkMeasurement> measurements;
  for (std::size_t i = 0; i < watched.size(); ++i) {
    if (plan.nll) watched[i]->add_nll(mean_negative_log_likelihood(model, streams[i].hidden, chunks[i].tokens));
    measurements.push_back(watched[i]->finish());
    streams[i] = {};
  }
  return measurements;
}

ChunkMeasurement sweep_chunk(hooks::HookedModel& model, const data::Chunk& chunk, const SweepPlan& plan) {
  return std::move(sweep_chunks(model, {&chunk, 1}, plan).front());
}

}  // namespace gainlens::sweep
