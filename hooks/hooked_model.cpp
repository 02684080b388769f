#include "hooks/hooked_model.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/quantity.h"
#include "kernels/fixed_sizes.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include <algorithm>

namespace gainlens::hooks {

ObservedAttention AttentionOp::run_with_moments(std::int64_t, const Qkv&, const kernels::AttentionOptions&,
                                                const PrecisionBias&) {
  throw_invalid("attention: this operation gives no moments; a model with a filter needs one that does");
}

void check_logits_hooks(const ForwardRequest& request, std::int64_t vocabulary, at::ScalarType dtype) {
  const Site& site = logits_site();
  if (!request.hooks->wants(site)) return;
  CHECK(!request.hooks->replaces(site),
        "hook {}: can be observed, not replaced: a forward pass returns the stream from which the logits follow; "
        "replace another site",
        site.name);
  const at::Tensor& ids = request.tokens->ids;
  std::uint64_t needed = c10::elementSize(dtype);
  for (const std::int64_t size : {ids.size(0), ids.size(1), vocabulary})
    needed = checked_mul(needed, static_cast<std::uint64_t>(size), "size of hook_logits");
  CHECK(needed <= request.options.pattern_memory_bytes,
        "hook {}: [{}, {}, {}] logits need {}; the bound is {}. Shorten the chunk, leave this site out, or raise "
        "--pattern-memory (ForwardOptions::pattern_memory_bytes)",
        site.name, ids.size(0), ids.size(1), vocabulary, format_bytes(needed),
        format_bytes(request.options.pattern_memory_bytes));
}

at::Tensor HookedModel::target_losses(const at::Tensor& normalized, const at::Tensor& targets) {
  at::Tensor losses = at::empty({normalized.size(0)}, at::kDouble);
  const at::Tensor own = targets.to(normalized.device());
  std::int64_t block = 1;  // the first logits show the size of the vocabulary
  for (std::int64_t begin = 0; begin < normalized.size(0);) {
    const std::int64_t end = std::min(begin + block, normalized.size(0));
    at::Tensor logits = unembed(normalized.slice(0, begin, end));  // [row, vocabulary]
    if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
    const at::Tensor target = logits.gather(-1, own.slice(0, begin, end).unsqueeze(1));
    losses.slice(0, begin, end).copy_((logits.logsumexp(-1, true) - target).squeeze(1));
    begin = end;
    block = std::max<std::int64_t>(1, kernels::logits_per_block / logits.size(-1));
  }
  return losses;
}

}  // namespace gainlens::hooks
