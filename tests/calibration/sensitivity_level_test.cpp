// How often the answers of `gainlens sensitivity` are wrong with five seeds: all settings share one reference.
#include "analyses/sensitivity.h"
#include "core/random.h"
#include "runfile/made_recommend_run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gainlens::analyses {
namespace sensitivity_level_test {

/// The truth of simulated runs. Every gain acts like a user's rate x (1 - rate).
struct World {
  const char* name;
  double own;   ///< half width of the gain that the users of one target item have of a setting, in every run
  double runs;  ///< of the effect of a run on all users: standard deviation
};

constexpr std::size_t users = 600, users_of_item = 3, seeds = 5, knobs = 7, settings_of_knob = 4;

/// The rate of most users is near 0: u^8. Its mean is 1/9, and the mean of rate x (1 - rate) is 1/9 - 1/17.
constexpr double gain_of_ratio = (1.0 / 9) / (1.0 / 9 - 1.0 / 17);

double bell(Random& random) {  // of standard deviation 1
  return 2 * (random.uniform() + random.uniform() + random.uniform() - 1.5);
}

/// Hits of each user in each run of one arm.
/// @param ratio  of its mean hit rate to that of the reference
/// @param common  [seed] effects that all arms have
void add_arm(runfile::RecommendRun& run, const std::vector<double>& rate, const std::vector<double>& common,
             double ratio, const World& world, Random& random) {
  std::vector<double> own(users / users_of_item);
  for (double& each : own) each = world.own * (2 * random.uniform() - 1);
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const double of_run = common[seed] + world.runs * bell(random) + (ratio - 1) * gain_of_ratio;
    runfile::TrainedSeed result;
    result.best_epoch = 1;
    for (std::size_t user = 0; user < users; ++user) {
      const double gain = of_run + own[user / users_of_item];
      const bool hit = random.uniform() < rate[user] + gain * rate[user] * (1 - rate[user]);
      result.scores["rank"].push_back(hit ? 1 : 100);
    }
    result.test["hr@10"] = mean_of({RankingMetric::Kind::hit, 10}, result.scores.at("rank"));
    run.results.emplace_back(std::move(result));
  }
}

/// @param ratio  of the mean of the first setting of each knob to that of the reference; the others are as good as it
Sensitivity simulate(const World& world, double ratio, double margin, std::uint64_t number) {
  Random random(number, 91);
  runfile::RecommendRun run;
  run.request = {{"backbone", "made"}, {"data", {{"name", "made"}, {"split", "made"}}}};
  std::vector<double> rate(users), common(seeds);
  for (std::size_t user = 0; user < users; ++user) {
    rate[user] = std::pow(random.uniform(), 8);
    run.units.push_back(std::to_string(user));
    run.target.push_back(static_cast<std::int64_t>(1 + user / users_of_item));
  }
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    run.seeds.push_back(seed);
    common[seed] = 0.05 * bell(random);
  }
  run.arms.emplace_back("bft");
  add_arm(run, rate, common, 1, world, random);
  for (std::size_t knob = 0; knob < knobs; ++knob) {
    const std::string key = fmt::format("knob{}", knob);
    run.request["training"][key] = 0;
    for (std::size_t setting = 1; setting <= settings_of_knob; ++setting) {
      const std::string name = fmt::format("{}-{}", key, setting);
      run.request["variants"][name][key] = setting;
      run.arms.push_back("bft/" + name);
      add_arm(run, rate, common, setting == 1 ? ratio : 1, world, random);
    }
  }
  return sensitivity("simulated", std::make_shared<const runfile::RecommendRun>(std::move(run)), {.margin = margin});
}

/// Shares of what was found.
struct Found {
  double any_differs = 0;  ///< of the experiments, that say of any knob that it differs
  double any_flat = 0;     ///< that say of any knob that it is flat
  double flat_knobs = 0;   ///< of the knobs
  double first_flat = 0;   ///< of the first settings of the knobs, that lie within the margin
  double other_flat = 0;   ///< of the other settings
  double single_p = 0;     ///< of the other settings, with p at most 5%
};

Found find(const World& world, double ratio, double margin, std::uint64_t experiments) {
  Found found;
  const auto share = 1 / static_cast<double>(experiments);
  for (std::uint64_t number = 0; number < experiments; ++number) {
    const Sensitivity result = simulate(world, ratio, margin, number);
    const auto has = [&](KnobAnswer answer) {
      return static_cast<double>(std::ranges::count(result.knobs, answer, &KnobResult::answer));
    };
    const double flat = has(KnobAnswer::flat);
    found.any_flat += flat > 0 ? share : 0;
    found.flat_knobs += flat * share / knobs;
    bool differs = false;
    for (const KnobResult& knob : result.knobs) {
      for (std::size_t i = 0; i < knob.settings.size(); ++i) {
        const SettingResult& setting = knob.settings[i];
        differs = differs || setting.differs();
        if (i == 0) {
          found.first_flat += setting.is_flat() ? share / knobs : 0;
          continue;
        }
        constexpr auto others = static_cast<double>(knobs * (settings_of_knob - 1));
        found.other_flat += setting.is_flat() ? share / others : 0;
        found.single_p += setting.p && *setting.p <= 0.05 ? share / others : 0;
      }
    }
    found.any_differs += differs ? share : 0;
  }
  ::testing::Test::RecordProperty(
      fmt::format("{}, ratio {}, margin {}", world.name, ratio, margin),
      fmt::format("any differs {:.3f}, any flat {:.3f}, knobs flat {:.3f}, first flat {:.3f}, others flat {:.3f}, "
                  "single p {:.3f}",
                  found.any_differs, found.any_flat, found.flat_knobs, found.first_flat, found.other_flat,
                  found.single_p));
  return found;
}

constexpr World worlds[] = {{"equal users", 0, 0.05}, {"own gains of items", 0.3, 0.05}, {"strong runs", 0, 0.25}};

TEST(SensitivityLevel, NoKnobDiffersWhereNoneDoes) {
  for (const World& world : worlds) EXPECT_LE(find(world, 1, 0.01, 60).any_differs, 0.08) << world.name;
}

TEST(SensitivityLevel, ASettingAtTheMarginIsSeldomFlat) {
  for (const World& world : worlds) {
    const double margin = world.runs > 0.1 ? 0.5 : 0.4;  // with which most of what is equal is shown to be
    for (const double ratio : {1 + margin, 1 / (1 + margin)}) {
      const Found found = find(world, ratio, margin, 25);
      EXPECT_LE(found.first_flat, 0.08) << world.name << ' ' << ratio;
      EXPECT_LE(found.flat_knobs, 0.08) << world.name << ' ' << ratio;
      EXPECT_GE(found.other_flat, 0.5) << world.name << ' ' << ratio;  // a test that could be failed
    }
  }
}

}  // namespace sensitivity_level_test
}  // namespace gainlens::analyses
