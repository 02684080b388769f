#pragma once

#include "analyses/audit.h"
#include "analyses/comparison.h"
#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/heatmap.h"
#include "analyses/neighbours.h"
#include "analyses/sink_vs_k.h"
#include "analyses/sinks.h"
#include "analyses/value_norms.h"
#include "analyses/verdicts.h"
#include "runfile/run_proof.h"
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

/// Everything a report shows of one run.
struct Results {
  std::string label;  ///< what the run is called among several
  runfile::Request request;
  runfile::RunProof proof;
  std::vector<LengthFacts> lengths;
  std::vector<std::pair<std::string, std::string>> policies;  ///< key, sentence: the choices behind every number
  analyses::Context context;
  std::vector<analyses::KindContext> context_by_attention;  ///< empty where all layers are of one kind
  analyses::Neighbours neighbours;
  analyses::GainTheory gain_theory;
  analyses::SinkVsK sink_vs_k;
  analyses::Maybe<analyses::Sinks> sinks;
  std::vector<HeatmapGroup> heatmaps;
  analyses::Maybe<analyses::ValueNormsResult> value_norms;
  analyses::Verdicts verdicts;
  analyses::Audit audit;
  std::vector<std::string> caveats;  ///< sentences
};

/// A run that a report is asked for.
struct RunInput {
  std::string label;  ///< what it is called among several
  const runfile::RunReader& reader;
  runfile::RunProof proof = {};
};

/// Runs every analysis. Throws as they do.
Results analyse(const RunInput& run, const analyses::Options& options);

/// A later run set against the first.
struct Contrast {
  std::string first;  ///< labels
  std::string second;
  analyses::Comparison comparison;
};

/// Everything a report shows.
struct Report {
  std::vector<Results> runs;        ///< at least one
  std::vector<Contrast> contrasts;  ///< of every later run with the first
};

/// summary.json of one run; keys as in run-file.md.
OrderedJson summary(const Results& results);
/// summary.json: that of the run, or {"runs": {label: ...}, "comparisons": [...]} of several.
OrderedJson summary(const Report& report);

}  // namespace gainlens::reports
