#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace gainlens::bft {

/// tau_base of items: the place of an item's count among all, from 0 (rarest) to 1 (most frequent). Equal counts share
/// the mean of their places. One item alone has 0.5.
/// @param counts  of the items in the training data
/// Source: the paper, section 3.3. It does not speak of ties.
std::vector<float> popularity_ranks(std::span<const std::int64_t> counts);

/// The network of `content`: softplus(output gelu(hidden x + hidden_bias) + output_bias).
struct PrecisionNetwork {
  at::Tensor hidden, hidden_bias;  ///< [16, width], [16]
  at::Tensor output, output_bias;  ///< [1, 16], [1]; zeros at the start, so that softplus gives ln 2
};

/// What `content` adds to tau_range tau_base: softplus(network(embedding)). Source: eq. (11) [eq:tau-content].
/// @param embedding  [row, width]
/// @returns [row]
at::Tensor content_precision(const PrecisionNetwork& network, const at::Tensor& embedding);

/// tau = 1 + softplus(p). Source: eq. (10) [eq:tau-init].
at::Tensor table_precision(const at::Tensor& p);

/// tau_range at which the gain of an item of median tau_base is `initial_gain`, if lambda_obs is what is given: c =
/// lambda_obs (1 - K0) / K0, tau_range = max(least, (c - rest) / median tau_base).
/// @param observation_precision  the median of a first batch, or 2 d
/// @param median_base            above 0
/// @param rest                   what tau has beside tau_range tau_base: softplus(0) = ln 2 for `content`, 0 for
/// `count`
double initial_range(double observation_precision, double initial_gain, double median_base, double rest, double least);

/// One step of expectation and maximisation of the tau of items. An occurrence of item i has an innovation x ~ N(0,
/// 1/tau_i + 1/lambda_obs) in each dimension; the noise of the state has precision tau_i, and 1/tau_i has a prior of
/// `prior_strength` observations at 1/prior_precision.
struct EmOptions {
  double prior_strength = 1;   ///< nu0
  double prior_precision = 1;  ///< tau0
  double damping = 0.5;        ///< share of the way in ln tau that is gone, in (0, 1]
  double least = 1e-3, most = 100;
};

struct EmStep {
  at::Tensor precision;          ///< [item] new tau, within the bounds; an item without an occurrence keeps its own
  double likelihood_before = 0;  ///< log-likelihood of the innovations plus log prior, of the tau that were given
  double likelihood_after = 0;
};

/// The share is halved until the likelihood does not fall. What is given is first brought within the bounds.
/// @param precision              [item] float64, tau
/// @param item                   int64 [occurrence]
/// @param innovation             [occurrence, dimension]
/// @param observation_precision  [occurrence, dimension]
/// @throws InvalidArgument  shapes do not fit; a number is not finite, or not above 0
EmStep em_step(const at::Tensor& precision, const at::Tensor& item, const at::Tensor& innovation,
               const at::Tensor& observation_precision, const EmOptions& options = {});

}  // namespace gainlens::bft
