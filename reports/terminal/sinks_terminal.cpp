#include "reports/terminal/sinks_terminal.h"

#include "analyses/published_sinks.h"
#include "core/quantity.h"
#include "reports/measured.h"
#include "reports/words/numbers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::Correlation, analyses::SinkGroup, analyses::SinkKeys, analyses::SinkLife, analyses::SinkShares,
    analyses::SinkVsK, analyses::TokenClass;

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

constexpr std::size_t max_positions = 6;      ///< of a chunk that are printed
constexpr std::size_t max_shown_tokens = 20;  ///< tokens whose layers are printed

std::string label(const SinkKeys& sinks, const std::string& text, std::int64_t token, std::int64_t position) {
  if (!sinks.first_keys_only) return analyses::label_of(text, token);
  return token >= 0 ? fmt::format("key {} (BOS)", position) : fmt::format("key {}", position);
}

/// "(326, 515, 832)"; with several chunks those of the first: "in 4 of 5 chunks (chunk 0: 326, 515)".
std::string places(const SinkGroup& group, std::size_t chunks) {
  const analyses::ChunkPositions& first = group.positions.front();
  std::string listed;
  for (std::size_t i = 0; i < std::min(first.positions.size(), max_positions); ++i)
    listed += fmt::format("{}{}", i == 0 ? "" : ", ", first.positions[i]);
  if (first.positions.size() > max_positions) listed += ", ...";
  if (chunks == 1) return fmt::format("({})", listed);
  return fmt::format("in {} of {} chunks (chunk {}: {})", group.chunks, chunks, first.sample, listed);
}

/// Masses below this are printed as 0.00.
constexpr double min_printed_mass = 0.005;

bool is_printed(const SinkGroup& group) {
  return std::any_of(group.mass.begin(), group.mass.end(), [](double mass) { return mass >= min_printed_mass; });
}

std::string label_of(const SinkKeys& sinks, const SinkGroup& group) {
  return label(sinks, group.text, group.token, group.positions.front().positions.front());
}

/// "  mass 0.57 ≥0.52": head by head.
/// @param at_least  [head]
std::string masses(const std::vector<double>& head_masses, const std::vector<bool>& at_least) {
  std::string text = "  mass";
  for (std::size_t head = 0; head < head_masses.size(); ++head)
    text += fmt::format(" {}{:.2f}", at_least[head] ? "≥" : "", head_masses[head]);
  return text;
}

std::string line(const SinkKeys& sinks, const SinkGroup& group, std::size_t chunks, const std::vector<bool>& at_least) {
  std::string text = fmt::format("  L{}  {} x{} {}{}", group.layer, label_of(sinks, group), group.count,
                                 places(group, chunks), masses(group.mass, at_least));
  if (std::isfinite(group.value_norm_ratio)) text += fmt::format("  |v| {:.2f} of median", group.value_norm_ratio);
  if (std::isfinite(group.stream_ratio)) text += fmt::format("  max|h| {:.1f} x", group.stream_ratio);
  return text + "\n";
}

/// The lines of one layer: its sinks by token, then what other tokens take, then all of it where it has several lines.
/// @param layer  position on the layer axis
std::string lines_of_layer(const SinkKeys& sinks, const SinkShares& shares, std::size_t layer,
                           const std::vector<const SinkGroup*>& groups) {
  std::vector<double> all, others;
  std::vector<bool> at_least;
  const std::size_t heads = groups.front()->mass.size();
  for (std::size_t head = 0; head < heads; ++head) {
    const analyses::SinkMass mass = sinks.mass_of(shares.length, layer, head);
    all.push_back(mass.value);
    at_least.push_back(mass.at_least);
  }
  others.assign(heads, 0);
  std::vector<std::string> other_tokens;
  std::string text;
  std::size_t lines = 0;
  for (const SinkGroup* group : groups) {
    if (!is_printed(*group)) continue;
    if (group->has_sink) {
      text += line(sinks, *group, shares.length.samples.size(), at_least);
      ++lines;
      continue;
    }
    other_tokens.push_back(label_of(sinks, *group));
    for (std::size_t head = 0; head < heads; ++head) others[head] += group->mass[head];
  }
  if (!other_tokens.empty()) {
    constexpr std::size_t max_named = 3;
    const std::size_t named = std::min(other_tokens.size(), max_named);
    text += fmt::format(
        "  L{}  no sink: {}{}{}\n", groups.front()->layer,
        fmt::join(other_tokens.begin(), other_tokens.begin() + static_cast<std::ptrdiff_t>(named), ", "),
        other_tokens.size() > named ? fmt::format(" and {}", counted(other_tokens.size() - named, "other token")) : "",
        masses(others, at_least));
    ++lines;
  }
  if (lines > 1) text += fmt::format("  L{}  all of these{}\n", groups.front()->layer, masses(all, at_least));
  return text;
}

