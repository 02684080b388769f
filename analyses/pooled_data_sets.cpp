#include "analyses/pooled_data_sets.h"

#include "analyses/holm.h"
#include "analyses/seed_comparison.h"
#include "core/check.h"

#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace gainlens::analyses {
namespace {

/// A p of 0 comes from rounding. The smallest positive number is above its true value, so no test gains from it.
double positive_p(double p) {
  ASSERT(p >= 0 && p <= 1, "a p of {}", p);
  return std::max(p, std::numeric_limits<double>::min());
}

double root_mean_square(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

struct WeightedMean {
  double weights = 0, mean = 0, q = 0;  // q: sum of w (y - mean)^2
};

WeightedMean weighted_mean(std::span<const Estimate> estimates, double between_variance) {
  WeightedMean result;
  const auto weight = [&](const Estimate& each) { return 1 / (each.error * each.error + between_variance); };
  for (const Estimate& each : estimates) {
    result.weights += weight(each);
    result.mean += weight(each) * each.value;
  }
  result.mean /= result.weights;
  for (const Estimate& each : estimates)
    result.q += weight(each) * (each.value - result.mean) * (each.value - result.mean);
  return result;
}

/// Moment estimate of the variance between data sets.
double between_variance_of(std::span<const Estimate> estimates, const WeightedMean& fixed) {
  double squares = 0;
  for (const Estimate& each : estimates) squares += std::pow(each.error, -4);
  const double excess = fixed.q - static_cast<double>(estimates.size() - 1);
  return std::max(0.0, excess / (fixed.weights - squares / fixed.weights));
}

/// The values, or the reason of the first missing one.
Maybe<std::vector<double>> all_present(const std::vector<Measured>& values) {
  std::vector<double> present;
  for (const Measured& value : values) {
    if (!value) return Maybe<std::vector<double>>::none("a data set has no p: " + value.reason());
    present.push_back(*value);
  }
  return present;
}

void put_all(OrderedJson& json, std::string_view name, const std::vector<std::string>& names,
             const std::vector<Measured>& values) {
  OrderedJson by_name = OrderedJson::object();
  for (std::size_t i = 0; i < names.size(); ++i) put(by_name, names[i], values[i]);
  json[std::string(name)] = by_name;
}

}  // namespace

OrderedJson to_json(const FisherTest& test) {
  OrderedJson json;
  json["chi_squared"] = test.chi_squared;
  json["degrees_of_freedom"] = test.degrees_of_freedom;
  json["p"] = test.p;
  return json;
}

OrderedJson to_json(const StoufferTest& test) {
  OrderedJson json;
  json["z"] = test.z;
  json["p"] = test.p;
  return json;
}

OrderedJson to_json(const RandomEffects& effects) {
  OrderedJson json;
  json["mean"] = effects.mean;
  json["between_variance"] = effects.between_variance;
  json["heterogeneity_q"] = effects.heterogeneity_q;
  json["heterogeneity_p"] = effects.heterogeneity_p;
  json["standard_error"] = effects.error;
  json["degrees_of_freedom"] = effects.degrees_of_freedom;
  put(json, "interval_95", effects.interval);
  json["p"] = effects.p;
  return json;
}

FisherTest fisher(std::span<const double> p) {
  ASSERT(!p.empty(), "Fisher's method without a p");
  double sum = 0;
  for (const double each : p) sum -= 2 * std::log(positive_p(each));
  const double degrees = 2 * static_cast<double>(p.size());
  return {sum, degrees, boost::math::cdf(boost::math::complement(boost::math::chi_squared(degrees), sum))};
}

StoufferTest stouffer(std::span<const double> p, std::span<const double> signs) {
  ASSERT(!p.empty() && p.size() == signs.size(), "{} p and {} signs", p.size(), signs.size());
  const boost::math::normal normal;
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double score = boost::math::quantile(boost::math::complement(normal, positive_p(p[i]) / 2));
    sum += signs[i] > 0 ? score : signs[i] < 0 ? -score : 0;
  }
  const double z = sum / std::sqrt(static_cast<double>(p.size()));
  return {z, 2 * boost::math::cdf(boost::math::complement(normal, std::abs(z)))};
}

Maybe<RandomEffects> random_effects(std::span<const Estimate> estimates) {
  if (estimates.size() < 2)
    return Maybe<RandomEffects>::none("the spread over data sets needs at least 2 data sets; there is 1");
  for (const Estimate& each : estimates) ASSERT(each.error > 0, "an error of {}", each.error);
  const auto degrees = static_cast<double>(estimates.size() - 1);
  const WeightedMean fixed = weighted_mean(estimates, 0);
  const double between = between_variance_of(estimates, fixed);
  const WeightedMean random = weighted_mean(estimates, between);
  const double factor = std::max(1.0, random.q / degrees);  // below 1 by chance only: the interval would be too short
  const Estimate pooled{random.mean, std::sqrt(factor / random.weights), degrees};
  const double t = std::abs(pooled.value) / pooled.error;
  return RandomEffects{pooled.value,
                       between,
                       fixed.q,
                       boost::math::cdf(boost::math::complement(boost::math::chi_squared(degrees), fixed.q)),
                       pooled.error,
                       degrees,
                       student_interval(pooled),
                       2 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), t))};
}

