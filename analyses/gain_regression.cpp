#include "analyses/gain_regression.h"

#include "core/check.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

namespace gainlens::analyses {
namespace {

constexpr std::size_t term_count = 3;  // intercept, frequency, length
using Terms = std::array<double, term_count>;

/// Least squares on centred regressors: coefficient j of values d is sum over users of rows[user][j] d[user].
struct Design {
  std::vector<Terms> regressors;  // [user] 1, and the two centred regressors
  std::vector<Terms> rows;        // [user] the user's row of (X'X)^-1 X'
};

std::vector<double> centred_logarithms(std::span<const std::int64_t> counts, double plus) {
  std::vector<double> logarithms;
  for (const std::int64_t count : counts) logarithms.push_back(std::log(static_cast<double>(count) + plus));
  const double middle = mean(logarithms);
  for (double& value : logarithms) value -= middle;
  return logarithms;
}

double product(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

Maybe<Design> design_of(const std::vector<double>& x, const std::vector<double>& y) {
  const double xx = product(x, x), yy = product(y, y), xy = product(x, y);
  const auto users = static_cast<double>(x.size());
  const double rounding = 1e-12 * users;  // a constant regressor, centred, is not exactly 0
  if (!(xx > rounding)) return Maybe<Design>::none("the frequency of the target item is the same for all users");
  if (!(yy > rounding)) return Maybe<Design>::none("the history length is the same for all users");
  const double determinant = xx * yy - xy * xy;
  if (!(determinant > 1e-10 * xx * yy)) return Maybe<Design>::none("frequency and history length are proportional");
  Design design;
  for (std::size_t user = 0; user < x.size(); ++user) {
    design.regressors.push_back({1, x[user], y[user]});
    design.rows.push_back(
        {1 / users, (yy * x[user] - xy * y[user]) / determinant, (xx * y[user] - xy * x[user]) / determinant});
  }
  return design;
}

/// Coefficients of one run, and what remains of each user's difference.
struct RunFit {
  Terms coefficients{};
  std::vector<double> residuals;  // [user]
};

RunFit fit_run(const Design& design, const PairedUnits& users, std::size_t seed) {
  RunFit fit;
  for (std::size_t user = 0; user < users.units; ++user) {
    const std::size_t at = seed * users.units + user;
    fit.residuals.push_back(static_cast<double>(users.candidate[at]) - users.baseline[at]);
    for (std::size_t j = 0; j < term_count; ++j) fit.coefficients[j] += design.rows[user][j] * fit.residuals[user];
  }
  for (std::size_t user = 0; user < users.units; ++user) {
    for (std::size_t j = 0; j < term_count; ++j)
      fit.residuals[user] -= design.regressors[user][j] * fit.coefficients[j];
  }
  return fit;
}

/// What a target item does to the coefficients: with its users left out, they change by `change` times the sum over its
/// users of regressors times residuals.
struct ItemInfluence {
  std::vector<std::array<Terms, term_count>> change;  // [cluster][coefficient][term]
  Terms degrees_of_freedom{};                         // [coefficient] of the variance over target items
};

using Square = std::array<Terms, term_count>;

/// Inverse of a symmetric matrix by its adjugate; missing if it is singular.
Maybe<Square> inverse(const Square& m) {
  Square adjugate{};
  for (std::size_t i = 0; i < term_count; ++i) {
    for (std::size_t j = 0; j < term_count; ++j) {
      const std::size_t a = (i + 1) % term_count, b = (i + 2) % term_count, c = (j + 1) % term_count,
                        d = (j + 2) % term_count;
      adjugate[j][i] = m[a][c] * m[b][d] - m[a][d] * m[b][c];
    }
  }
  double determinant = 0, size = 1;
  for (std::size_t i = 0; i < term_count; ++i) {
    determinant += m[0][i] * adjugate[i][0];
    size *= m[i][i];
  }
  if (!(determinant > 1e-10 * size)) return Maybe<Square>::none("singular");
  for (Terms& row : adjugate) {
    for (double& value : row) value /= determinant;
  }
  return adjugate;
}

/// Missing if the users of all other items do not fix the coefficients.
Maybe<ItemInfluence> item_influence(const Design& design, const std::vector<std::size_t>& cluster,
                                    std::size_t clusters) {
  Square all{};
  std::vector<Square> own(clusters, Square{});
  for (std::size_t user = 0; user < cluster.size(); ++user) {
    const Terms& x = design.regressors[user];
    for (std::size_t i = 0; i < term_count; ++i) {
      for (std::size_t j = 0; j < term_count; ++j) {
        all[i][j] += x[i] * x[j];
        own[cluster[user]][i][j] += x[i] * x[j];
      }
    }
  }
  ItemInfluence influence;
  Terms squares{};  // sum over items of the square of an item's share of a regressor's sum of squares
  for (const Square& item : own) {
    Square others = all;
    for (std::size_t i = 0; i < term_count; ++i) {
      for (std::size_t j = 0; j < term_count; ++j) others[i][j] -= item[i][j];
      squares[i] += std::pow(item[i][i] / all[i][i], 2);
    }
    const auto inverted = inverse(others);
    if (!inverted) return Maybe<ItemInfluence>::none("without the users of one target item there is no regression");
    influence.change.push_back(*inverted);
  }
  for (std::size_t j = 0; j < term_count; ++j) influence.degrees_of_freedom[j] = 1 / squares[j] - 1;
  return influence;
}

/// All runs of all coefficients, in the form that crossed_estimate takes.
struct RegressionForm {
  std::array<std::vector<double>, term_count> by_seed;    // [term][seed]
  std::array<std::vector<double>, term_count> influence;  // [term][seed, cluster]
  std::array<double, term_count> scale{};                 // [term] size of the terms of a coefficient
};

/// Sum of the sizes of what a coefficient of one run is summed of.
double size_of_terms(const Design& design, const PairedUnits& users, std::size_t seed, std::size_t term) {
  double size = 0;
  for (std::size_t user = 0; user < users.units; ++user) {
    const std::size_t at = seed * users.units + user;
    size += std::abs(design.rows[user][term]) *
            (std::abs(static_cast<double>(users.candidate[at])) + std::abs(static_cast<double>(users.baseline[at])));
  }
  return size;
}

/// The jackknife over target items: what remains of a user is small where one item has much weight in the fit.
RegressionForm linear_form(const Design& design, const PairedUnits& users, const std::vector<std::size_t>& cluster,
                           const ItemInfluence& items) {
  const std::size_t clusters = items.change.size();
  RegressionForm form;
  for (auto& influence : form.influence) influence.assign(users.seeds * clusters, 0.0);
  const double jackknife = std::sqrt(static_cast<double>(clusters - 1) / static_cast<double>(clusters));
  for (std::size_t seed = 0; seed < users.seeds; ++seed) {
    const RunFit fit = fit_run(design, users, seed);
    for (std::size_t j = 0; j < term_count; ++j) {
      form.scale[j] = std::max(form.scale[j], size_of_terms(design, users, seed, j));
      form.by_seed[j].push_back(fit.coefficients[j]);
      for (std::size_t user = 0; user < users.units; ++user) {
        double change = 0;
        for (std::size_t i = 0; i < term_count; ++i)
          change += items.change[cluster[user]][j][i] * design.regressors[user][i];
        form.influence[j][seed * clusters + cluster[user]] += jackknife * change * fit.residuals[user];
      }
    }
  }
  return form;
}

GainSlope slope_of(const std::string& name, const std::vector<double>& by_seed, const std::vector<double>& influence,
                   double degrees, double scale) {
  const std::size_t clusters = influence.size() / by_seed.size();
  std::vector<double> means(clusters, 0.0);
  for (std::size_t i = 0; i < influence.size(); ++i)
    means[i % clusters] += influence[i] / static_cast<double>(by_seed.size());
  const double value = mean(by_seed), error = std::sqrt(product(means, means));
  const auto two_sided_p = [&] {
    return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(degrees), std::abs(value) / error));
  };
  const Measured p = is_rounding(error, scale) ? Measured::none("nothing is left that varies over target items")
                     : !(degrees >= 1)         ? Measured::none("one target item has nearly all of the weight")
                                               : Measured(two_sided_p());
  return {name, value, error, degrees, p, crossed_estimate(value, by_seed, influence, degrees, scale)};
}

OrderedJson to_json(const GainSlope& slope) {
  OrderedJson json;
  json["value"] = slope.value;
  json["clustered_error"] = slope.clustered_error;
  json["clustered_degrees_of_freedom"] = slope.clustered_degrees_of_freedom;
  put(json, "clustered_p", slope.clustered_p);
  put(json, "crossed", slope.crossed);
  return json;
}

}  // namespace

