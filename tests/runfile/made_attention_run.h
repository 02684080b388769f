#pragma once

#include "core/random.h"
#include "core/user_attention.h"
#include "runfile/attention_run.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace gainlens::testing {

/// A made-up sweep of recommenders.
struct MadeSweep {
  std::vector<std::string> arms = {"plain", "bft"};
  std::vector<std::uint64_t> seeds = {0, 1, 2};
  std::size_t users = 60;
  std::int64_t layers = 2, heads = 2;
  bool masked = false;
};

/// n_eff / keys falls with the length of the history in head 0.0, and does not depend on it elsewhere; K grows with the
/// frequency of the last item in head 1.1. The first arm has no gain of its own.
inline UserAttention made_attention(const runfile::AttentionRun& run, const MadeSweep& made, bool gained,
                                    Random& random) {
  UserAttention found{static_cast<std::int64_t>(made.users), made.layers, made.heads, {}};
  const auto number = [](double value) { return static_cast<double>(static_cast<float>(value)); };  // as stored
  for (const AttentionNumber& one : attention_numbers) found.numbers[std::string(one.name)];
  for (std::size_t user = 0; user < made.users; ++user) {
    const auto keys = static_cast<double>(run.users.history_length[user]);
    for (std::int64_t layer = 0; layer < made.layers; ++layer) {
      for (std::int64_t head = 0; head < made.heads; ++head) {
        const bool first = layer == 0 && head == 0, last = layer == 1 && head == 1;
        const double noise = 0.1 * random.uniform();
        const double share = number(first ? 0.9 / keys + noise / 10 : 0.5 + noise);
        const double popular = static_cast<double>(run.last_count(user));
        const double gain = number(0.5 + 0.2 * noise + (last ? 0.3 * popular / (20 + popular) : 0));
        const std::vector<std::pair<const char*, double>> values = {
            {"n_eff", number(1 + share * keys)},
            {"n_eff_share", share},
            {"kalman_gain", gain},
            {"model_gain", gained ? number(0.9 * gain) : std::numeric_limits<double>::quiet_NaN()},
            {"entropy", number(0.7 * std::log(1 + keys))},
            {"first_mass", number(0.3 / keys)},
            {"last_mass", number(0.4 + noise)},
            {"mask_mass", made.masked ? number(0.1 + noise) : std::numeric_limits<double>::quiet_NaN()}};
        for (const auto& [name, value] : values) found.numbers.find(name)->second.push_back(value);
      }
    }
  }
  return found;
}

inline runfile::AttentionRun made_attention_run(const MadeSweep& made = {}) {
  runfile::AttentionRun run;
  Random random(3);
  const std::size_t items = 25;
  run.users.item_train_count.assign(items, 0);
  const auto item = [&] {
    const double at = random.uniform();
    return static_cast<std::size_t>(at * at * static_cast<double>(items));  // small ids are more popular
  };
  for (std::size_t user = 0; user < made.users; ++user) {
    run.units.push_back("user-" + std::to_string(user));
    const auto length = static_cast<std::int64_t>(2 + random.below(9));
    for (std::int64_t i = 0; i < length; ++i) ++run.users.item_train_count[item()];
    run.users.training_length.push_back(length);
    run.users.history_length.push_back(length + 1);
    run.users.target.push_back(static_cast<std::int64_t>(item()) + 1);
    run.last_item.push_back(static_cast<std::int64_t>(item()) + 1);
  }
  run.request = {{"backbone", made.masked ? "bert4rec" : "sasrec"},
                 {"data", {{"name", "made"}, {"split", "0123456789abcdef"}}}};
  run.arms = made.arms;
  run.seeds = made.seeds;
  run.results.resize(run.arms.size() * run.seeds.size());
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    Random own(i, 1);
    run.results[i].emplace();
    run.swept.emplace_back(made_attention(run, made, i >= run.seeds.size(), own));
  }
  return run;
}

}  // namespace gainlens::testing
