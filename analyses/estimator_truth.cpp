#include "analyses/estimator_truth.h"

#include "analyses/on_threads.h"
#include "core/check.h"
#include "core/random.h"

#include <boost/math/tools/toms748_solve.hpp>
#include <boost/random/normal_distribution.hpp>
#include <boost/random/student_t_distribution.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double tail_freedom = 3;  // degrees of freedom of heavy_tails

/// The mean of the values. Not 0, so that no estimator is right by chance of the origin.
constexpr double mean_value = 0.5;

/// Random as the distributions of Boost want it. Unlike those of the standard library they give the same numbers
/// everywhere.
struct Engine {
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }
  result_type operator()() const { return random.bits(); }
  Random& random;
};

template <typename Distribution>
std::vector<double> drawn(Distribution distribution, std::size_t count, Random& random) {
  const Engine engine{random};
  std::vector<double> numbers(count);
  for (double& number : numbers) number = distribution(engine);
  return numbers;
}

std::vector<double> normals(std::size_t count, Random& random) {
  return drawn(boost::random::normal_distribution<double>(), count, random);
}

/// softmax(sharpness scores); all weight on the largest for an infinite sharpness.
std::vector<double> softmax(const std::vector<double>& scores, double sharpness) {
  const auto largest = std::max_element(scores.begin(), scores.end());
  std::vector<double> weights(scores.size(), 0.0);
  if (sharpness == infinite) {
    weights[static_cast<std::size_t>(largest - scores.begin())] = 1;
    return weights;
  }
  double sum = 0;
  for (std::size_t key = 0; key < scores.size(); ++key)
    sum += weights[key] = std::exp(sharpness * (scores[key] - *largest));
  for (double& weight : weights) weight /= sum;
  return weights;
}