/// The sinks that second-half queries hardly see, one line for all of them.
std::string without_mass(const SinkKeys& sinks, std::int64_t length) {
  std::map<std::string, std::set<std::int64_t>> layers;  // by token
  for (const SinkGroup& group : sinks.groups) {
    if (group.length == length && group.has_sink && !is_printed(group))
      layers[label_of(sinks, group)].insert(group.layer);
  }
  if (layers.empty()) return {};
  std::vector<std::string> tokens;
  std::size_t left_out = 0;
  for (const auto& [token, in] : layers) {
    if (tokens.size() < max_shown_tokens)
      tokens.push_back(fmt::format("{} in {}", token, layers_in_words({in.begin(), in.end()})));
    else
      ++left_out;
  }
  return fmt::format("  sinks with a mass of 0.00 at every head (early queries see them): {}{}\n",
                     fmt::join(tokens, "; "),
                     left_out == 0 ? "" : fmt::format("; and {}", counted(left_out, "other token")));
}

std::string lines_of_length(const SinkKeys& sinks, const SinkShares& shares, const runfile::RunReader& reader) {
  std::string text;
  for (std::size_t layer = 0; layer < reader.layers().size(); ++layer) {
    std::vector<const SinkGroup*> groups;
    for (const SinkGroup& group : sinks.groups) {
      if (group.length == shares.length.tokens && group.layer == reader.layers()[layer]) groups.push_back(&group);
    }
    if (!groups.empty()) text += lines_of_layer(sinks, shares, layer, groups);
  }
  return text + without_mass(sinks, shares.length.tokens);
}

std::string by_class(const SinkShares& shares) {
  std::string text;
  for (const auto& [token_class, share] : shares.by_class) {
    if (shares.keys.at(token_class) == 0) continue;
    text += fmt::format("{}{} {:.1f}% (in {} of {})", text.empty() ? "" : ", ", name_of(token_class), 100 * share,
                        shares.chunks.at(token_class), counted(shares.length.samples.size(), "chunk"));
  }
  return text;
}

std::string by_layer(const SinkShares& shares, const std::vector<std::int64_t>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const double share = shares.by_layer[i];
    text += fmt::format("  L{} {}", layers[i], std::isfinite(share) ? fmt::format("{:.1f}%", 100 * share) : "-");
  }
  return text;
}

/// The layers in which each token is a sink somewhere, most positions first.
std::string lives(const SinkKeys& sinks, std::int64_t length) {
  struct Lived {
    std::set<std::int64_t> layers;
    std::int64_t positions = 0;
  };
  std::map<std::string, Lived> tokens;
  for (const SinkLife& life : sinks.lives) {
    if (life.length != length) continue;
    Lived& lived = tokens[label(sinks, life.text, life.token, life.position)];
    lived.layers.insert(life.layers.begin(), life.layers.end());
    ++lived.positions;
  }
  std::vector<std::pair<std::string, Lived>> sorted(tokens.begin(), tokens.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.positions > b.second.positions; });
  std::string text;
  for (std::size_t i = 0; i < std::min(sorted.size(), max_shown_tokens); ++i) {
    const Lived& lived = sorted[i].second;
    text +=
        fmt::format("    {}: {} at {}\n", sorted[i].first, layers_in_words({lived.layers.begin(), lived.layers.end()}),
                    counted(lived.positions, "position"));
  }
  if (sorted.size() > max_shown_tokens)
    text +=
        fmt::format("    and {}; --csv lists every key\n", counted(sorted.size() - max_shown_tokens, "other token"));
  return text;
}

