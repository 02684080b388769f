#include "analyses/registry.h"

#include "analyses/audit.h"
#include "analyses/context.h"
#include "analyses/gain_theory.h"
#include "analyses/heatmap.h"
#include "analyses/neighbours.h"
#include "analyses/sink_vs_k.h"
#include "analyses/sinks.h"
#include "analyses/value_norms.h"
#include "analyses/verdicts.h"
#include "core/nearest.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace gainlens::analyses {
namespace {

using runfile::RunReader;

template <typename Result>
OrderedJson result_or_reason(const Maybe<Result>& result) {
  if (result) return to_json(*result);
  return {{"reason", result.reason()}};
}

OrderedJson heatmaps(const RunReader& reader, const Options&) {
  OrderedJson maps;
  for (const HeatmapQuantity& quantity : heatmap_quantities())
    maps[std::string(quantity.name)] = result_or_reason(heatmap(reader, quantity));
  return maps;
}

constexpr std::array<Analysis, 9> analyses = {{
    {"context", "does the gate follow the evidence as the context grows?",
     [](const RunReader& reader, const Options& options) { return to_json(context(reader, options)); }},
    {"neighbouring_chunks", "how alike are neighbouring chunks, and what does it do to the intervals?",
     [](const RunReader& reader, const Options& options) { return to_json(neighbours(reader, options)); }},
    {"gain_theory", "does K follow from n_eff and S?",
     [](const RunReader& reader, const Options& options) { return to_json(gain_theory(reader, options)); }},
    {"sink_vs_k", "do heads that watch the first key have a gain near 1?",
     [](const RunReader& reader, const Options& options) { return to_json(sink_vs_k(reader, options)); }},
    {"sinks", "which heads are the strongest sinks?",
     [](const RunReader& reader, const Options& options) { return result_or_reason(sinks(reader, options)); }},
    {"heatmap", "where in the model are n_eff, K, BOS mass and entropy high?", heatmaps},
    {"value_norms", "are the values of the first keys small?",
     [](const RunReader& reader, const Options&) { return result_or_reason(value_norms(reader)); }},
    {"verdicts", "what does the run say about the paper's three predictions?",
     [](const RunReader& reader, const Options& options) {
       return to_json(verdicts(context(reader, options), gain_theory(reader, options), sink_vs_k(reader, options)));
     }},
    {"audit", "does the sink lemma hold, and what do these numbers say about statements that are false as printed?",
     [](const RunReader& reader, const Options& options) { return to_json(audit(reader, options)); }},
}};

}  // namespace

std::span<const Analysis> registry() {
  return analyses;
}

const Analysis& find_analysis(std::string_view name) {
  const auto found =
      std::find_if(analyses.begin(), analyses.end(), [&](const Analysis& analysis) { return analysis.name == name; });
  if (found != analyses.end()) return *found;
  std::vector<std::string> names;
  for (const Analysis& analysis : analyses) names.emplace_back(analysis.name);
  throw_invalid("analysis '{}': there is none of this name{}; there are {}", printable(name), did_you_mean(name, names),
                fmt::join(names, ", "));
}

}  // namespace gainlens::analyses
