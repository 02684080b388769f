#include "reports/terminal/sinks_terminal.h"

#include "analyses/published_sinks.h"
#include "core/quantity.h"
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

using analyses::SinkGroup;
using analyses::SinkKeys;
using analyses::SinkLife;
using analyses::SinkShares;
using analyses::TokenClass;

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
        "≥: a run stores {} such keys of a head and chunk. {} full here, so that these masses may be larger\n",
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
