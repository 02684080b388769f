// Attention with all statistics against libtorch's fused attention and against holding the weights, on the same tensors in one run:
//   gainlens_bench_attention [threads]
// Prints milliseconds of each, their ratio to the fused attention, and the bytes each allocates at its peak.

#include "kernels/attention_statistics.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <c10/core/Allocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

namespace gainlens::kernels {
namespace {

constexpr std::int64_t heads = 16, head_dim = 128;

struct Inputs {
  at::Tensor query, key, value;  // [head, position, head_dim]
};

Inputs inputs_of(std::int64_t length) {
  at::manual_seed(1);
  const auto tensor = [&] { return at::randn({heads, length, head_dim}); };
  return {tensor(), tensor(), tensor()};
}

at::Tensor fused(const Inputs& in) {
  return at::scaled_dot_product_attention(in.query.unsqueeze(0), in.key.unsqueeze(0), in.value.unsqueeze(0), {}, 0, /*is_causal=*/true);
}

/// What one does without a streaming kernel: the weights of a head as a T x T tensor, reduced to n_eff, entropy, e and S.
at::Tensor materialised(const Inputs& in) {
  const std::int64_t length = in.query.size(1);
  const at::Tensor hidden = at::ones({length, length}, at::TensorOptions(at::kBool)).triu_(1);
  at::Tensor output = at::empty_like(in.query);
  for (std::int64_t head = 0; head < heads; ++head) {
    const at::Tensor scores = at::mm(in.query[head], in.key[head].t()).div_(std::sqrt(static_cast<double>(head_dim)));
    const at::Tensor p = scores.masked_fill_(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
    const at::Tensor n_eff = p.square().sum(-1).reciprocal_();
    benchmark::DoNotOptimize(at::xlogy(p, p).sum(-1));
    const at::Tensor estimate = at::mm(p, in.value[head]);
    const at::Tensor residual = at::mm(p, in.value[head].square()).sub_(estimate.square());
    benchmark::DoNotOptimize((n_eff.unsqueeze(1) + 1).div(residual + 1.0 / head_dim).mean(-1));
    output[head].copy_(estimate);
  }
  return output;
}

/// Bytes that libtorch's CPU allocator hands out, at their peak.
class PeakBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) override {
    held_ += bytes;
    peak_ = std::max(peak_.load(), held_.load());
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::int64_t peak() const { return peak_; }

 private:
  std::atomic<std::int64_t> held_ = 0, peak_ = 0;
};

template <typename Work>
double peak_megabytes(const Work& work) {
  const auto counter = std::make_shared<PeakBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return static_cast<double>(counter->peak()) / (1 << 20);
}

template <typename Work>
double seconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// One iteration runs all three in turn, so that a slow moment of the machine hits each.
void attention(benchmark::State& state) {
  const c10::InferenceMode inference;
  const Inputs in = inputs_of(state.range(0));
  AttentionPlan plan(AttentionOptions{});
  const auto ours = [&] { benchmark::DoNotOptimize(attention_statistics(plan, in.query, in.key, in.value)); };
  const auto theirs = [&] { benchmark::DoNotOptimize(fused(in)); };
  const auto naive = [&] { benchmark::DoNotOptimize(materialised(in)); };
  const double ours_peak = peak_megabytes(ours), theirs_peak = peak_megabytes(theirs), naive_peak = peak_megabytes(naive);
  double ours_best = 1e9, theirs_best = 1e9, naive_best = 1e9;
  for (auto _ : state) {
    const double first = seconds(theirs), second = seconds(ours), third = seconds(naive);
    state.SetIterationTime(second);
    theirs_best = std::min(theirs_best, first);
    ours_best = std::min(ours_best, second);
    naive_best = std::min(naive_best, third);
  }
  state.counters["sdpa_ms"] = 1e3 * theirs_best;
  state.counters["ours_ms"] = 1e3 * ours_best;
  state.counters["held_ms"] = 1e3 * naive_best;
  state.counters["ours/sdpa"] = ours_best / theirs_best;
  state.counters["held/sdpa"] = naive_best / theirs_best;
  state.counters["sdpa_MiB"] = theirs_peak;
  state.counters["ours_MiB"] = ours_peak;
  state.counters["held_MiB"] = naive_peak;
}
BENCHMARK(attention)->RangeMultiplier(2)->Range(512, 4096)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gainlens::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1) at::set_num_threads(std::max(1, std::atoi(argv[1])));
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
