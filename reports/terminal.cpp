#include "reports/terminal.h"

#include "reports/results.h"
#include "reports/wording.h"

#include <map>

namespace gainlens::reports {
namespace {

using analyses::Correlation;
using analyses::Measured;
using analyses::SinkVsK;

std::string number(const Measured& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string row(const std::string& label, const Correlation& c) {
  return fmt::format("  {:<24} {:>6}  {:>8}  {:>8}   {:>8}  {:>8}\n", label, c.points, number(c.pearson, "{:+.3f}"),
                     number(c.pearson_naive_p, "{:.1e}"), number(c.spearman, "{:+.3f}"), number(c.spearman_naive_p, "{:.1e}"));
}

std::string correlations(const SinkVsK& result) {
  std::string text =
      fmt::format("{:<26} {:>6}  {:>8}  {:>8}   {:>8}  {:>8}\n", "BOS mass against", "heads", "Pearson", "naive p", "Spearman", "naive p");
  for (std::size_t v = 0; v < analyses::gain_variants.size(); ++v) {
    text += fmt::format("{}\n", analyses::gain_variants[v].meaning);
    const auto& correlation = result.correlations[v];
    if (!correlation) {
      text += fmt::format("  none: {}\n", correlation.reason());
      continue;
    }
    text += row("pooled", correlation->pooled);
    for (const auto& [kind, c] : correlation->within_attention_type) text += row(kind, c);
    text += row("within layers", correlation->within_layers);
    if (!correlation->pooled.pearson) text += fmt::format("  no pooled correlation: {}\n", correlation->pooled.pearson.reason());
    if (!correlation->within_layers.pearson) text += fmt::format("  none within layers: {}\n", correlation->within_layers.pearson.reason());
  }
  return text;
}

/// One line for the layers that share an attention kind and a reason.
std::string layers_apart(const SinkVsK& result) {
  std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>> groups;
  for (const analyses::LayerApart& layer : result.apart) groups[{layer.attention, layer.reason}].push_back(layer.layer);
  std::string text;
  for (const auto& [kind, layers] : groups) {
    text += fmt::format("set apart: layers {} ({}): {}\n", number_ranges(layers), kind.first, kind.second);
  }
  return text;
}

}  // namespace

std::string print_sink_vs_k(const SinkVsK& result) {
  std::string text = fmt::format("Sink against K: {}, means over chunks at {} ({})\n", counted(result.points.size(), "head"),
                                 analyses::list_lengths(result.lengths), result.lengths_rule);
  text += fmt::format("BOS policy: {}{}\n\n", printable(result.bos_policy), result.bos ? "" : "; key 0 is ordinary text");
  text += correlations(result);
  text += '\n';
  for (const analyses::SinkHeads& sinks : result.sinks) {
    text += fmt::format("BOS mass above {:<4}: {}", sinks.threshold, counted(sinks.heads, "head"));
    if (sinks.heads > 0)
      text += fmt::format(" in layers {}, smallest K {}", number_ranges(sinks.layers), number(sinks.smallest_gain, "{:.3f}"));
    text += '\n';
  }
  if (result.late_gain) {
    text += fmt::format("late layers {}: K {:.3f} to {:.3f}, largest BOS mass {}\n", number_ranges(result.late_layers),
                        result.late_gain->low, result.late_gain->high, number(result.late_bos_mass, "{:.3f}"));
  }
  text += layers_apart(result);
  for (const std::string& note : result.notes) text += fmt::format("note: {}\n", note);
  return text +
         "naive p takes heads as independent points, which heads of one layer are not. BOS mass and K are coupled by arithmetic: compare K "
         "without key 0.\n";
}

}  // namespace gainlens::reports