double log_n_eff(const std::vector<double>& scores, double largest, double sharpness) {
  double sum = 0, squares = 0;
  for (const double score : scores) {
    const double weight = std::exp(sharpness * (score - largest));
    sum += weight;
    squares += weight * weight;
  }
  return std::log(sum * sum / squares);
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// correlation a + sqrt(1 - correlation^2) b: has this correlation with a.
std::vector<double> correlated(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> mixed(a.size());
  const double rest = std::sqrt(1 - score_correlation * score_correlation);
  for (std::size_t i = 0; i < a.size(); ++i) mixed[i] = score_correlation * a[i] + rest * b[i];
  return mixed;
}

/// Adds noise to values and scores of the query. Its target is e without that noise.
void add_noise(SimulatedQuery& query, std::vector<double> scores, double sharpness, double deviation, Random& random) {
  query.target = dot(query.weights, query.values);
  const double value_noise = value_noise_share * deviation;
  const std::vector<double> along = normals(scores.size(), random);
  const std::vector<double> noise = correlated(along, normals(scores.size(), random));
  for (std::size_t key = 0; key < scores.size(); ++key) {
    query.values[key] += value_noise * along[key];
    if (sharpness != infinite) scores[key] += noisy_score_noise / sharpness * noise[key];
  }
  query.weights = softmax(scores, sharpness);
  query.score_noise = sharpness == infinite ? 0 : noisy_score_noise;
  query.token_precision.assign(scores.size(), 1 / (value_noise * value_noise));
  const double gradient = query.score_noise / value_noise;
  query.score_gradient = {gradient * score_correlation,
                          gradient * std::sqrt(1 - score_correlation * score_correlation)};
}

constexpr std::int64_t block_draws = 250;  // drawn one after the other from one stream
constexpr std::int64_t pilot_share = 4;    // draws that find an unknown truth, for each draw that is judged

/// Of a cell: E e less the target of the single queries, which for `dependent` stands for E e; and the true variance.
struct Truth {
  double shift = 0;
  double variance = 0;
  double error = 0;
};

struct Cell {
  TruthScenario scenario;
  double n_eff;
  double prior_variance;
  std::uint64_t stream;  ///< of the first block; each cell has 2^32 streams
};

SimulatedQuery draw(const Cell& cell, Random& random) {
  return simulate_query(cell.scenario, cell.n_eff, cell.prior_variance, random);
}

/// Calls add(sums of a block, query) for each draw, and joins the blocks in their order.
template <typename BlockSums, typename Add>
BlockSums over_draws(const Cell& cell, std::int64_t draws, std::uint64_t stream, std::size_t threads, const Add& add) {
  const auto blocks = static_cast<std::size_t>((draws + block_draws - 1) / block_draws);
  std::vector<BlockSums> sums(blocks);
  on_threads(blocks, threads, [&](std::size_t block) {
    Random random(stream, cell.stream + block);
    const std::int64_t first = static_cast<std::int64_t>(block) * block_draws;
    for (std::int64_t i = first; i < std::min(draws, first + block_draws); ++i) add(sums[block], draw(cell, random));
  });
  BlockSums all;
  for (const BlockSums& one : sums) all.add(one);
  return all;
}

/// Draws of their own, so that the truth and what is judged by it share no chance.
Truth pilot_truth(const Cell& cell, const TruthOptions& options) {
  struct Moments {
    void add(const Moments& other) {
      for (std::size_t power = 0; power < of.size(); ++power) of[power].add(other.of[power]);
    }
    double mean(std::size_t power) const { return of[power - 1].mean; }
    std::array<RunningSpread, 4> of;  // powers 1 to 4 of e less the target of the query
  };
  const auto moments = over_draws<Moments>(cell, pilot_share * options.draws, ~options.seed, options.threads,
                                           [](Moments& block, const SimulatedQuery& query) {
                                             double power = 1;
                                             for (RunningSpread& spread : block.of)
                                               spread.add(power *= query.estimate - query.target);
                                           });
  const double m = moments.mean(1);
  if (cell.scenario == TruthScenario::noisy_tokens) return {m, moments.mean(2), moments.of[1].error()};
  const double variance = moments.mean(2) - m * m;  // about E e
  const double fourth = moments.mean(4) - 4 * m * moments.mean(3) + 6 * m * m * moments.mean(2) - 3 * m * m * m * m;
  return {m, variance, std::sqrt((fourth - variance * variance) / static_cast<double>(moments.of[0].count))};
}

Truth truth_of(const Cell& cell, const TruthOptions& options) {
  switch (cell.scenario) {
    case TruthScenario::dependent:
    case TruthScenario::noisy_tokens:
      return pilot_truth(cell, options);
    default:  // e is a weighted mean of independent values, whatever the weights are
      return {0, value_variance(cell.scenario, cell.prior_variance) / cell.n_eff, 0};
  }
}

/// Of one estimator over draws.
struct Tally {
  void add(const Tally& other) {
    variance.add(other.variance);
    covered += other.covered;
    undefined += other.undefined;
  }
  RunningSpread variance;
  std::int64_t covered = 0, undefined = 0;
};

struct Tallies {
  void add(const Tallies& other) {
    for (std::size_t i = 0; i < of.size(); ++i) of[i].add(other.of[i]);
  }
  std::array<Tally, bft::all_estimators.size()> of;
};

double target_of(const SimulatedQuery& query, const Cell& cell, const Truth& truth) {
  return cell.scenario == TruthScenario::dependent ? query.target + truth.shift : query.target;
}

void judge(Tallies& tallies, const SimulatedQuery& query, const Cell& cell, const Truth& truth) {
  const bft::EstimatorOptions options{.prior_variance = cell.prior_variance, .score_noise = query.score_noise};
  const bft::TokenNoise noise{query.score_gradient, query.value_projection, query.token_precision};
  for (std::size_t i = 0; i < bft::all_estimators.size(); ++i) {
    Tally& tally = tallies.of[i];
    const double variance =
        bft::observe(bft::all_estimators[i], {query.weights, query.values, 1}, options, &noise).variance[0];
    if (std::isnan(variance)) {
      ++tally.undefined;
      continue;
    }
    tally.variance.add(variance);
    const double error = query.estimate - target_of(query, cell, truth);
    tally.covered += std::abs(error) <= normal_interval * std::sqrt(variance) ? 1 : 0;
  }
}

EstimatorAccuracy accuracy_of(bft::Estimator estimator, const Tally& tally, const Cell& cell, const Truth& truth) {
  if (tally.variance.count == 0) {
    const Measured none = Measured::none(fmt::format("not defined at n_eff = {:g}", cell.n_eff));
    return {estimator, tally.undefined, none, none, none, none, none, none};
  }
  const RunningSpread& v = tally.variance;
  if (truth.variance == 0) {
    const Measured none = Measured::none("the true variance is 0");
    return {estimator, tally.undefined, v.mean, none, none, none, none, none};
  }
  const double n = static_cast<double>(v.count), share = static_cast<double>(tally.covered) / n;
  return {estimator,
          tally.undefined,
          v.mean,
          v.mean / truth.variance - 1,
          v.error() / truth.variance,
          v.deviation() / truth.variance,
          share,
          std::sqrt(share * (1 - share) / n)};
}

TruthCell simulate_cell(const Cell& cell, const TruthOptions& options) {
  const Truth truth = truth_of(cell, options);
  const auto tallies =
      over_draws<Tallies>(cell, options.draws, options.seed, options.threads,
                          [&](Tallies& block, const SimulatedQuery& query) { judge(block, query, cell, truth); });
  const double variance = value_variance(cell.scenario, cell.prior_variance);
  TruthCell result{
      cell.scenario, cell.n_eff, truth.variance, truth.error, variance > 0 ? truth.shift / std::sqrt(variance) : 0, {}};
  for (std::size_t i = 0; i < bft::all_estimators.size(); ++i)
    result.estimators.push_back(accuracy_of(bft::all_estimators[i], tallies.of[i], cell, truth));
  return result;
}

/// The n_eff of the grid at which `holds` is true of the estimator.
template <typename Holds>
std::vector<double> where(const EstimatorTruth& truth, TruthScenario scenario, std::size_t estimator,
                          const Holds& holds) {
  std::vector<double> found;
  for (std::size_t i = 0; i < truth.options.n_eff.size(); ++i) {
    if (holds(truth.cell(scenario, i).estimators[estimator])) found.push_back(truth.options.n_eff[i]);
  }
  return found;
}

bool is_unbiased(const EstimatorAccuracy& accuracy) {
  return accuracy.bias && std::abs(*accuracy.bias) <= bias_margin;
}

bool is_covering(const EstimatorAccuracy& accuracy) {
  return accuracy.coverage && std::abs(*accuracy.coverage - 0.95) <= coverage_margin;
}

}  // namespace

