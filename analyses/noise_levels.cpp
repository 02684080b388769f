#include "analyses/noise_levels.h"

#include "core/check.h"
#include "core/nearest.h"
#include "runfile/noise_level.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <span>

namespace gainlens::analyses {
namespace {

using runfile::ExperimentRun;
using runfile::TrainedSeed;

/// The run of one arm against another: what two_arms() is made from.
struct Source {
  const ExperimentRun& run;
  const NoiseLevels& levels;
  /// [arm][level] place of the label in the run
  std::vector<std::vector<std::optional<std::size_t>>> places;
};

std::vector<std::size_t> levels_of(const NoiseLevels& levels, const NoiseRange& range) {
  if (range.only) return {*range.only};
  std::vector<std::size_t> kept;
  for (std::size_t level = 0; level < levels.levels.size(); ++level)
    if (level != range.without) kept.push_back(level);
  return kept;
}

/// Mean over the levels of the score of each unit; nothing if a level is not finished.
std::optional<TrainedSeed> mean_over(const Source& source, std::size_t arm, const std::vector<std::size_t>& levels,
                                     std::size_t seed) {
  TrainedSeed mean;
  for (const std::size_t level : levels) {
    const std::optional<std::size_t> place = source.places[arm][level];
    if (!place || !source.run.result(*place, seed)) return std::nullopt;
    const TrainedSeed& own = *source.run.result(*place, seed);
    for (const UnitScore& score : source.run.unit_scores) {
      const std::span<const double> values =
          std::span(own.scores.at(score.name)).subspan(source.levels.selection_units);
      std::vector<double>& sums = mean.scores[score.name];
      sums.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
    }
  }
  for (auto& [name, sums] : mean.scores) {
    for (double& value : sums) value /= static_cast<double>(levels.size());
  }
  return mean;
}

/// The baseline and another arm as a run of two arms, with the seeds that both have at all levels of the range.
Maybe<ExperimentPair> two_arms(const Source& source, const std::filesystem::path& path, std::size_t arm,
                               const NoiseRange& range) {
  const std::vector<std::size_t> levels = levels_of(source.levels, range);
  auto pair = std::make_shared<ExperimentRun>();
  pair->request = source.run.request;
  pair->request["data"].erase("selection_rows");  // none of the units that are left
  pair->unit_scores = source.run.unit_scores;
  pair->units = {source.run.units.begin() + static_cast<std::ptrdiff_t>(source.levels.selection_units),
                 source.run.units.end()};
  pair->arms = {source.levels.arms.front(), source.levels.arms[arm]};
  std::vector<std::optional<TrainedSeed>> candidates;
  for (std::size_t seed = 0; seed < source.run.seeds.size(); ++seed) {
    auto baseline = mean_over(source, 0, levels, seed), candidate = mean_over(source, arm, levels, seed);
    if (!baseline || !candidate) continue;
    pair->seeds.push_back(source.run.seeds[seed]);
    pair->results.push_back(std::move(baseline));
    candidates.push_back(std::move(candidate));
  }
  if (pair->seeds.empty()) return Maybe<ExperimentPair>::none("no seed has finished both arms");
  std::ranges::move(candidates, std::back_inserter(pair->results));
  return ExperimentPair{{path, pair, 0, pair->arms[0]}, {path, pair, 1, pair->arms[1]}};
}

/// The paired t over the pairs of seed and level. The gains of single levels are known.
std::vector<Measured> naive_p_of(const NoiseLevels& levels, const NoiseGain& gain) {
  std::vector<Measured> found;
  for (std::size_t score = 0; score < gain.comparison->scores.size(); ++score) {
    SeedMeans pairs;
    for (const std::size_t level : levels_of(levels, gain.range)) {
      const auto single = std::ranges::find_if(levels.gains, [&](const NoiseGain& one) {
        return one.arm == gain.arm && one.range.only == level && one.comparison;
      });
      if (single == levels.gains.end()) continue;
      for (const double difference : single->comparison->scores[score].seed_differences) {
        pairs.baseline.push_back(0);
        pairs.candidate.push_back(difference);
        pairs.differences.push_back(difference);
      }
    }
    found.push_back(compare_seeds(pairs).naive_p);
  }
  return found;
}

NoiseCell cell_of(const Source& source, std::size_t arm, std::size_t level) {
  NoiseCell cell{arm, level, {}, {}};
  const std::optional<std::size_t> place = source.places[arm][level];
  for (std::size_t seed = 0; place && seed < source.run.seeds.size(); ++seed) {
    const auto& result = source.run.result(*place, seed);
    if (!result) continue;
    cell.seeds.push_back(source.run.seeds[seed]);
    for (const auto& [name, value] : result->test)
      if (!runfile::is_of_start(name)) cell.means[name].push_back(value);
  }
  return cell;
}

/// The names of the arms as they come, the baseline first.
std::vector<std::string> arms_of(const ExperimentRun& run, const std::string& baseline,
                                 const std::filesystem::path& path) {
  std::vector<std::string> arms;
  for (const std::string& label : run.arms) {
    const std::string arm = runfile::arm_of(label);
    if (runfile::noise_of_variant(runfile::variant_of(label)) && std::ranges::find(arms, arm) == arms.end())
      arms.push_back(arm);
  }
  if (baseline.empty()) return arms;
  const auto found = std::ranges::find(arms, baseline);
  CHECK(found != arms.end(), "{}: has no arm '{}', but {}{}", printable(path.string()), printable(baseline, 60),
        fmt::join(arms, ", "), did_you_mean(baseline, arms));
  std::rotate(arms.begin(), found, found + 1);
  return arms;
}

}  // namespace

std::vector<const NoiseGain*> NoiseLevels::rows() const {
  std::vector<const NoiseGain*> rows;
  for (const NoiseGain& gain : gains)
    if (gain.comparison && !gain.range.without) rows.push_back(&gain);
  return rows;
}

const NoiseCell* NoiseLevels::cell(std::size_t arm, std::size_t level) const {
  const auto found =
      std::ranges::find_if(cells, [&](const NoiseCell& one) { return one.arm == arm && one.level == level; });
  return found == cells.end() ? nullptr : &*found;
}

bool has_noise_levels(const runfile::ExperimentRun& run) {
  return std::ranges::any_of(run.arms, [](const std::string& label) {
    return runfile::noise_of_variant(runfile::variant_of(label)).has_value();
  });
}

NoiseLevels noise_levels(const std::filesystem::path& path, const std::shared_ptr<const ExperimentRun>& run,
                         const std::string& baseline, const ExperimentOptions& options) {
  CHECK(has_noise_levels(*run), "{}: its arms have no levels of noise", printable(path.string()));
  for (const std::string& label : run->arms) {
    const auto level = runfile::noise_of_variant(runfile::variant_of(label));
    CHECK(level && *level >= 0 && *level <= 100, "{}: the arm '{}' has no level of noise, 0 to 100 percent",
          printable(path.string()), printable(label, 60));
  }
  NoiseLevels levels{.data_set = run->data_name(), .unit = run->unit(), .arms = arms_of(*run, baseline, path)};
  std::set<double> percents;
  for (const std::string& label : run->arms) {
    if (const auto level = runfile::noise_of_variant(runfile::variant_of(label))) percents.insert(*level);
  }
  levels.levels = {percents.begin(), percents.end()};
  levels.selection_units = run->selection_units();  // with nothing else all are counted
  Source source{*run, levels, {}};
  for (const std::string& arm : levels.arms) {
    auto& places = source.places.emplace_back();
    for (const double percent : levels.levels) {
      const auto found = std::ranges::find_if(run->arms, [&](const std::string& label) {
        return runfile::arm_of(label) == arm && runfile::noise_of_variant(runfile::variant_of(label)) == percent;
      });
      places.push_back(found == run->arms.end()
                           ? std::nullopt
                           : std::optional<std::size_t>(static_cast<std::size_t>(found - run->arms.begin())));
    }
  }
  const std::size_t count = levels.levels.size();
  for (std::size_t arm = 0; arm < levels.arms.size(); ++arm) {
    for (std::size_t level = 0; level < count; ++level) {
      NoiseCell cell = cell_of(source, arm, level);
      if (!cell.seeds.empty()) levels.cells.push_back(std::move(cell));
    }
  }
  CHECK(!levels.cells.empty(), "{}: no training is finished; repeat the command that trains, which continues",
        printable(path.string()));
  for (std::size_t arm = 1; arm < levels.arms.size(); ++arm) {
    std::vector<NoiseRange> ranges;
    for (std::size_t level = 0; level < count; ++level) ranges.push_back({.only = level});
    if (count > 1) ranges.push_back({});
    for (std::size_t level = 0; count > 2 && level < count; ++level) ranges.push_back({.without = level});
    for (const NoiseRange& range : ranges) {
      const Maybe<ExperimentPair> pair = two_arms(source, path, arm, range);
      levels.gains.push_back({arm, range,
                              pair ? Maybe<ExperimentComparison>(compare_arms(*pair, options))
                                   : Maybe<ExperimentComparison>::none(pair.reason())});
      if (pair) levels.gains.back().naive_p = naive_p_of(levels, levels.gains.back());
    }
  }
  std::vector<ExperimentComparison> compared;
  for (const NoiseGain* row : levels.rows()) compared.push_back(*row->comparison);
  if (!compared.empty()) levels.decided = decide(compared);
  return levels;
}

OrderedJson to_json(const NoiseLevels& levels) {
  OrderedJson json = {{"data_set", levels.data_set},
                      {"unit", levels.unit},
                      {"baseline", levels.arms.front()},
                      {"levels", levels.levels},
                      {"selection_units", levels.selection_units},
                      {"cells", OrderedJson::array()},
                      {"gains", OrderedJson::array()}};
  for (const NoiseCell& cell : levels.cells) {
    OrderedJson own = {{"arm", levels.arms[cell.arm]}, {"noise", levels.levels[cell.level]}, {"seeds", cell.seeds}};
    for (const auto& [name, values] : cell.means) own[name] = to_json(arm_summary(values));
    json["cells"].push_back(std::move(own));
  }
  std::size_t row = 0;
  for (const NoiseGain& gain : levels.gains) {
    OrderedJson own = {{"arm", levels.arms[gain.arm]}};
    own["levels"] = OrderedJson::array();
    for (const std::size_t level : levels_of(levels, gain.range)) own["levels"].push_back(levels.levels[level]);
    if (gain.comparison) {
      own["comparison"] = to_json(*gain.comparison);
      for (std::size_t score = 0; score < gain.naive_p.size(); ++score)
        put(own["comparison"]["scores"][gain.comparison->scores[score].score.name],
            "paired_t_over_seeds_and_levels_naive_p", gain.naive_p[score]);
      for (const GainDecision& decision : levels.decided) {
        if (gain.range.without || decision.comparison != row) continue;
        own["comparison"]["scores"][gain.comparison->scores[decision.metric].score.name]["decision"] =
            to_json(decision);
      }
      row += gain.range.without ? 0 : 1;
    } else {
      own["comparison"] = nullptr;
      own["reason"] = gain.comparison.reason();
    }
    json["gains"].push_back(std::move(own));
  }
  return json;
}

}  // namespace gainlens::analyses