SignedTest joint_flips(std::span<const SeededDifferences> data_sets, const Resampling& resampling) {
  std::map<std::uint64_t, double> terms;
  std::map<std::uint64_t, double> sizes;  // of the terms
  for (const SeededDifferences& runs : data_sets) {
    ASSERT(!runs.seeds.empty() && runs.seeds.size() == runs.differences.size(), "{} seeds of {} differences",
           runs.seeds.size(), runs.differences.size());
    const double scale = root_mean_square(runs.differences) * static_cast<double>(runs.seeds.size());
    for (std::size_t i = 0; i < runs.seeds.size(); ++i) {
      const double term = scale > 0 ? runs.differences[i] / scale : 0;
      terms[runs.seeds[i]] += term;
      sizes[runs.seeds[i]] += std::abs(term);
    }
  }
  std::vector<double> sums;
  sums.reserve(terms.size());
  for (const auto& [seed, term] : terms) sums.push_back(is_rounding(term, sizes[seed]) ? 0 : term);
  return flip_test(sums, resampling);
}

Measured seed_correlation(std::span<const SeededDifferences> data_sets) {
  std::vector<double> correlations;
  for (std::size_t a = 0; a < data_sets.size(); ++a) {
    for (std::size_t b = a + 1; b < data_sets.size(); ++b) {
      std::map<std::uint64_t, double> other;
      for (std::size_t i = 0; i < data_sets[b].seeds.size(); ++i)
        other[data_sets[b].seeds[i]] = data_sets[b].differences[i];
      std::vector<double> x, y;
      for (std::size_t i = 0; i < data_sets[a].seeds.size(); ++i) {
        const auto found = other.find(data_sets[a].seeds[i]);
        if (found == other.end()) continue;
        x.push_back(data_sets[a].differences[i]);
        y.push_back(found->second);
      }
      const Measured r = correlation(x, y).pearson;
      if (r) correlations.push_back(*r);
    }
  }
  if (correlations.empty()) return Measured::none("no two data sets have 3 seeds in common whose differences vary");
  return mean(correlations);
}

PooledDataSets pool_data_sets(std::span<const DataSetGain> data_sets, const Resampling& resampling) {
  ASSERT(!data_sets.empty(), "no data set to pool");
  std::vector<std::string> names;
  std::vector<SeededDifferences> runs;
  std::vector<Measured> naive, crossed;
  std::vector<double> signs, crossed_signs;
  std::vector<Estimate> relative;
  std::size_t fewest_seeds = data_sets.front().runs.seeds.size();
  for (const DataSetGain& each : data_sets) {
    fewest_seeds = std::min(fewest_seeds, each.runs.seeds.size());
    names.push_back(each.name);
    runs.push_back(each.runs);
    naive.push_back(each.naive_p);
    signs.push_back(mean(each.runs.differences));
    crossed.push_back(stated_p(each.relative));
    crossed_signs.push_back(each.relative ? each.relative->value : 0);
    if (crossed.back()) relative.push_back(each.relative->estimate());
  }
  const auto naive_p = all_present(naive), crossed_p = all_present(crossed);
  SignedTest flips = joint_flips(runs, resampling);
  // A data set whose difference is the same with every seed has one observation and not one for each seed.
  if (!naive_p && flips.p) flips.p = Measured::none(naive_p.reason());
  using Stouffer = Maybe<StoufferTest>;
  return {names,
          fewest_seeds,
          holm_where_present(naive),
          holm_where_present(crossed),
          naive_p ? Maybe<FisherTest>(fisher(*naive_p)) : Maybe<FisherTest>::none(naive_p.reason()),
          naive_p ? Stouffer(stouffer(*naive_p, signs)) : Stouffer::none(naive_p.reason()),
          crossed_p ? Stouffer(stouffer(*crossed_p, crossed_signs)) : Stouffer::none(crossed_p.reason()),
          crossed_p ? random_effects(relative) : Maybe<RandomEffects>::none(crossed_p.reason()),
          flips,
          seed_correlation(runs)};
}

OrderedJson to_json(const PooledDataSets& pooled) {
  OrderedJson json;
  json["data_sets"] = pooled.names;
  if (const std::string note = few_seeds_note(pooled.fewest_seeds); !note.empty()) json["p_note"] = note;
  put_all(json, "paired_t_naive_p_holm", pooled.names, pooled.naive_holm);
  put_all(json, "crossed_p_holm", pooled.names, pooled.crossed_holm);
  put(json, "fisher_naive", pooled.naive_fisher);
  put(json, "stouffer_naive", pooled.naive_stouffer);
  put(json, "stouffer_crossed", pooled.crossed_stouffer);
  put(json, "random_effects_log_ratio", pooled.relative_gain);
  json["joint_sign_flips"] = to_json(pooled.flips);
  put(json, "seed_correlation", pooled.seed_correlation);
  return json;
}

}  // namespace gainlens::analyses
