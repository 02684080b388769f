#pragma once

#include "runfile/recommend_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

// Numbers of recommender reports, computed from the ranks once more and in another way than the program does.

namespace gainlens::testing {

/// Mean over users of a metric "hr@5", "ndcg@20" or "mrr".
inline double metric_of(const std::string& name, const std::vector<float>& ranks) {
  const double cutoff = name.find('@') == std::string::npos ? 1e9 : std::stod(name.substr(name.find('@') + 1));
  double sum = 0;
  for (const float rank : ranks) {
    const double gain = name[0] == 'h' ? 1 : name[0] == 'n' ? std::log(2.0) / std::log(1.0 + rank) : 1.0 / rank;
    sum += rank <= cutoff ? gain : 0;
  }
  return sum / static_cast<double>(ranks.size());
}

struct MeanAndDeviation {
  double mean, deviation;
};

inline MeanAndDeviation over(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value, squares += value * value;
  return {sum / n, std::sqrt(std::max((squares - sum * sum / n) / (n - 1), 0.0))};
}

/// The metric of each finished seed of an arm, over the users that `takes(user)`.
template <typename Takes>
std::vector<double> by_seed(const runfile::RecommendRun& run, std::size_t arm, const std::string& metric,
                            const Takes& takes) {
  std::vector<double> values;
  for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
    if (!run.result(arm, seed)) continue;
    std::vector<float> ranks;
    for (std::size_t user = 0; user < run.units.size(); ++user) {
      if (takes(user)) ranks.push_back(run.result(arm, seed)->scores.at("rank")[user]);
    }
    values.push_back(metric_of(metric, ranks));
  }
  return values;
}

inline std::vector<double> by_seed(const runfile::RecommendRun& run, std::size_t arm, const std::string& metric) {
  return by_seed(run, arm, metric, [](std::size_t) { return true; });
}

/// [user] the fifth of the catalogue that the test item is in, from 0: items by training count, then by id.
inline std::vector<std::size_t> fifth_of_items(const runfile::RecommendRun& run) {
  std::vector<std::size_t> fifths;
  const auto& counts = run.item_train_count;
  for (const std::int64_t target : run.target) {
    const auto item = static_cast<std::size_t>(target - 1);
    std::size_t before = 0;  // items that come before this one
    for (std::size_t other = 0; other < counts.size(); ++other)
      before += counts[other] < counts[item] || (counts[other] == counts[item] && other < item) ? 1 : 0;
    fifths.push_back(5 * before / counts.size());
  }
  return fifths;
}

/// ".0881", as papers print shares.
inline std::string printed(double value) {
  const std::string text = fmt::format("{:.4f}", value);
  return text.starts_with("0.") ? text.substr(1) : text;
}
inline std::string printed(const MeanAndDeviation& values) {
  return printed(values.mean) + " (" + printed(values.deviation) + ")";
}
/// "+3.8%", with a wide minus.
inline std::string printed_change(double share) {
  const std::string text = fmt::format("{:+.1f}%", 100 * share);
  return text.starts_with('-') ? "−" + text.substr(1) : text;
}

}  // namespace gainlens::testing
