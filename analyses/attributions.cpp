#include "analyses/attributions.h"

#include "analyses/rank_correlation.h"
#include "analyses/statistics.h"

#include <array>
#include <cmath>

namespace gainlens::analyses {
namespace {

Measured correlation_of(const std::vector<double>& estimates, const std::vector<double>& changes) {
  if (estimates.size() < 3) return Measured::none("fewer than 3 interventions were measured exactly");
  const CentredRanks x(estimates), y(changes);
  const double rho = RankCorrelations(std::array{&x, &y}).rho(0, 1);
  if (std::isnan(rho)) return Measured::none("all estimates, or all changes, are the same");
  return rho;
}

Maybe<Interval> interval_of(const std::vector<double>& estimates) {
  if (estimates.size() < 2) return Maybe<Interval>::none("an interval over documents needs at least 2");
  if (alike(estimates, std::abs(estimates.front())))
    return Maybe<Interval>::none("the estimate is the same in every document, up to rounding");
  return mean_interval(estimates);
}

}  // namespace

Attributions attributions(const Attribution& attribution) {
  Attributions made{attribution.native.size(),
                    mean(attribution.native),
                    attribution.exact.size(),
                    Measured::none("nothing was measured"),
                    {}};
  for (std::size_t i = 0; i < attribution.interventions.size(); ++i) {
    const std::vector<double>& estimates = attribution.estimates[i];
    made.arms.push_back({attribution.interventions[i], mean(estimates), interval_of(estimates), std::nullopt});
  }
  std::vector<double> estimates, changes;
  for (const Attribution::Exact& exact : attribution.exact) {
    EstimatedArm& arm = made.arms.at(exact.intervention);
    arm.exact = mean(exact.changes);
    estimates.push_back(arm.estimate);
    changes.push_back(*arm.exact);
  }
  made.correlation = correlation_of(estimates, changes);
  return made;
}

OrderedJson to_json(const Attributions& attributions) {
  OrderedJson json = {{"native", attributions.native}};
  put(json, "rank_correlation", attributions.correlation);
  json["exact"] = attributions.exact;
  json["documents"] = attributions.documents;
  json["arms"] = OrderedJson::array();
  for (const EstimatedArm& one : attributions.arms) {
    OrderedJson arm = {{"intervention", one.intervention}, {"estimate", one.estimate}};
    put(arm, "interval", one.interval);
    if (one.exact) arm["exact"] = *one.exact;
    json["arms"].push_back(std::move(arm));
  }
  return json;
}

}  // namespace gainlens::analyses