double value_variance(TruthScenario scenario, double prior_variance) {
  if (scenario == TruthScenario::unit_variance) return 1;
  return scenario == TruthScenario::equal_values ? 0 : prior_variance;
}

double sharpness_for(const std::vector<double>& scores, double n_eff) {
  if (n_eff == 1) return infinite;
  const double largest = *std::max_element(scores.begin(), scores.end());
  const auto excess = [&](double sharpness) { return log_n_eff(scores, largest, sharpness) - std::log(n_eff); };
  double high = 1;
  while (excess(high) > 0) {
    high *= 2;
    ASSERT(high < 1e300, "no sharpness gives n_eff {}; two scores are equal", n_eff);
  }
  std::uintmax_t steps = 200;
  const auto [below, above] = boost::math::tools::toms748_solve(excess, high == 1 ? 0.0 : high / 2, high,
                                                                boost::math::tools::eps_tolerance<double>(45), steps);
  return 0.5 * (below + above);
}

SimulatedQuery simulate_query(TruthScenario scenario, double n_eff, double prior_variance, Random& random) {
  constexpr auto keys = static_cast<std::size_t>(truth_keys);
  const double variance = value_variance(scenario, prior_variance), deviation = std::sqrt(variance);
  const std::vector<double> standard =
      scenario == TruthScenario::heavy_tails
          ? drawn(boost::random::student_t_distribution<double>(tail_freedom), keys, random)
          : normals(keys, random);
  const double unit = scenario == TruthScenario::heavy_tails ? std::sqrt((tail_freedom - 2) / tail_freedom) : 1;
  std::vector<double> scores = normals(keys, random);
  if (scenario == TruthScenario::dependent) scores = correlated(standard, scores);
  const double sharpness = sharpness_for(scores, n_eff);

  SimulatedQuery query;
  query.weights = softmax(scores, sharpness);
  for (const double value : standard) query.values.push_back(mean_value + deviation * unit * value);
  query.target = mean_value;
  query.score_noise = 0;
  query.value_projection = {1, 0};
  query.score_gradient = {0, 0};
  query.token_precision.assign(keys, 1 / variance);
  if (scenario == TruthScenario::dependent && sharpness != infinite) {
    // All tokens have the same true part, so the whole score is noise.
    query.score_noise = sharpness;
    query.score_gradient = {sharpness / deviation * score_correlation,
                            sharpness / deviation * std::sqrt(1 - score_correlation * score_correlation)};
  }
  if (scenario == TruthScenario::noisy_tokens) add_noise(query, scores, sharpness, deviation, random);
  query.estimate = dot(query.weights, query.values);
  return query;
}

