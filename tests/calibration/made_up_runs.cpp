#include "calibration/made_up_runs.h"

#include "analyses/synthetic_run.h"
#include "calibration/simulation.h"
#include "core/random.h"
#include "support/shared_data.h"

#include <cmath>
#include <vector>

namespace gainlens::testing {
namespace {

/// [layer, head] of a drift with depth plus noise of the layer and of the head, mapped to (0, 1).
std::vector<double> drifting(const SyntheticRun& run, double drift, Random& random) {
  std::vector<double> values;
  for (std::int64_t layer = 0; layer < run.layers; ++layer) {
    const double depth = static_cast<double>(layer) / static_cast<double>(run.layers - 1) - 0.5;
    const double of_layer = drift * depth + normal(random);
    for (std::int64_t head = 0; head < run.heads; ++head)
      values.push_back(1 / (1 + std::exp(-0.2 * (of_layer + 0.5 * normal(random)))));
  }
  return values;
}

}  // namespace

std::map<analyses::Ruling, std::size_t> rule_on_made_up_runs(const MadeUpRuns& made_up) {
  std::map<analyses::Ruling, std::size_t> counts;
  for (std::size_t number = 0; number < made_up.runs; ++number) {
    Random random(made_up.seed, number);
    SyntheticRun run;
    run.lengths = {64};
    run.samples = 3;
    run.layers = 24;
    run.heads = 4;
    run.kv_heads = made_up.kv_heads;
    const std::vector<double> mass = drifting(run, made_up.drift, random), gain = drifting(run, made_up.drift, random);
    run.value = [&](const CellKey& key) -> std::optional<double> {
      const auto head = static_cast<std::size_t>(key.layer * run.heads + key.head);
      if (key.name == "summary/bos_mass") return mass[head];
      // the controls agree with K, so that they do not hide what the test of K does
      const bool is_gain = key.name.find("kalman_gain") != std::string_view::npos && !key.name.ends_with("_var");
      return is_gain && key.name.starts_with("summary/") ? std::optional(gain[head]) : std::nullopt;
    };
    const TemporaryFolder folder;
    const auto reader = write_run(folder.path() / "run", run);
    const auto verdicts = analyses::verdicts(analyses::context(reader), analyses::context_by_attention(reader),
                                             analyses::gain_theory(reader), analyses::sink_vs_k(reader));
    ++counts[verdicts.predictions.front().ruling];
  }
  return counts;
}

}  // namespace gainlens::testing
