#include "analyses/seed_unit.h"
#include "analyses/statistics.h"
#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace gainlens::analyses {
namespace {

/// The values of a group, unit by unit. Rows of zeros add nothing to a sum: only their number is kept.
class GroupRows {
 public:
  GroupRows(const PairedUnits& pairs, const SignedGroup& group)
      : columns_(2 * pairs.seeds), units_(group.units.size()), sign_(group.sign) {
    ASSERT(units_ >> 32 == 0, "{} units", units_);
    std::vector<double> row(columns_);
    for (const std::size_t unit : group.units) {
      for (std::size_t seed = 0; seed < pairs.seeds; ++seed) {
        row[seed] = pairs.baseline[seed * pairs.units + unit];
        row[pairs.seeds + seed] = pairs.candidate[seed * pairs.units + unit];
      }
      if (std::any_of(row.begin(), row.end(), [](double value) { return value != 0; }))
        rows_.insert(rows_.end(), row.begin(), row.end());
    }
    weights_.resize(rows_.size() / columns_);
  }

  double sign() const { return sign_; }

  /// Means over as many units as there are, drawn with replacement: [arm, seed].
  void draw(Random& random, std::vector<double>& means) {
    std::fill(weights_.begin(), weights_.end(), 0u);
    // Each half of 64 random bits draws a unit. Some units are more likely than others, by at most units_ / 2^32.
    for (std::size_t i = 0; i < units_; i += 2) {
      const std::uint64_t bits = random.bits();
      count((bits >> 32) * units_ >> 32);
      if (i + 1 < units_) count((bits & 0xffffffffu) * units_ >> 32);
    }
    means.assign(columns_, 0.0);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      const double weight = weights_[i];
      const double* row = &rows_[i * columns_];
      for (std::size_t column = 0; column < columns_; ++column) means[column] += weight * row[column];
    }
    for (double& value : means) value /= static_cast<double>(units_);
  }

 private:
  void count(std::uint64_t unit) {
    if (unit < weights_.size()) ++weights_[unit];
  }

  std::size_t columns_;
  std::uint64_t units_;  // below 2^32
  double sign_;
  std::vector<double> rows_;       // [unit with a value, arm, seed]
  std::vector<unsigned> weights_;  // [unit with a value] how often it is drawn
};

double weighted_sum(std::span<const double> weights, std::span<const double> values) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

/// Quantile between the two nearest order statistics, as numpy's default. @param sorted  ascending
double quantile_of(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

SeedUnitBootstrap summarize(double value, std::vector<double> draws, std::size_t seeds, const Resamples& resamples) {
  const auto low = std::count_if(draws.begin(), draws.end(), [](double draw) { return draw <= 0; });
  const auto high = std::count_if(draws.begin(), draws.end(), [](double draw) { return draw >= 0; });
  const double share = static_cast<double>(1 + std::min(low, high)) / static_cast<double>(1 + resamples.count);
  const double error = std::sqrt(population_variance(draws));
  std::sort(draws.begin(), draws.end());
  const double tail = (1 - confidence) / 2;
  return {value,
          error,
          {quantile_of(draws, tail), quantile_of(draws, 1 - tail)},
          seeds >= fewest_bootstrap_seeds,
          std::min(1.0, 2 * share),
          resamples.count,
          resamples.seed};
}

struct Contrast {
  double difference = 0;
  std::optional<double> log_ratio = 0.0;

  void add(double sign, double baseline, double candidate) {
    difference += sign * (candidate - baseline);
    scale += std::abs(candidate) + std::abs(baseline);
    if (!(baseline > 0 && candidate > 0)) log_ratio.reset();
    if (log_ratio) *log_ratio += sign * std::log(candidate / baseline);
  }
  /// Rounding alone is no gain and no loss: p counts the resamples on each side of 0.
  Contrast without_rounding() const {
    Contrast exact = *this;
    if (is_rounding(difference, scale)) exact.difference = 0;
    if (log_ratio && is_rounding(*log_ratio, 1)) exact.log_ratio = 0;
    return exact;
  }

  double scale = 0;  // size of the terms of the difference
};

/// @param means  [group][arm, seed]
Contrast contrast_of(const std::vector<GroupRows>& groups, const std::vector<std::vector<double>>& means,
                     const std::vector<double>& seed_weights) {
  Contrast contrast;
  const std::size_t seeds = seed_weights.size();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::span<const double> both = means[g];
    contrast.add(groups[g].sign(), weighted_sum(seed_weights, both.first(seeds)),
                 weighted_sum(seed_weights, both.subspan(seeds)));
  }
  return contrast.without_rounding();
}