std::string_view name_of(TruthScenario scenario) {
  switch (scenario) {
    case TruthScenario::independent:
      return "independent";
    case TruthScenario::unit_variance:
      return "unit_variance";
    case TruthScenario::dependent:
      return "dependent";
    case TruthScenario::heavy_tails:
      return "heavy_tails";
    case TruthScenario::noisy_tokens:
      return "noisy_tokens";
    case TruthScenario::equal_values:
      return "equal_values";
  }
  throw_internal_error(__FILE__, __LINE__, "a scenario without a name");
}

std::string_view description_of(TruthScenario scenario) {
  switch (scenario) {
    case TruthScenario::independent:
      return "normal values with the variance of the prior, weights drawn apart from them";
    case TruthScenario::unit_variance:
      return "normal values of variance 1, weights drawn apart from them";
    case TruthScenario::dependent:
      return "normal values with the variance of the prior; scores have correlation 0.5 with them";
    case TruthScenario::heavy_tails:
      return "Student t values (3 degrees of freedom), variance of the prior, weights drawn apart from them";
    case TruthScenario::noisy_tokens:
      return "fixed values and scores, seen with noise: 0.3 of the values' deviation, and 0.3 on scores";
    case TruthScenario::equal_values:
      return "all values equal, weights drawn apart from them";
  }
  throw_internal_error(__FILE__, __LINE__, "a scenario without a description");
}

std::string_view target_of(TruthScenario scenario) {
  switch (scenario) {
    case TruthScenario::dependent:
      return "the mean of e over such queries, which is above that of the values";
    case TruthScenario::noisy_tokens:
      return "e without the noise";
    default:
      return "the mean of the values";
  }
}

void check(const TruthOptions& options) {
  CHECK(options.draws >= 100 && options.draws <= 10'000'000, "--draws: {}; must be 100 to 10000000", options.draws);
  CHECK(options.dimensions >= 1 && options.dimensions <= 65536, "--dimensions: {}; must be 1 to 65536",
        options.dimensions);
  CHECK(!options.n_eff.empty(), "--n-eff: no number; give some from 1 to 200");
  for (std::size_t i = 0; i < options.n_eff.size(); ++i) {
    CHECK(options.n_eff[i] >= 1 && options.n_eff[i] <= 200, "--n-eff: {}; must be 1 to 200, as a query sees {} keys",
          options.n_eff[i], truth_keys);
    CHECK(i == 0 || options.n_eff[i] > options.n_eff[i - 1], "--n-eff: {} after {}; must rise", options.n_eff[i],
          options.n_eff[i - 1]);
  }
  CHECK(options.threads >= 1, "threads: {}; must be at least 1", options.threads);
}

