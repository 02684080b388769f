#include "look/logit_lens.h"

#include "core/check.h"
#include "look/most_likely.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace gainlens::look {
namespace {

/// Logits that are in memory together, for each layer.
constexpr std::int64_t max_logits = std::int64_t{1} << 22;

LensAnswer answer_in(const at::Tensor& logits, const at::Tensor& log_p, std::int64_t answer) {
  const at::Tensor logit = logits[answer];
  return {1 + (logits > logit).sum().item<std::int64_t>(), logit.item<double>(), log_p[answer].exp().item<double>()};
}

}  // namespace

void LogitLens::attach(hooks::Hooks& hooks) {
  streams_.assign(static_cast<std::size_t>(model_.config().layers), {});
  for (std::int64_t layer = 0; layer < model_.config().layers; ++layer) {
    hooks.observe(hooks::block_site(layer, "hook_resid_post"),
                  [this, layer](const hooks::Site&, const at::Tensor& seen) {
                    const std::int64_t begin = options_.position.value_or(0);
                    const std::int64_t end = options_.position ? begin + 1 : seen.size(1);
                    streams_[static_cast<std::size_t>(layer)] = seen[0].slice(0, begin, end).clone();
                  });
  }
}

std::vector<LensRow> LogitLens::rows(const tokenizers::Tokenizer* tokenizer) const {
  const std::int64_t positions = streams_.front().size(0);
  const std::int64_t at_once = std::max<std::int64_t>(1, max_logits / model_.config().vocabulary);
  std::vector<LensRow> found(static_cast<std::size_t>(positions) * streams_.size());
  for (std::int64_t begin = 0; begin < positions; begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, positions);
    at::Tensor last_log_p;  // ln p of the last layer [position, vocabulary], which the others are compared with
    for (std::size_t layer = streams_.size(); layer-- > 0;) {
      const at::Tensor stream = model_.final_normed(streams_[layer].slice(0, begin, end).contiguous());
      const at::Tensor logits = model_.unembed(stream).to(at::kCPU, at::kDouble);
      if (!logits.isfinite().all().item<bool>())
        throw_run_failed("output head: the logits of the stream after layer {} are NaN or infinite", layer);
      const at::Tensor log_p = logits.log_softmax(-1);
      if (!last_log_p.defined()) last_log_p = log_p;
      const at::Tensor entropy = -(log_p.exp() * log_p).sum(-1);
      const at::Tensor divergence = (last_log_p.exp() * (last_log_p - log_p)).sum(-1);
      for (std::int64_t place = 0; place < end - begin; ++place) {
        LensRow& row = found[static_cast<std::size_t>(begin + place) * streams_.size() + layer];
        row.position = options_.position.value_or(begin + place);
        row.layer = static_cast<std::int64_t>(layer);
        row.next = most_likely(logits[place], options_.next, tokenizer);
        row.entropy = entropy[place].item<double>();
        row.kl_to_last = divergence[place].item<double>();
        if (options_.answer) row.answer = answer_in(logits[place], log_p[place], *options_.answer);
      }
    }
  }
  return found;
}

}  // namespace gainlens::look
