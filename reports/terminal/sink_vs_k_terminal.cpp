#include "reports/terminal/sink_vs_k_terminal.h"

#include "reports/measured.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <map>

namespace gainlens::reports {
namespace {

using analyses::Correlation;
using analyses::SinkVsK;

std::string number(const Measured& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string small(const Measured& p) {
  return number(p, "{:.1e}");
}

/// @param test  null where no permutation test speaks of these heads
std::string row(const std::string& label, const Correlation& c, const analyses::PermutationTest* test) {
  const auto beside = [&](const analyses::TestedStatistic analyses::PermutationTest::*statistic) {
    return test == nullptr ? std::string("-") : small((test->*statistic).p);
  };
  return fmt::format("  {:<24} {:>6}  {:>8}  {:>8}  {:>13}   {:>8}  {:>8}  {:>13}\n", label, c.points,
                     number(c.pearson, "{:+.3f}"), small(c.pearson_naive_p),
                     beside(&analyses::PermutationTest::pearson), number(c.spearman, "{:+.3f}"),
                     small(c.spearman_naive_p), beside(&analyses::PermutationTest::spearman));
}

using Correlations = std::array<Maybe<analyses::SinkCorrelation>, analyses::gain_variants.size()>;

/// @param mass  "BOS mass"
std::string correlations_with(std::string_view mass, const Correlations& correlations) {
  std::string text =
      fmt::format("{:<26} {:>6}  {:>8}  {:>8}  {:>13}   {:>8}  {:>8}  {:>13}\n", fmt::format("{} against", mass),
                  "heads", "Pearson", "naive p", "permutation p", "Spearman", "naive p", "permutation p");
  for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
    text += fmt::format("{}\n", analyses::gain_variants[v].meaning);
    const auto& correlation = correlations[v];
    if (!correlation) {
      text += fmt::format("  none: {}\n", correlation.reason());
      continue;
    }
    text += row("pooled", correlation->pooled, &correlation->inference.shift);
    if (correlation->within_attention_type.size() > 1) {  // with one kind it would be the pooled row again
      for (const auto& [kind, c] : correlation->within_attention_type) text += row(kind, c, nullptr);
    }
    text += row("within layers", correlation->within_layers, &correlation->inference.blocks);
    if (!correlation->pooled.pearson)
      text += fmt::format("  no pooled correlation: {}\n", correlation->pooled.pearson.reason());
    if (!correlation->within_layers.pearson)
      text += fmt::format("  none within layers: {}\n", correlation->within_layers.pearson.reason());
  }
  return text;
}

std::string test_in_words(std::string_view name, const analyses::PermutationTest& test) {
  const std::string all = analyses::count_arrangements(test.arrangements);
  std::string text = fmt::format("{}: ", name);
  text += test.exact ? "all " + all : fmt::format("{} of {} (seed {})", test.resamples, all, test.seed);
  if (test.pearson.min_p) text += fmt::format(", smallest possible p {:.1e}", *test.pearson.min_p);
  if (!test.pearson.p) text += fmt::format("; {}", test.pearson.p.reason());
  return text;
}

std::string interval(const Maybe<Interval>& ends) {
  return ends ? fmt::format("[{:+.3f}, {:+.3f}]", ends->low, ends->high) : "-";
}

/// @param what  "95% interval over 5 stretches of text", "range over 18 layers"
template <typename LeftOut>
std::string left_out_in_words(std::string_view what, const LeftOut& found) {
  std::string text = fmt::format("  {}: Pearson {} pooled, {} within layers\n", what, interval(found.pearson),
                                 interval(found.pearson_within));
  if (!found.pearson) text += fmt::format("    none pooled: {}\n", found.pearson.reason());
  if (!found.pearson_within) text += fmt::format("    none within layers: {}\n", found.pearson_within.reason());
  return text;
}

/// The range over layers and the interval over text.
std::string left_out(const analyses::SinkInference& inference) {
  const auto& layers = inference.layers;
  const auto& text = inference.text;
  return (layers ? left_out_in_words(fmt::format("range over {}, without a level", counted(layers->layers, "layer")),
                                     *layers)
                 : fmt::format("  layers: {}\n", layers.reason())) +
         (text ? left_out_in_words(fmt::format("95% interval over {} stretches of text", text->units), *text)
               : fmt::format("  stretches of text: {}\n", text.reason()));
}

/// The verdict on every gain.
std::string related(std::string_view mass, const Correlations& correlations) {
  std::string text = fmt::format("is {} related to it?\n", mass);
  for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
    if (!correlations[v]) continue;
    const analyses::SinkDecision& decision = correlations[v]->inference.decision;
    text += fmt::format("  {:<32} {}", analyses::gain_variants[v].meaning, decision.verdict);
    if (decision.p)
      text += fmt::format(" ({}, p = {:.3g}, {})", relation_in_words(decision), *decision.p, decision.test);
    text += '\n';
  }
  return text;
}

/// Whether some head has a sink, at any key.
bool has_sinks(const SinkVsK& result) {
  return std::any_of(result.points.begin(), result.points.end(),
                     [](const analyses::SinkPoint& point) { return point.total_mass > 0; });
}

std::string total_sink_mass(const SinkVsK& result) {
  const std::string_view keys = result.first_keys_only ? " (of keys 0 to 7, the only ones that this run stores)" : "";
  if (!result.total_mass) return fmt::format("total sink mass: none: {}\n", result.total_mass.reason());
  if (!has_sinks(result)) {
    return fmt::format("total sink mass: no key{} has a column mean of at least {}, so there is nothing to correlate\n",
                       keys, analyses::column_mean_threshold);
  }
  return correlations_with("total sink mass", result.total_correlations) +
         fmt::format("total sink mass: of all keys with a column mean of at least {}{}\n",
                     analyses::column_mean_threshold, keys);
}

/// What stands beside the naive p: tests and intervals of the first gain, and the verdict on every gain.
std::string inference(const SinkVsK& result) {
  const auto& first = result.correlations.front();
  std::string text;
  if (first) {
    text += test_in_words("permutation p within layers: K permuted in blocks of a KV group", first->inference.blocks);
    text += '\n' + test_in_words("permutation p pooled: K shifted round the layers", first->inference.shift);
    text += "\n  it decides nothing: a common drift with depth looks like a relation to it\n";
    text += fmt::format("{}, leaving out one at a time:\n", analyses::gain_variants.front().meaning);
    text += left_out(first->inference);
  }
  text += related("BOS mass", result.correlations);
  return has_sinks(result) ? text + related("total sink mass", result.total_correlations) : text;
}

/// One line for the layers that share an attention kind and a reason.
std::string layers_apart(const SinkVsK& result) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> groups;
  for (const analyses::LayerApart& layer : result.apart) groups[{layer.attention, layer.reason}].push_back(layer.layer);
  std::string text;
  for (const auto& [kind, layers] : groups) {
    text += fmt::format("excluded: {} ({}): {}\n", layers_in_words(layers), kind.first, kind.second);
  }
  return text;
}

}  // namespace

