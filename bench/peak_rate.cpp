#include "bench/peak_rate.h"

#include "bench/timing.h"
#include "kernels/vector_dispatch.h"

#include <ATen/Parallel.h>

#include <cstdint>
#include <functional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak_rate.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Enough independent sums to hide the latency of an instruction, and few enough for 16 registers.
constexpr int sums = 12;

/// @returns the operations that were done
double MultiplyInRegisters(std::int64_t rounds, float* result) {
  const hn::ScalableTag<float> tag;
  const auto factor = hn::Set(tag, 0.999F), term = hn::Set(tag, 0.001F);
  hn::Vec<decltype(tag)> sum[sums];
  for (auto& each : sum) each = hn::Set(tag, 1.0F);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < sums; ++i) sum[i] = hn::MulAdd(sum[i], factor, term);
  }
  for (const auto& each : sum) *result += hn::GetLane(each);
  return 2.0 * static_cast<double>(hn::Lanes(tag)) * sums * static_cast<double>(rounds);
}

}  // namespace gainlens::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gainlens::bench {

HWY_EXPORT(MultiplyInRegisters);

double measured_peak_rate() {
  constexpr std::int64_t rounds = 20'000'000;
  const int threads = at::get_num_threads();
  double operations = 0;
  const std::function<void()> work[] = {[&] {
    at::parallel_for(0, threads, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t thread = first; thread < last; ++thread) {
        float result = 0;
        const double done = GAINLENS_DISPATCH(MultiplyInRegisters)(rounds, &result);
        if (thread == 0) operations = result == 0 ? 0 : done;  // the result is looked at, so it is computed
      }
    });
  }};
  const RunTimes times = interleaved_times(work, {.repeats = 5}).front();
  return operations * threads / times.median;
}

}  // namespace gainlens::bench
#endif  // HWY_ONCE
