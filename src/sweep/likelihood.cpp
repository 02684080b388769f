#include "sweep/likelihood.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <cmath>

namespace gainlens::sweep {
double mean_negative_log_likelihood(hooks::HookedModel& model, const at::Tensor& normalized,
                                    std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  CHECK(length >= 2, "negative log likelihood: {} token; at least 2 are needed to predict one from another", length);
  ASSERT(normalized.dim() == 3 && normalized.size(0) == 1 && normalized.size(1) == length,
         "stream of shape other than [1, {}, width]", length);

  const at::Tensor targets = at::from_blob(const_cast<std::int32_t*>(tokens.data()), {length}, at::kInt).to(at::kLong);
  const at::Tensor losses = model.target_losses(normalized[0].slice(0, 0, length - 1), targets.slice(0, 1));
  const double* const loss = losses.const_data_ptr<double>();
  double total = 0;
  for (std::int64_t i = 0; i < length - 1; ++i) {
    if (!std::isfinite(loss[i])) throw_run_failed("output head: the logits at position {} are NaN or infinite", i);
    total += loss[i];
  }
  return total / static_cast<double>(length - 1);
}

}  // namespace gainlens::sweep
