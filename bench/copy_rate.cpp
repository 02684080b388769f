#include "bench/copy_rate.h"

#include "bench/timing.h"

#include <ATen/ATen.h>

namespace gainlens::bench {

double measured_copy_rate() {
  constexpr std::int64_t elements = std::int64_t{64} << 20;  // 256 MiB
  const at::Tensor from = at::ones({elements}), to = at::zeros({elements});
  const std::function<void()> copy[] = {[&] { to.copy_(from); }};
  return 2.0 * elements * sizeof(float) / interleaved_times(copy, {.repeats = 9}).front().median;
}

}  // namespace gainlens::bench
