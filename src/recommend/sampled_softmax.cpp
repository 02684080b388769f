#include "recommend/sampled_softmax.h"

#include "core/check.h"
#include "core/random.h"
#include "kernels/gradient/selected_rows.h"
#include "kernels/gradient/trained_linear.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::recommend {

ItemSampler::ItemSampler(const std::vector<std::int64_t>& counts, double exponent) {
  ASSERT(counts.size() > 1, "a sampler of no items");
  double total = 0;
  for (std::size_t id = 1; id < counts.size(); ++id) {
    total += std::pow(static_cast<double>(std::max<std::int64_t>(counts[id], 1)), exponent);
    cumulative_.push_back(total);
  }
  std::vector<float> logs;
  double before = 0;
  for (double& sum : cumulative_) {
    logs.push_back(static_cast<float>(std::log((sum - before) / total)));
    before = sum;
    sum /= total;
  }
  log_probability_ = at::tensor(logs);
}

std::vector<std::int64_t> ItemSampler::draw(std::int64_t count, std::uint64_t seed, std::uint64_t stream) const {
  Random random(seed, stream);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, random.uniform());
    ids.push_back(found - cumulative_.begin() + 1);
  }
  return ids;
}

at::Tensor sampled_softmax_loss(const at::Tensor& hidden, const at::Tensor& head, const at::Tensor& targets,
                                const at::Tensor& negatives, const at::Tensor& log_probability) {
  const at::Tensor correction = log_probability + std::log(static_cast<double>(negatives.size(0)));
  const at::Tensor target_logits =
      (hidden * kernels::selected_rows(head, targets)).sum(1) - kernels::selected_rows(correction, targets);
  const at::Tensor drawn = kernels::selected_rows(head, negatives);
  const at::Tensor products =
      hidden.scalar_type() == at::kFloat ? kernels::trained_linear(hidden, drawn) : at::linear(hidden, drawn);
  const at::Tensor drawn_logits =
      (products - kernels::selected_rows(correction, negatives))
          .masked_fill(targets.unsqueeze(1).eq(negatives), -std::numeric_limits<double>::infinity());
  const at::Tensor logits = at::cat({target_logits.unsqueeze(1), drawn_logits}, 1);
  return (logits.logsumexp(1) - target_logits).mean();
}

}  // namespace gainlens::recommend