std::string one_length(const SinkKeys& sinks, const SinkShares& shares, const runfile::RunReader& reader) {
  const std::int64_t tokens = shares.length.tokens;
  const std::size_t chunks = shares.length.samples.size();
  std::string text = fmt::format("\n{} of {} tokens: ", counted(chunks, "chunk"), format_count(tokens));
  if (!std::isfinite(shares.total))
    return text + fmt::format("no key is seen by {} queries, so none can be a sink\n", runfile::min_sink_queries);
  const auto heads = static_cast<std::int64_t>(reader.layers().size()) * reader.heads();
  const std::string mass =
      fmt::format("sink mass: {:.1f}% of the attention of second-half queries", 100 * shares.total);
  if (shares.sink_heads == 0) return text + fmt::format("none of {} has a sink; {}\n", counted(heads, "head"), mass);
  text += fmt::format(
      "{} of {} have a sink{}; {}\n", shares.sink_heads, counted(heads, "head"),
      shares.early_heads == 0 ? "" : fmt::format(", {} of them for early queries only", shares.early_heads), mass);
  if (tokens == analyses::published_sink_length)
    text += "  Gu et al. publish for this length the share of heads whose first key has a column mean above 0.3\n";
  if (shares.total > 0) text += fmt::format("  by token: {}\n", by_class(shares));
  text += fmt::format("  by layer:{}\n", by_layer(shares, reader.layers()));
  text += lines_of_length(sinks, shares, reader);
  return text + "  layers in which they are sinks:\n" + lives(sinks, tokens);
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

std::string print_sinks(const SinkKeys& sinks, const runfile::RunReader& reader, bool every_length) {
  std::string text = fmt::format(
      "Sinks: keys with a column mean of at least {} that at least {} queries, and an eighth of the context or window, "
      "see\n",
      sinks.threshold, runfile::min_sink_queries);
  text += fmt::format("BOS policy: {}\n", printable(reader.request().bos_policy));
  if (sinks.first_keys_only) {
    text += fmt::format(
        "The run is of statistics version {}, which stores keys 0 to 7 alone: these are its sinks at keys 0 to 7. "
        "Sinks later in the text are not known; sweep again into another folder to find them\n",
        reader.request().version);
  }
  std::vector<std::string> left_out;
  for (const SinkShares& shares : sinks.shares) {
    const bool shown = every_length || shares.length.tokens == sinks.shares.back().length.tokens ||
                       shares.length.tokens == analyses::published_sink_length;
    if (shown) {
      text += one_length(sinks, shares, reader);
    } else {
      left_out.push_back(format_count(shares.length.tokens));
    }
  }
  if (!left_out.empty()) text += fmt::format("\nOther lengths of the run: --at {}\n", fmt::join(left_out, ","));
  text += fmt::format(
      "\nmass: share of the attention of second-half queries, head by head, mean over chunks. It is of every key with "
      "a "
      "column mean of at least {}, or 1 / sqrt(T) where T or the window is below 100.\n",
      runfile::min_stored_mean);
  if (sinks.full_heads > 0) {
    text += fmt::format(
        "≥: a run stores {} such keys of a head and chunk. {} full in this run, so that these masses may be larger\n",
        runfile::stored_sinks, counted_are(sinks.full_heads, "list"));
  }
  return text;
}

CsvTable sinks_csv(const SinkKeys& sinks) {
  CsvTable table{"sink-keys",
                 {"length", "sample", "layer", "head", "position", "token", "text", "class", "queries", "column_mean",
                  "second_half_mean", "last_quarter_mean", "value_norm_ratio", "key_norm_ratio", "key_query_cosine",
                  "stream_ratio", "stream_ratio_after", "stream_cosine", "stream_dimension"},
                 {}};
  const auto known = [](std::int64_t integer) { return integer >= 0 ? Cell(integer) : empty_cell(); };
  for (const analyses::SinkKey& key : sinks.keys) {
    table.rows.push_back({key.length, key.sample, key.layer, key.head, key.position, known(key.token),
                          printable(key.text), std::string(name_of(key.token_class)), key.queries, key.column_mean,
                          key.second_half_mean, key.last_quarter_mean, key.value_norm_ratio, key.key_norm_ratio,
                          key.key_query_cosine, key.stream_ratio, key.stream_ratio_after, key.stream_cosine,
                          known(key.stream_dimension)});
  }
  return table;
}

}  // namespace gainlens::reports
