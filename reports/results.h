#pragma once

#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/heatmap.h"
#include "analyses/sink_vs_k.h"
#include "analyses/sinks.h"
#include "analyses/value_norms.h"
#include "runfile/run_reader.h"

#include <string>
#include <utility>
#include <vector>

namespace gainlens::reports {

/// Maps that share a figure; named after the first.
struct HeatmapGroup {
  std::string name;
  std::vector<analyses::Maybe<analyses::Heatmap>> maps;
};

/// A context length and how well the model predicts its chunks.
struct LengthFacts {
  analyses::Length length;
  analyses::Measured nll;  ///< mean next-token negative log likelihood over chunks, nats
  analyses::Maybe<analyses::Interval> nll_interval;
};

/// Everything a report shows.
struct Results {
  runfile::Request request;
  std::vector<LengthFacts> lengths;
  std::vector<std::pair<std::string, std::string>> policies;  ///< key, sentence: the choices behind every number
  analyses::Context context;
  analyses::GainTheory gain_theory;
  analyses::SinkVsK sink_vs_k;
  analyses::Maybe<analyses::Sinks> sinks;
  std::vector<HeatmapGroup> heatmaps;
  analyses::Maybe<analyses::ValueNormsResult> value_norms;
  std::vector<std::string> caveats;  ///< sentences
};

/// Runs every analysis. Throws as they do.
Results analyse(const runfile::RunReader& reader, const analyses::Options& options);

/// summary.json; keys as in run-file.md.
OrderedJson summary(const Results& results);

}  // namespace gainlens::reports