std::string print_sink_vs_k(const SinkVsK& result) {
  std::string text =
      fmt::format("Sink against K: {}, means over chunks at {} ({})\n", counted(result.points.size(), "head"),
                  analyses::list_lengths(result.lengths), result.lengths_rule);
  text +=
      fmt::format("BOS policy: {}{}\n\n", printable(result.bos_policy), result.bos ? "" : "; key 0 is ordinary text");
  text += correlations_with("BOS mass", result.correlations);
  text += '\n' + total_sink_mass(result);
  text += '\n' + inference(result);
  text += '\n';
  for (const analyses::SinkHeads& sinks : result.sinks) {
    text += fmt::format("BOS mass above {:<4}: {}", sinks.threshold, counted(sinks.heads, "head"));
    if (sinks.heads > 0)
      text +=
          fmt::format(" in {}, smallest K {}", layers_in_words(sinks.layers), number(sinks.smallest_gain, "{:.3f}"));
    text += '\n';
  }
  if (result.late_gain) {
    text += fmt::format("late {}: K {:.3f} to {:.3f}, largest BOS mass {}\n", layers_in_words(result.late_layers),
                        result.late_gain->low, result.late_gain->high, number(result.late_bos_mass, "{:.3f}"));
  }
  if (const std::string without = analyses::no_sink(result); !without.empty())
    text += fmt::format("{}; so this run decides nothing about sinks, whatever stands above\n", without);
  text += layers_apart(result);
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  return text +
         "The naive p takes heads as independent points. Heads of one layer or KV group are not; the block "
         "permutation allows for that. BOS mass and K are coupled by arithmetic: compare K without key 0.\n";
}

}  // namespace gainlens::reports