const TruthCell& EstimatorTruth::cell(TruthScenario scenario, std::size_t n_eff_index) const {
  return cells.at(static_cast<std::size_t>(scenario) * options.n_eff.size() + n_eff_index);
}

const TrustedAt& EstimatorTruth::trusted(TruthScenario scenario, bft::Estimator estimator) const {
  return trust.at(static_cast<std::size_t>(scenario) * bft::all_estimators.size() +
                  static_cast<std::size_t>(estimator));
}

EstimatorTruth estimator_truth(const TruthOptions& options, const std::function<void(const TruthCell&)>& on_cell) {
  check(options);
  EstimatorTruth truth{options, 1 / static_cast<double>(options.dimensions), {}, {}};
  for (const TruthScenario scenario : truth_scenarios) {
    for (const double n_eff : options.n_eff) {
      const Cell cell{scenario, n_eff, truth.prior_variance, static_cast<std::uint64_t>(truth.cells.size()) << 32};
      truth.cells.push_back(simulate_cell(cell, options));
      if (on_cell) on_cell(truth.cells.back());
    }
  }
  for (const TruthScenario scenario : truth_scenarios) {
    if (scenario == TruthScenario::equal_values) continue;
    for (std::size_t i = 0; i < bft::all_estimators.size(); ++i)
      truth.trust.push_back({scenario, bft::all_estimators[i], where(truth, scenario, i, is_unbiased),
                             where(truth, scenario, i, is_covering)});
  }
  return truth;
}

OrderedJson to_json(const EstimatorTruth& truth) {
  OrderedJson json = {
      {"draws", truth.options.draws}, {"dimensions", truth.options.dimensions}, {"seed", truth.options.seed},
      {"keys", truth_keys},           {"prior_variance", truth.prior_variance}, {"scenarios", OrderedJson::array()}};
  for (const TruthScenario scenario : truth_scenarios) {
    OrderedJson entry = {{"scenario", name_of(scenario)},
                         {"description", description_of(scenario)},
                         {"target", target_of(scenario)},
                         {"cells", OrderedJson::array()}};
    for (std::size_t i = 0; i < truth.options.n_eff.size(); ++i) {
      const TruthCell& cell = truth.cell(scenario, i);
      OrderedJson cell_json = {{"n_eff", cell.n_eff},
                               {"true_variance", cell.true_variance},
                               {"true_variance_error", cell.truth_error},
                               {"shift", cell.shift}};
      for (const EstimatorAccuracy& accuracy : cell.estimators) {
        OrderedJson one = {{"undefined", accuracy.undefined}};
        put(one, "mean_variance", accuracy.mean_variance);
        put(one, "bias", accuracy.bias);
        put(one, "bias_error", accuracy.bias_error);
        put(one, "spread", accuracy.spread);
        put(one, "coverage", accuracy.coverage);
        put(one, "coverage_error", accuracy.coverage_error);
        cell_json["estimators"][std::string(bft::name_of(accuracy.estimator))] = std::move(one);
      }
      entry["cells"].push_back(std::move(cell_json));
    }
    if (scenario != TruthScenario::equal_values) {
      for (const bft::Estimator estimator : bft::all_estimators) {
        const TrustedAt& at = truth.trusted(scenario, estimator);
        entry["trusted"][std::string(bft::name_of(estimator))] = {{"unbiased_at_n_eff", at.unbiased},
                                                                  {"covering_at_n_eff", at.covering}};
      }
    }
    json["scenarios"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::analyses
