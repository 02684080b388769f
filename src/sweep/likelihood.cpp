#include "sweep/likelihood.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gainlens::sweep {
namespace {

// 256 MiB in float32. The output head is packed and read once per block.
constexpr std::int64_t logits_per_block = std::int64_t{1} << 26;

}  // namespace

double mean_negative_log_likelihood(hooks::HookedModel& model, const at::Tensor& normalized,
                                    std::span<const std::int32_t> tokens) {
  const auto length = static_cast<std::int64_t>(tokens.size());
  CHECK(length >= 2, "negative log likelihood: {} token; at least 2 are needed to predict one from another", length);
  ASSERT(normalized.dim() == 3 && normalized.size(0) == 1 && normalized.size(1) == length,
         "stream of shape other than [1, {}, width]", length);

  const at::Tensor targets = at::from_blob(const_cast<std::int32_t*>(tokens.data()), {length}, at::kInt).to(at::kLong);
  double total = 0;
  std::int64_t block = 1;  // the first logits show the size of the vocabulary
  for (std::int64_t begin = 0; begin < length - 1;) {
    const std::int64_t end = std::min(begin + block, length - 1);
    at::Tensor logits = model.unembed(normalized.slice(1, begin, end)).squeeze(0);  // [position, vocabulary]
    if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
    const at::Tensor target = targets.slice(0, begin + 1, end + 1).unsqueeze(1);
    const at::Tensor losses = (logits.logsumexp(-1, true) - logits.gather(-1, target)).to(at::kDouble).contiguous();
    for (std::int64_t i = 0; i < end - begin; ++i) {
      const double loss = losses.const_data_ptr<double>()[i];
      if (!std::isfinite(loss))
        throw_run_failed("output head: the logits at position {} are NaN or infinite", begin + i);
      total += loss;
    }
    begin = end;
    block = std::max<std::int64_t>(1, logits_per_block / logits.size(-1));
  }
  return total / static_cast<double>(length - 1);
}

}  // namespace gainlens::sweep
