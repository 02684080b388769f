#include "analyses/sink_inference.h"

#include <fmt/ranges.h>

#include <cmath>
#include <set>

namespace gainlens::analyses {
namespace {

std::string verdict_of(const Measured& excess, const Measured& p) {
  if (!p || !excess) return "not decidable";
  if (*p > significance) return "not shown";
  return *excess > 0 ? "positive" : "negative";
}

/// The reason if the layers of these points may not be shifted against each other.
std::optional<std::string> mixed_kinds(const ClusteredPairs& pairs, const std::vector<std::string>& kind) {
  std::set<std::string> kinds;
  for (const std::size_t layer : pairs.layer) kinds.insert(kind.at(layer));
  if (kinds.size() < 2) return std::nullopt;
  return fmt::format("the layers have {} kinds of attention ({})", kinds.size(), fmt::join(kinds, ", "));
}

}  // namespace

SinkDecision decide(const PermutationTest& blocks) {
  const TestedStatistic& test = blocks.pearson;
  if (test.p) return {"block permutation", test.value, test.null_mean, test.p, verdict_of(test.excess(), test.p)};
  const Measured none =
      Measured::none(fmt::format("block permutation: {}; {}", test.p.reason(), shift_decides_nothing));
  return {"none", none, none, none, verdict_of(none, none)};
}

SinkInference sink_inference(const ChunkedPairs& pairs, const std::vector<std::string>& kind,
                             const Resampling& resampling) {
  PermutationTest blocks = permute_blocks(pairs.heads, resampling);
  PermutationTest shift = shift_layers(pairs.heads, mixed_kinds(pairs.heads, kind));
  SinkDecision decision = decide(blocks);
  return {std::move(blocks), std::move(shift), leave_out_layers(pairs.heads), leave_out_text(pairs),
          std::move(decision)};
}

std::string relation_in_words(const SinkDecision& decision) {
  if (!decision.statistic || !decision.null_mean) return "r not known";
  const std::string r = fmt::format("r = {:+.3f}", *decision.statistic);
  return std::abs(*decision.null_mean) < min_shown_null_mean
             ? r
             : fmt::format("{}, {:+.3f} by chance", r, *decision.null_mean);
}

OrderedJson to_json(const SinkInference& inference) {
  OrderedJson json;
  json["block_permutation"] = to_json(inference.blocks);
  json["circular_shift"] = to_json(inference.shift);
  put(json, "layers_left_out", inference.layers);
  put(json, "text_left_out", inference.text);
  json["decision"] = {{"test", inference.decision.test}, {"verdict", inference.decision.verdict}};
  put(json["decision"], "statistic", inference.decision.statistic);
  put(json["decision"], "null_mean", inference.decision.null_mean);
  put(json["decision"], "p", inference.decision.p);
  return json;
}

}  // namespace gainlens::analyses