Contrast observed(const PairedUnits& pairs, std::span<const SignedGroup> groups) {
  Contrast contrast;
  for (const SignedGroup& group : groups) {
    double baseline = 0, candidate = 0;
    for (std::size_t seed = 0; seed < pairs.seeds; ++seed) {
      for (const std::size_t unit : group.units) {
        baseline += pairs.baseline[seed * pairs.units + unit];
        candidate += pairs.candidate[seed * pairs.units + unit];
      }
    }
    const double count = static_cast<double>(pairs.seeds) * static_cast<double>(group.units.size());
    contrast.add(group.sign, baseline / count, candidate / count);
  }
  return contrast.without_rounding();
}

void draw_seeds(Random& random, std::vector<double>& weights) {
  std::fill(weights.begin(), weights.end(), 0.0);
  const double share = 1 / static_cast<double>(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) weights[random.below(weights.size())] += share;
}

std::optional<std::string> too_few(const PairedUnits& pairs, std::span<const SignedGroup> groups) {
  if (pairs.seeds < 2) return "a bootstrap over seeds needs at least 2 seeds; there is 1";
  for (const SignedGroup& group : groups) {
    if (group.units.size() < 2)
      return fmt::format("a bootstrap over {0}s needs at least 2 {0}s in each group", pairs.noun);
  }
  return std::nullopt;
}

std::string no_ratio_reason(const PairedUnits& pairs) {
  const auto is_negative = [](double value) { return value < 0; };
  const bool negative =
      std::ranges::any_of(pairs.baseline, is_negative) || std::ranges::any_of(pairs.candidate, is_negative);
  return fmt::format("a mean is {} in at least one resample: there is no ratio", negative ? "0 or below" : "0");
}

}  // namespace

BootstrapGains bootstrap_gain(const PairedUnits& pairs, std::span<const SignedGroup> groups,
                              const Resamples& resamples) {
  using Result = Maybe<SeedUnitBootstrap>;
  constexpr std::int64_t fewest = 39, most = 1'000'000;  // with 39 the smallest p is 2 / 40
  CHECK(resamples.count >= fewest && resamples.count <= most, "resamples: {}; {} to {} are allowed", resamples.count,
        fewest, most);
  if (const auto reason = too_few(pairs, groups)) return {Result::none(*reason), Result::none(*reason)};

  std::vector<GroupRows> rows;
  for (const SignedGroup& group : groups) rows.emplace_back(pairs, group);
  std::vector<double> differences, log_ratios, seed_weights(pairs.seeds);
  std::vector<std::vector<double>> means(groups.size());
  Random random(resamples.seed);
  for (std::int64_t resample = 0; resample < resamples.count; ++resample) {
    draw_seeds(random, seed_weights);
    for (std::size_t g = 0; g < groups.size(); ++g) rows[g].draw(random, means[g]);
    const Contrast drawn = contrast_of(rows, means, seed_weights);
    differences.push_back(drawn.difference);
    if (drawn.log_ratio) log_ratios.push_back(*drawn.log_ratio);
  }
  const Contrast data = observed(pairs, groups);
  BootstrapGains gains{summarize(data.difference, differences, pairs.seeds, resamples),
                       Result::none(no_ratio_reason(pairs))};
  if (data.log_ratio && log_ratios.size() == differences.size())
    gains.log_ratio = summarize(*data.log_ratio, log_ratios, pairs.seeds, resamples);
  return gains;
}

OrderedJson to_json(const SeedUnitBootstrap& bootstrap) {
  OrderedJson json;
  json["value"] = bootstrap.value;
  json["standard_error"] = bootstrap.error;
  put(json, bootstrap.is_95 ? "interval_95" : "range_without_level", bootstrap.range);
  put(json, "p", bootstrap.is_95 ? Measured(bootstrap.p) : Measured::none("a range without a level has no p"));
  json["resamples"] = bootstrap.resamples;
  json["seed"] = bootstrap.seed;
  return json;
}

}  // namespace gainlens::analyses
