#include "generation/next_token.h"

#include "core/check.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

namespace gainlens::generation {
namespace {

/// ln of the sum of exp of every logit.
double log_sum(std::span<const double> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

ChosenToken chosen(std::span<const double> logits, std::size_t place) {
  return {static_cast<tokenizers::TokenId>(place), logits[place] - log_sum(logits)};
}

}  // namespace

ChosenToken most_likely_token(std::span<const double> logits) {
  ASSERT(!logits.empty(), "no logits");
  return chosen(
      logits, static_cast<std::size_t>(std::distance(logits.begin(), std::max_element(logits.begin(), logits.end()))));
}

ChosenToken drawn_token(std::span<const double> logits, const Sampling& sampling, Random& random) {
  ASSERT(!logits.empty(), "no logits");
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> weights;
  weights.reserve(logits.size());
  for (const double logit : logits) weights.push_back(std::exp((logit - largest) / sampling.temperature));
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (sampling.top_p < 1) {
    std::stable_sort(order.begin(), order.end(),
                     [&weights](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    double kept = 0;
    std::size_t count = 0;
    while (count < order.size() && kept < sampling.top_p * total) kept += weights[order[count++]];
    order.resize(count);
    total = kept;
  }
  double left = random.uniform() * total;
  for (const std::size_t place : order) {
    left -= weights[place];
    if (left < 0) return chosen(logits, place);
  }
  // Rounding left a rest: the last token that could be drawn.
  const auto last = std::find_if(order.rbegin(), order.rend(), [&](std::size_t place) { return weights[place] > 0; });
  return chosen(logits, *last);
}

void check_sampling(const Sampling& sampling) {
  CHECK(std::isfinite(sampling.temperature) && sampling.temperature > 0,
        "--temperature: {}; must be a finite number above 0", sampling.temperature);
  CHECK(sampling.top_p > 0 && sampling.top_p <= 1, "--top-p: {}; must be above 0 and at most 1", sampling.top_p);
}

}  // namespace gainlens::generation