Maybe<GainRegression> gain_regression(const PairedUnits& users, std::span<const std::int64_t> frequency,
                                      std::span<const std::int64_t> length, std::span<const std::size_t> target) {
  using Result = Maybe<GainRegression>;
  ASSERT(frequency.size() == users.units && length.size() == users.units && target.size() == users.units,
         "{}, {} and {} numbers of {} users", frequency.size(), length.size(), target.size(), users.units);
  for (std::size_t user = 0; user < users.units; ++user)
    ASSERT(frequency[user] >= 0 && length[user] >= 1, "user {}: {} and {}", user, frequency[user], length[user]);
  std::unordered_map<std::size_t, std::size_t> numbers;
  std::vector<std::size_t> cluster;
  for (const std::size_t item : target) cluster.push_back(numbers.try_emplace(item, numbers.size()).first->second);
  if (users.units <= term_count || numbers.size() < 2)
    return Result::none("the regression needs at least 4 users and 2 target items");
  const auto design = design_of(centred_logarithms(frequency, 1), centred_logarithms(length, 0));
  if (!design) return Result::none(design.reason());
  const auto items = item_influence(*design, cluster, numbers.size());
  if (!items) return Result::none(items.reason());
  const RegressionForm form = linear_form(*design, users, cluster, *items);
  const auto slope = [&](std::size_t j, const std::string& name) {
    return slope_of(name, form.by_seed[j], form.influence[j], items->degrees_of_freedom[j], form.scale[j]);
  };
  return GainRegression{users.units, numbers.size(), slope(0, "mean difference"), slope(1, "ln(1 + target frequency)"),
                        slope(2, "ln(history length)")};
}

OrderedJson to_json(const GainRegression& regression) {
  OrderedJson json;
  json["users"] = regression.users;
  json["clusters"] = regression.clusters;
  for (const GainSlope* slope : {&regression.intercept, &regression.frequency, &regression.length})
    json["terms"][slope->name] = to_json(*slope);
  return json;
}

}  // namespace gainlens::analyses
