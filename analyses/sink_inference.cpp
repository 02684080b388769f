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

SinkDecision by(std::string_view test, const TestedStatistic& statistic) {
  return {test, statistic.value, statistic.null_mean, statistic.p, verdict_of(statistic.excess(), statistic.p)};
}

/// The reason if the layers of these points may not be shifted against each other.
std::optional<std::string> mixed_kinds(const ClusteredPairs& pairs, const std::vector<std::string>& kind) {
  std::set<std::string> kinds;
  for (const std::size_t layer : pairs.layer) kinds.insert(kind.at(layer));
  if (kinds.size() < 2) return std::nullopt;
  return fmt::format("the layers have {} kinds of attention ({})", kinds.size(), fmt::join(kinds, ", "));
}

void put(OrderedJson& json, std::string_view name, const Maybe<Jackknife>& jackknife) {
  if (jackknife) {
    json[std::string(name)] = to_json(*jackknife);
  } else {
    analyses::put(json, name, Measured::none(jackknife.reason()));
  }
}

}  // namespace

SinkDecision decide(const PermutationTest& blocks, const PermutationTest& shift) {
  if (blocks.pearson.p) return by("block permutation", blocks.pearson);
  if (shift.pearson.p) return by("circular shift", shift.pearson);
  const std::string reason =
      fmt::format("block permutation: {}; circular shift: {}", blocks.pearson.p.reason(), shift.pearson.p.reason());
  return {"none", Measured::none(reason), Measured::none(reason), Measured::none(reason), "not decidable"};
}

SinkInference sink_inference(const ChunkedPairs& pairs, const std::vector<std::string>& kind,
                             const Resampling& resampling) {
  PermutationTest blocks = permute_blocks(pairs.heads, resampling);
  PermutationTest shift = shift_layers(pairs.heads, mixed_kinds(pairs.heads, kind));
  SinkDecision decision = decide(blocks, shift);
  return {std::move(blocks), std::move(shift), leave_out_layers(pairs.heads, kind), leave_out_text(pairs),
          std::move(decision)};
}

std::string relation_in_words(const SinkDecision& decision) {
  if (!decision.statistic || !decision.null_mean) return "r not known";
  const std::string r = fmt::format("r = {:+.3f}", *decision.statistic);
  return std::abs(*decision.null_mean) < least_shown_null_mean
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
  analyses::put(json["decision"], "statistic", inference.decision.statistic);
  analyses::put(json["decision"], "null_mean", inference.decision.null_mean);
  analyses::put(json["decision"], "p", inference.decision.p);
  return json;
}

}  // namespace gainlens::analyses
