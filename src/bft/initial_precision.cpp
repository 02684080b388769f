#include "bft/initial_precision.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gainlens::bft {
namespace {

/// Sum over items and dimensions of ln N(x; 0, 1/tau + 1/lambda), plus the log prior of the variances 1/tau, each
/// without constants: nu0/2 (ln tau - tau / tau0).
double log_likelihood(const at::Tensor& precision, const at::Tensor& item, const at::Tensor& squares,
                      const at::Tensor& observed, const EmOptions& options) {
  const at::Tensor variance = precision.index_select(0, item).unsqueeze(1).reciprocal() + observed.reciprocal();
  const auto data = (-0.5 * (variance.log() + squares / variance)).sum().item<double>();
  const auto prior =
      (0.5 * options.prior_strength * (precision.log() - precision / options.prior_precision)).sum().item<double>();
  return data + prior;
}

}  // namespace

std::vector<float> popularity_ranks(std::span<const std::int64_t> counts) {
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return counts[a] < counts[b]; });
  std::vector<float> ranks(counts.size(), 0.5F);
  const double last = static_cast<double>(counts.size()) - 1;
  for (std::size_t first = 0; counts.size() > 1 && first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && counts[order[end]] == counts[order[first]]) ++end;
    const double place = (static_cast<double>(first) + static_cast<double>(end) - 1) / 2;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<float>(place / last);
    first = end;
  }
  return ranks;
}

at::Tensor content_precision(const PrecisionNetwork& network, const at::Tensor& embedding) {
  const at::Tensor hidden = at::gelu(at::linear(embedding, network.hidden, network.hidden_bias));
  return at::softplus(at::linear(hidden, network.output, network.output_bias)).squeeze(1);
}

at::Tensor table_precision(const at::Tensor& p) {
  return 1 + at::softplus(p);
}

double initial_range(double observation_precision, double initial_gain, double median_base, double rest, double least) {
  const double wanted = observation_precision * (1 - initial_gain) / initial_gain;
  return std::max(least, (wanted - rest) / median_base);
}

EmStep em_step(const at::Tensor& precision, const at::Tensor& item, const at::Tensor& innovation,
               const at::Tensor& observation_precision, const EmOptions& options) {
  CHECK(precision.dim() == 1 && item.dim() == 1 && innovation.dim() == 2 && innovation.size(0) == item.size(0) &&
            innovation.sizes() == observation_precision.sizes(),
        "em: precisions must be [item], innovations and their precisions [occurrence, dimension]");
  const at::Tensor given = precision.to(at::kDouble), observed = observation_precision.to(at::kDouble),
                   squares = innovation.to(at::kDouble).square();
  const auto usable = [](const at::Tensor& x) { return ((x > 0) & at::isfinite(x)).all().item<bool>(); };
  CHECK(usable(given) && usable(observed) && at::isfinite(squares).all().item<bool>(),
        "em: a precision that is not above 0 and finite, or an innovation that is not finite");
  const at::Tensor tau = given.clamp(options.least, options.most);
  // What is expected of the squared noise of the state in one dimension: K^2 x^2 + 1 / (tau + lambda_obs).
  const at::Tensor own = tau.index_select(0, item).unsqueeze(1);
  const at::Tensor share = observed / (own + observed);
  const at::Tensor expected = (share.square() * squares + (own + observed).reciprocal()).sum(1);
  const at::Tensor sums = at::zeros_like(tau).index_add(0, item, expected);
  const at::Tensor counts = at::zeros_like(tau).index_add(0, item, at::ones_like(expected));
  const auto dimensions = static_cast<double>(innovation.size(1));
  const at::Tensor best =
      (counts * dimensions + options.prior_strength) / (sums + options.prior_strength / options.prior_precision);
  const at::Tensor way = at::where(counts > 0, best.log() - tau.log(), at::zeros_like(tau));

  EmStep step;
  step.likelihood_before = log_likelihood(tau, item, squares, observed, options);
  constexpr int max_halvings = 20;
  double damping = options.damping;
  for (int i = 0; i < max_halvings; ++i, damping /= 2) {
    step.precision = (tau * (damping * way).exp()).clamp(options.least, options.most);
    step.likelihood_after = log_likelihood(step.precision, item, squares, observed, options);
    if (step.likelihood_after >= step.likelihood_before) return step;
  }
  step.precision = tau;
  step.likelihood_after = step.likelihood_before;
  return step;
}

}  // namespace gainlens::bft
