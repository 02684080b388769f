#include "sweep/sink_bound.h"

#include "core/check.h"
#include "sweep/moments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace gainlens::sweep {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

/// 1 if the condition holds, else 0. Its mean over queries is a share.
double one_if(bool condition) {
  return condition ? 1.0 : 0.0;
}

}  // namespace

double sink_alignment(const SinkNorms& norms) {
  return norms.least > 0 ? std::min(1.0, norms.others / norms.least) : missing;
}

double sink_bound(const SinkNorms& norms) {
  const double scale = std::min(norms.least, norms.others);  // mu c = min(mu, ||vbar||): no division needed
  if (scale == 0) return -std::numeric_limits<double>::infinity();
  return 1 - (norms.update + norms.first) / scale;
}

SinkBoundSummary summarise_sink_bound(const SinkRows& rows, double first, double least) {
  const std::size_t queries = rows.first_weight.size();
  ASSERT(rows.estimate_norm.size() == queries && rows.gained_estimate_norm.size() == queries &&
             rows.without_first_norm.size() == queries,
         "rows of different sizes");
  std::vector<double> bound(queries, missing), gain_bound = bound, alignment = bound, vacuous = bound, slack = bound,
                                               violated = bound;
  double slack_min = missing;
  for (std::size_t i = 0; i < queries; ++i) {
    const double weight = rows.first_weight[i], others = rows.without_first_norm[i];
    if (std::isnan(weight) || std::isnan(others)) continue;
    const SinkNorms norms{rows.estimate_norm[i], first, others, least},
        gained{rows.gained_estimate_norm[i], first, others, least};
    const double plain_bound = sink_bound(norms), gained_bound = sink_bound(gained);
    bound[i] = std::max(0.0, plain_bound);
    const bool has_gain = !std::isnan(rows.gained_estimate_norm[i]);  // some estimators define no K for a query
    if (has_gain) gain_bound[i] = std::max(0.0, gained_bound);
    alignment[i] = sink_alignment(norms);
    vacuous[i] = one_if(!(plain_bound > 0));
    if (plain_bound > 0) slack[i] = weight - plain_bound;
    if (std::isfinite(plain_bound))
      slack_min = std::fmin(slack_min, weight - plain_bound);  // fmin ignores the NaN that slack_min starts with
    if (has_gain) violated[i] = one_if(weight < gained_bound - bound_rounding);
  }
  return {moments(bound).mean,   moments(gain_bound).mean, moments(alignment).mean,
          moments(vacuous).mean, moments(slack).mean,      slack_min,
          moments(violated).mean};
}

}  // namespace gainlens::sweep
