#include "analyses/attributions.h"

#include "analyses/rank_correlation.h"
#include "analyses/statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace gainlens::analyses {
namespace {

Measured correlation_of(const std::vector<double>& estimates, const std::vector<double>& changes) {
  if (estimates.size() < 3) return Measured::none("fewer than 3 interventions were measured exactly");
  const CentredRanks x(estimates), y(changes);
  const double rho = RankCorrelations(std::array{&x, &y}).rho(0, 1);
  if (std::isnan(rho)) return Measured::none("all estimates, or all changes, are the same");
  return rho;
}

constexpr std::size_t fewest_of_interval = 10;

/// Fisher's z of a rank correlation of n pairs. That of equal orders lies halfway between 1 and the next smaller value.
double z_of(double rho, std::size_t n) {
  const double count = static_cast<double>(n), largest = 1 - 6 / (count * (count * count - 1));
  return std::atanh(std::clamp(rho, -largest, largest));
}

/// Fisher's z of the correlation without one of the interventions, for each of them. NaN: there is none.
std::vector<double> without_each(const std::vector<double>& estimates, const std::vector<double>& changes) {
  std::vector<double> left;
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    std::vector<double> x = estimates, y = changes;
    x.erase(x.begin() + static_cast<std::ptrdiff_t>(i));
    y.erase(y.begin() + static_cast<std::ptrdiff_t>(i));
    const Measured rho = correlation_of(x, y);
    left.push_back(rho ? z_of(*rho, x.size()) : std::nan(""));
  }
  return left;
}

/// @param acting  how many the measured ones were drawn from
Maybe<Interval> correlation_interval(const Measured& rho, const std::vector<double>& estimates,
                                     const std::vector<double>& changes, std::size_t acting) {
  if (!rho) return Maybe<Interval>::none(rho.reason());
  if (estimates.size() >= acting) return Maybe<Interval>::none("all that can act were measured");
  if (estimates.size() < fewest_of_interval)
    return Maybe<Interval>::none("an interval needs at least 10 that were measured exactly");
  const std::vector<double> left = without_each(estimates, changes);
  if (std::ranges::any_of(left, [](double z) { return std::isnan(z); }))
    return Maybe<Interval>::none("without one of those that were measured, all are the same");
  const double drawn = static_cast<double>(estimates.size()), whole = static_cast<double>(acting);
  const double normal = std::sqrt((1 + *rho * *rho / 2) / (drawn - 3));
  const double error = std::max(normal, jackknife_error(left)) * std::sqrt(1 - drawn / whole);
  const Interval z = student_interval({z_of(*rho, estimates.size()), error, drawn - 2});
  // The z of equal orders is a little less than theirs; the interval holds the correlation itself all the same.
  return Interval{std::min(std::tanh(z.low), *rho), std::max(std::tanh(z.high), *rho)};
}

Maybe<Interval> interval_of(const std::vector<double>& estimates) {
  if (estimates.size() < 2) return Maybe<Interval>::none("an interval over documents needs at least 2");
  if (alike(estimates, std::abs(estimates.front())))
    return Maybe<Interval>::none("the estimate is the same in every document, up to rounding");
  return mean_interval(estimates);
}

std::vector<EstimatedKind> kinds_of(const std::vector<EstimatedArm>& arms) {
  std::vector<EstimatedKind> kinds;
  for (const EstimatedArm& arm : arms) {
    auto found = std::ranges::find(kinds, arm.kind, &EstimatedKind::kind);
    if (found == kinds.end()) found = kinds.insert(kinds.end(), EstimatedKind{.kind = arm.kind});
    ++found->arms;
    found->acting += arm.acts ? 1 : 0;
    found->exact += arm.exact ? 1 : 0;
  }
  for (EstimatedKind& kind : kinds) {
    std::vector<double> estimates, changes;
    for (const EstimatedArm& arm : arms) {
      if (arm.kind != kind.kind || !arm.exact) continue;
      estimates.push_back(arm.estimate);
      changes.push_back(*arm.exact);
    }
    kind.correlation = correlation_of(estimates, changes);
    kind.interval = correlation_interval(kind.correlation, estimates, changes, kind.acting);
  }
  return kinds;
}

}  // namespace

Measured Attributions::normalised(double change) const {
  if (!other) return Measured::none("there is no other run");
  const double span = *other - native;
  if (is_rounding(span, std::max(std::abs(*other), std::abs(native))))
    return Measured::none("both runs have the same number");
  return change / span;
}

Attributions attributions(const Attribution& attribution) {
  Attributions made{attribution.native.size(), mean(attribution.native), attribution.other, {}, {}};
  for (std::size_t i = 0; i < attribution.interventions.size(); ++i) {
    const std::vector<double>& estimates = attribution.estimates[i];
    made.arms.push_back({attribution.interventions[i], attribution.kinds[i], attribution.acts[i], mean(estimates),
                         interval_of(estimates), std::nullopt});
  }
  for (const Attribution::Exact& exact : attribution.exact)
    made.arms.at(exact.intervention).exact = mean(exact.changes);
  made.kinds = kinds_of(made.arms);
  return made;
}

std::vector<std::size_t> by_size(const Attributions& attributions) {
  std::vector<std::size_t> places(attributions.arms.size());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::stable_sort(places, std::greater<>(),
                           [&](std::size_t i) { return std::abs(attributions.arms[i].estimate); });
  return places;
}

OrderedJson to_json(const Attributions& attributions) {
  OrderedJson json = {{"native", attributions.native}};
  if (attributions.other) json["other"] = *attributions.other;
  json["documents"] = attributions.documents;
  json["kinds"] = OrderedJson::array();
  for (const EstimatedKind& kind : attributions.kinds) {
    OrderedJson& entry = json["kinds"].emplace_back(
        OrderedJson{{"kind", kind.kind}, {"arms", kind.arms}, {"acting", kind.acting}, {"exact", kind.exact}});
    put(entry, "rank_correlation", kind.correlation);
    put(entry, "rank_correlation_interval", kind.interval);
  }
  json["arms"] = OrderedJson::array();
  for (const EstimatedArm& one : attributions.arms) {
    OrderedJson arm = {
        {"intervention", one.intervention}, {"kind", one.kind}, {"acts", one.acts}, {"estimate", one.estimate}};
    if (attributions.other) put(arm, "normalised", attributions.normalised(one.estimate));
    put(arm, "interval", one.interval);
    if (one.exact) {
      arm["exact"] = *one.exact;
      if (attributions.other) put(arm, "exact_normalised", attributions.normalised(*one.exact));
    }
    json["arms"].push_back(std::move(arm));
  }
  return json;
}

}  // namespace gainlens::analyses
