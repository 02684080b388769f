#include "reports/terminal/sinks_terminal.h"

#include "analyses/published_sinks.h"
#include "core/quantity.h"
#include "reports/words/counts.h"

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

constexpr std::size_t most_positions = 6;  ///< of a chunk that are printed
constexpr std::size_t most_lives = 20;     ///< tokens whose layers are printed

std::string label(const SinkKeys& sinks, const std::string& text, std::int64_t token, std::int64_t position) {
  if (!sinks.first_keys_only) return analyses::label_of(text, token);
  return token >= 0 ? fmt::format("key {} (BOS)", position) : fmt::format("key {}", position);
}

/// "(326, 515, 832)"; with several chunks those of the first: "in 4 of 5 chunks (chunk 0: 326, 515)".
std::string places(const SinkGroup& group, std::size_t chunks) {
  const analyses::ChunkPositions& first = group.positions.front();
  std::string listed;
  for (std::size_t i = 0; i < std::min(first.positions.size(), most_positions); ++i)
    listed += fmt::format("{}{}", i == 0 ? "" : ", ", first.positions[i]);
  if (first.positions.size() > most_positions) listed += ", ...";
  if (chunks == 1) return fmt::format("({})", listed);
  return fmt::format("in {} of {} chunks (chunk {}: {})", group.chunks, chunks, first.sample, listed);
}

std::string line(const SinkKeys& sinks, const SinkGroup& group, std::size_t chunks) {
  std::string text = fmt::format("  L{}  {} x{} {}  mass", group.layer,
                                 label(sinks, group.text, group.token, group.positions.front().positions.front()),
                                 group.count, places(group, chunks));
  for (const double mass : group.mass) text += fmt::format(" {:.2f}", mass);
  if (std::isfinite(group.value_norm_ratio)) text += fmt::format("  |v| {:.2f} of median", group.value_norm_ratio);
  if (std::isfinite(group.stream_ratio)) text += fmt::format("  max|h| {:.1f} x", group.stream_ratio);
  return text + "\n";
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

/// For each token the layers in which it is a sink somewhere, most positions first.
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
  for (std::size_t i = 0; i < std::min(sorted.size(), most_lives); ++i) {
    const Lived& lived = sorted[i].second;
    text +=
        fmt::format("    {}: {} at {}\n", sorted[i].first, layers_in_words({lived.layers.begin(), lived.layers.end()}),
                    counted(lived.positions, "position"));
  }
  if (sorted.size() > most_lives)
    text += fmt::format("    and {}; --csv lists every key\n", counted(sorted.size() - most_lives, "other token"));
  return text;
}

/// ", 3 of them for early queries only": heads whose sinks a window hides from every query of the second half.
std::string for_early_queries_only(const SinkKeys& sinks, std::int64_t length) {
  std::map<std::pair<std::int64_t, std::int64_t>, double> mass;  // by layer and head
  for (const analyses::SinkKey& key : sinks.keys) {
    if (key.length == length) mass[{key.layer, key.head}] += key.second_half_mean;
  }
  const auto early = std::count_if(mass.begin(), mass.end(), [](const auto& head) { return head.second == 0; });
  return early == 0 ? "" : fmt::format(", {} of them for early queries only", early);
}

std::string one_length(const SinkKeys& sinks, const SinkShares& shares, const runfile::RunReader& reader) {
  const std::int64_t tokens = shares.length.tokens;
  const std::size_t chunks = shares.length.samples.size();
  std::string text = fmt::format("\n{} of {} tokens: ", counted(chunks, "chunk"), format_count(tokens));
  if (!std::isfinite(shares.total))
    return text + fmt::format("no key is seen by {} queries, so none can be a sink\n", runfile::least_sink_queries);
  const auto heads = static_cast<std::int64_t>(reader.layers().size()) * reader.heads();
  if (shares.sink_heads == 0) return text + fmt::format("none of {} has a sink\n", counted(heads, "head"));
  text +=
      fmt::format("{} of {} have a sink{}; sinks take {:.1f}% of the attention of second-half queries\n",
                  shares.sink_heads, counted(heads, "head"), for_early_queries_only(sinks, tokens), 100 * shares.total);
  if (tokens == analyses::published_sink_length)
    text += "  Gu et al. publish for this length the share of heads whose first key has a column mean above 0.3\n";
  text += fmt::format("  by token: {}\n", by_class(shares));
  text += fmt::format("  by layer:{}\n", by_layer(shares, reader.layers()));
  for (const SinkGroup& group : sinks.groups) {
    if (group.length == tokens) text += line(sinks, group, chunks);
  }
  return text + "  layers in which they are sinks:\n" + lives(sinks, tokens);
}

}  // namespace

std::string print_sinks(const SinkKeys& sinks, const runfile::RunReader& reader, bool every_length) {
  std::string text = fmt::format(
      "Sinks: keys with a column mean of at least {} that at least {} queries, and an eighth of the context or window, "
      "see\n",
      sinks.threshold, runfile::least_sink_queries);
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
  text +=
      "\nmass: share of the attention of second-half queries, head by head, mean over chunks. A line holds every key "
      "of "
      "the layer with this text and a column mean of at least 0.1, if one of them is a sink. The percentages are of "
      "sinks "
      "alone, so a line can hold more.\n";
  if (sinks.full_heads > 0) {
    text += fmt::format("note: {} of a chunk has {} sinks, which is the most that a run stores; there may be more\n",
                        counted(sinks.full_heads, "head"), runfile::stored_sinks);
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
