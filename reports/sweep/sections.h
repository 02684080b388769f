#pragma once

#include "analyses/comparison.h"
#include "analyses/context.h"
#include "analyses/heatmap.h"
#include "analyses/selection.h"
#include "analyses/sink_keys.h"
#include "analyses/value_norms.h"
#include "analyses/verdicts.h"
#include "reports/section.h"
#include "reports/sweep/sweep_run.h"
#include "runfile/schema.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::reports {

/// THE table: the sections of a sweep's report, in the order of the page. The page, summary.json, the files and the
/// removal of old ones come from it. A test compares the table in docs/report.md with it.
extern const std::vector<const Section<SweepRun>*> sweep_sections;

// One file each: <name>_section.cpp.
extern const Section<SweepRun> summary_section, explore_section, runs_section, verdicts_section, context_section,
    neighbours_section, gain_theory_section, sinks_section, heads_section, value_norms_section, depth_section,
    audit_section, differences_section, policies_section, checks_section, caveats_section, files_section;

// What one section derives from analyses and another uses too.

/// A context length and how well the model predicts its chunks.
struct LengthFacts {
  analyses::Length length;
  Measured nll;  ///< mean next-token negative log likelihood over chunks, nats
  Maybe<Interval> nll_interval;
};
/// Every length of the run, shortest first.
std::vector<LengthFacts> length_facts(const SweepRun& run);

/// Those of the longest length with a complete chunk.
const LengthFacts& longest_facts(const SweepRun& run);

/// "Contexts up to 4k tokens, 5 chunks; NLL 2.73 [2.38, 3.09] nats per token at 4k.": HTML.
std::string run_line(const SweepRun& run);

/// n_eff of all layers of one kind of attention, last-quarter queries, means over chunks.
struct KindEvidence {
  std::string attention;                              ///< "global" or "window:512"
  std::vector<std::int64_t> layers;                   ///< the model's own numbers
  std::map<std::int64_t, double> n_eff;               ///< by length in tokens
  std::set<std::int64_t> set_apart;                   ///< lengths at which growth is not judged: see analyses::Growth
  std::vector<std::pair<std::int64_t, double>> full;  ///< the others: tokens, n_eff
};
/// The evidence of every kind with a value, global attention first.
std::vector<KindEvidence> evidence_by_kind(const SweepRun& run);

/// Union of the lengths of the runs that have a complete chunk, ascending: the axis of their figures.
std::vector<std::int64_t> drawn_lengths(Runs runs);

/// Maps that share a figure.
struct HeatmapGroup {
  /// One quantity, or why the run has no map of it.
  struct Map {
    std::string_view quantity;  ///< dataset
    Maybe<analyses::Heatmap> map;
  };
  std::string name;  ///< of its first map
  std::vector<Map> maps;
};
std::vector<HeatmapGroup> heatmap_groups(const SweepRun& run);

/// Sinks wherever they are, at the usual threshold. Requires analyses::has_sink_keys().
analyses::SinkKeys sink_keys_of(const SweepRun& run);

analyses::Verdicts verdicts_of(const SweepRun& run);
Maybe<analyses::ValueNormsResult> value_norms_of(const SweepRun& run);

/// A later run of a report against the first.
analyses::Comparison comparison_with_first(const SweepRun& run);

/// The scalars of a head: means over the complete chunks of each length. The last one is the sink mass
/// (analyses::SinkKeys::mass_of), where the run holds the sinks of every key.
struct HeadMeans {
  struct Quantity {
    runfile::HeadQuantity info;
    std::vector<double> values;  ///< [length of `lengths`, layer, head]; NaN if no chunk has a value
  };
  std::vector<analyses::Length> lengths;  ///< with a complete chunk, shortest first
  std::vector<Quantity> quantities;       ///< in the order of runfile::head_quantities(), then sink_mass
  std::size_t layers;
  std::size_t heads;

  double at(const Quantity& quantity, std::size_t length, std::size_t layer, std::size_t head) const {
    return quantity.values[(length * layers + layer) * heads + head];
  }
};

/// @throws InvalidArgument  see analyses::usable_lengths()
HeadMeans head_means(const SweepRun& run);

/// gnuplot's ticks for places 0, 1, ..., at most `most` of them, evenly spaced from the first: "'0' 0, '4' 4".
std::string even_ticks(std::size_t count, std::size_t most, const std::function<std::string(std::size_t)>& label);

/// [layer] global attention, in a model that has windows too; else empty.
std::vector<bool> global_layers(const SweepRun& run);

/// Ticks of an axis over the run's layers: every global layer in bold, in a model that has windows too.
/// @param most  ticks that have room
std::string layer_ticks(const SweepRun& run, std::size_t most);

}  // namespace gainlens::reports
