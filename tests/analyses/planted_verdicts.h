#pragma once

#include "analyses/synthetic_run.h"
#include "analyses/verdicts.h"
#include "support/shared_data.h"

#include <cmath>
#include <optional>

namespace gainlens::analyses {

/// What a planted run shows.
struct Planted {
  double gain_slope = 1;           ///< slope of K over the heads; the BOS mass rises over the heads
  double without_first_slope = 1;  ///< slope of K without key 0
  double scaled_slope = 1;         ///< slope of scaled K, second half
  double gate_change = 0;          ///< change of logit(gate) from 16 to 64 tokens
  double gate_noise = 0.001;       ///< noise of logit(gate) from chunk to chunk
};

/// Eight layers of four heads, four chunks of 16 and of 64 tokens.
inline testing::SyntheticRun run_to_judge(const Planted& planted) {
  testing::SyntheticRun run;
  run.lengths = {16, 64};
  run.samples = 4;
  run.layers = 8;
  run.heads = run.kv_heads = 4;
  run.value = [planted](const testing::CellKey& key) -> std::optional<double> {
    const auto head = static_cast<double>(key.head);
    const double scatter = std::sin(7.0 * static_cast<double>(key.sample) + 3.0 * static_cast<double>(key.length));
    if (key.name == "summary/bos_mass") return 0.01 + 0.02 * head;
    if (key.name == "summary/kalman_gain_scaled_half") return 0.6 + 0.02 * planted.scaled_slope * head;
    if (key.name.starts_with("summary/kalman_gain") && !key.name.ends_with("_var")) {
      return 0.6 + 0.02 * planted.gain_slope * head + (key.length == 64 ? 0.05 : 0.0);
    }
    if (key.name == "summary/without_first_kalman_gain") return 0.6 + 0.02 * planted.without_first_slope * head;
    if (key.name == "summary/observation_precision") return (key.length == 64 ? 20.0 : 10.0) * (1 + 0.01 * scatter);
    if (key.name == "summary/gate") {
      const double logit = (key.length == 64 ? planted.gate_change : 0.0) + planted.gate_noise * scatter;
      return 1 / (1 + std::exp(-logit));
    }
    return std::nullopt;
  };
  return run;
}

/// Writes the run and rules on it as a report does.
inline Verdicts verdicts_of(const testing::SyntheticRun& run) {
  const testing::TemporaryFolder folder;
  const auto reader = testing::write_run(folder.path() / "run", run);
  const Options options;
  return verdicts(context(reader, options), context_by_attention(reader, options), gain_theory(reader, options),
                  sink_vs_k(reader, options));
}

/// The ruling on prediction 1.
inline const Prediction& sink(const Verdicts& verdicts) {
  return verdicts.predictions.at(0);
}

}  // namespace gainlens::analyses
