#include "reports/sweep/sink_map.h"

#include "analyses/cells.h"
#include "analyses/heatmap.h"
#include "analyses/sink_vs_k.h"
#include "analyses/statistics.h"
#include "core/error.h"
#include "reports/sweep/sections.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gainlens::reports {
namespace {

/// Norm of the value of BOS by the mean norm of the values beyond the first keys.
Measured value_ratio_of_bos(const SweepRun& run, std::size_t layer, std::int64_t head) {
  const auto& norms = run.of(value_norms_of);
  if (!norms) return Measured::none(norms.reason());
  const std::int64_t kv_head = run.reader().kv_head_of(layer, head);
  for (const analyses::ValueNorms& value : norms->heads) {
    if (value.layer_position == layer && value.kv_head == kv_head && value.rest > 0)
      return value.first.front() / value.rest;
  }
  return Measured::none("the run has no norms of this head's values");
}

Maybe<SinkMap> map_of_bos(const SweepRun& run) {
  const auto masses = analyses::heatmap(run.reader(), "bos_mass");
  if (!masses) return Maybe<SinkMap>::none(masses.reason());
  SinkMap map{masses->length, false, analyses::sink_thresholds[0], {}};
  for (std::size_t layer = 0; layer < masses->layers.size(); ++layer) {
    for (std::size_t head = 0; head < masses->heads; ++head) {
      MappedHead entry{layer,
                       masses->layers[layer],
                       static_cast<std::int64_t>(head),
                       run.reader().attention()[layer],
                       {masses->at(layer, head), false},
                       masses->by_construction[layer],
                       false,
                       false,
                       "",
                       true,
                       Measured::none("no sink"),
                       Measured::none("not measured")};
      entry.is_sink = !entry.hidden && entry.mass.value > map.threshold;
      if (entry.is_sink) {
        entry.token = "BOS";
        entry.value_ratio = value_ratio_of_bos(run, layer, entry.head);
      }
      map.heads.push_back(std::move(entry));
    }
  }
  return map;
}

/// The keys of one head at one length that have the same text.
struct TokenSum {
  std::string token;
  bool bos;
  double mass = 0;
  std::vector<double> value_ratios, stream_ratios;
};

Measured mean_of_finite(std::vector<double> values, const char* reason) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  return values.empty() ? Measured::none(reason) : Measured(analyses::mean(values));
}

std::string shown_token(const analyses::SinkKey& key) {
  if (key.position == 0) return "BOS";  // as on the rest of the page, whether a BOS token stands there or not
  constexpr std::size_t longest = 24;
  return key.text.empty() ? fmt::format("token {}", key.token) : printable(key.text, longest);
}

/// The token with the most mass, with means over its keys.
void set_strongest_token(MappedHead& head, const std::vector<const analyses::SinkKey*>& counted) {
  std::vector<TokenSum> sums;
  for (const analyses::SinkKey* key : counted) {
    const std::string token = shown_token(*key);
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const TokenSum& other) { return other.token == token; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {token, key->position == 0, 0, {}, {}});
    sum->mass += std::isfinite(key->second_half_mean) ? key->second_half_mean : 0;
    sum->value_ratios.push_back(key->value_norm_ratio);
    sum->stream_ratios.push_back(key->stream_ratio);
  }
  std::erase_if(sums, [](const TokenSum& sum) { return sum.mass == 0; });
  if (sums.empty()) return;
  const TokenSum& most =
      *std::max_element(sums.begin(), sums.end(), [](const TokenSum& a, const TokenSum& b) { return a.mass < b.mass; });
  head.elsewhere = !most.bos;
  head.token = most.token;
  head.token_alone = sums.size() == 1;
  head.value_ratio = mean_of_finite(most.value_ratios, "the run has no norms of this token's values");
  head.stream_ratio = mean_of_finite(most.stream_ratios, "the run has no hidden states of this token");
}

/// Whether the head is a sink, and whether no query of the second half sees one of its sinks.
void set_sinks(MappedHead& head, const std::vector<const analyses::SinkKey*>& sinks) {
  if (sinks.empty()) return;
  head.is_sink = true;
  head.early =
      std::all_of(sinks.begin(), sinks.end(), [](const analyses::SinkKey* key) { return key->second_half_mean == 0; });
  const auto strongest_of = *std::max_element(
      sinks.begin(), sinks.end(), [](const auto* a, const auto* b) { return a->column_mean < b->column_mean; });
  if (head.early) head.early_token = shown_token(*strongest_of);
}

std::string percent_range(const std::vector<const MappedHead*>& heads) {
  const auto [least, most] = std::minmax_element(
      heads.begin(), heads.end(), [](const auto* a, const auto* b) { return a->mass.value < b->mass.value; });
  const std::string low = fmt::format("{:.0f}", 100 * (*least)->mass.value),
                    high = fmt::format("{:.0f}", 100 * (*most)->mass.value);
  const bool at_least = std::any_of(heads.begin(), heads.end(), [](const auto* head) { return head->mass.at_least; });
  return (at_least ? "at least " : "") + (low == high ? high + "%" : fmt::format("{} to {}%", low, high));
}

std::vector<std::int64_t> layers_of_heads(const std::vector<const MappedHead*>& heads) {
  std::set<std::int64_t> layers;
  for (const MappedHead* head : heads) layers.insert(head->layer);
  return {layers.begin(), layers.end()};
}

/// "global layers 5, 11, 17": of one kind of attention, which is named if the model has several.
std::string layers_named(const std::vector<const MappedHead*>& heads, bool several_kinds) {
  const std::string words = layers_in_words(layers_of_heads(heads));
  return several_kinds ? (heads.front()->attention == "global" ? "global " : "window ") + words : words;
}

/// "12 heads of global layers 5, 11, 17 put 12 to 61% of their attention"
std::string heads_put(const std::vector<const MappedHead*>& heads, bool several_kinds) {
  return fmt::format("{} of {} {} {} of {} attention", counted(heads.size(), "head"),
                     layers_named(heads, several_kinds), heads.size() == 1 ? "puts" : "put", percent_range(heads),
                     heads.size() == 1 ? "its" : "their");
}

Measured median_over(const std::vector<const MappedHead*>& heads, Measured MappedHead::*member) {
  std::vector<double> numbers;
  for (const MappedHead* head : heads) {
    if (head->*member) numbers.push_back(*(head->*member));
  }
  if (numbers.empty()) return Measured::none("no head has one");
  return analyses::median(numbers);
}

/// " (value norm 0.23 of the median, largest entry of the hidden state 6.6 times the median)": medians over the heads.
std::string values_in_words(const std::vector<const MappedHead*>& heads) {
  const Measured values = median_over(heads, &MappedHead::value_ratio),
                 stream = median_over(heads, &MappedHead::stream_ratio);
  if (!values) return {};
  return fmt::format(" (value norm {:.2g} of the median{})", *values,
                     stream ? fmt::format(", largest entry of the hidden state {:.2g} times the median", *stream) : "");
}

std::string join_clauses(const std::vector<std::string>& clauses) {
  std::string text;
  for (std::size_t i = 0; i < clauses.size(); ++i) text += (i == 0 ? "" : "; ") + clauses[i];
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string no_sink_sentence(const SinkMap& map) {
  const MappedHead* largest = nullptr;
  for (const MappedHead& head : map.heads) {
    if (!head.hidden && std::isfinite(head.mass.value) && (largest == nullptr || head.mass.value > largest->mass.value))
      largest = &head;
  }
  if (largest == nullptr && map.everywhere) return "No key is seen by enough queries, so none can be a sink.";
  if (largest == nullptr) return "BOS is outside the window of every layer, so no head can be a sink on it.";
  if (map.everywhere)
    return fmt::format("No head is a sink: no token gets {:g} of the attention of the queries that see it.",
                       map.threshold);
  return fmt::format("No head is a sink on BOS: the largest BOS mass is {} (layer {}, head {}).",
                     shown(largest->mass.value), largest->layer, largest->head);
}

}  // namespace

std::size_t SinkMap::sinks() const {
  return static_cast<std::size_t>(
      std::count_if(heads.begin(), heads.end(), [](const MappedHead& head) { return head.is_sink; }));
}

std::size_t SinkMap::early() const {
  return static_cast<std::size_t>(
      std::count_if(heads.begin(), heads.end(), [](const MappedHead& head) { return head.early; }));
}

SinkMap sink_map_of_keys(const runfile::RunReader& reader, const analyses::SinkKeys& sinks) {
  SinkMap map{sinks.lengths.back(), true, sinks.threshold, {}};
  const auto by_head = [&](const std::vector<analyses::SinkKey>& keys) {
    std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const analyses::SinkKey*>> sorted;  // by layer, head
    for (const analyses::SinkKey& key : keys) {
      if (key.length == map.length.tokens) sorted[{key.layer, key.head}].push_back(&key);
    }
    return sorted;
  };
  auto counted_keys = by_head(sinks.counted), sink_keys = by_head(sinks.keys);
  for (std::size_t layer = 0; layer < reader.layers().size(); ++layer) {
    for (std::int64_t head = 0; head < reader.heads(); ++head) {
      MappedHead entry{layer,
                       reader.layers()[layer],
                       head,
                       reader.attention()[layer],
                       sinks.mass_of(map.length, layer, static_cast<std::size_t>(head)),
                       false,
                       false,
                       false,
                       "",
                       true,
                       Measured::none("no such key"),
                       Measured::none("no such key")};
      if (std::isfinite(entry.mass.value)) {
        set_strongest_token(entry, counted_keys[{entry.layer, head}]);
        set_sinks(entry, sink_keys[{entry.layer, head}]);
      }
      map.heads.push_back(std::move(entry));
    }
  }
  return map;
}

Maybe<SinkMap> sink_map(const SweepRun& run) {
  if (!analyses::has_sink_keys(run.reader()) || run.of(sink_keys_of).first_keys_only) return map_of_bos(run);
  return sink_map_of_keys(run.reader(), run.of(sink_keys_of));
}

std::vector<const MappedHead*> strongest(const SinkMap& map, std::size_t most) {
  std::vector<const MappedHead*> heads;
  for (const MappedHead& head : map.heads) {
    if (map.everywhere ? head.mass.value > 0 : head.is_sink) heads.push_back(&head);
  }
  std::stable_sort(heads.begin(), heads.end(),
                   [](const auto* a, const auto* b) { return a->mass.value > b->mass.value; });
  if (heads.size() > most) heads.resize(most);
  return heads;
}

namespace {

/// Heads that share a clause: kind of attention, whether the token is another than BOS, whether early queries alone see
/// the sink.
using Clause = std::tuple<std::string, bool, bool>;

/// "BOS, a", in the order of the heads.
/// @param token_of  MappedHead's token or early_token
std::string tokens_of_heads(const std::vector<const MappedHead*>& heads, std::string MappedHead::*token_of,
                            const std::function<std::string(const std::string&)>& token) {
  std::vector<std::string> tokens;
  for (const MappedHead* head : heads) {
    if (std::find(tokens.begin(), tokens.end(), head->*token_of) == tokens.end()) tokens.push_back(head->*token_of);
  }
  constexpr std::size_t most = 3;
  std::string named;
  for (std::size_t i = 0; i < std::min(tokens.size(), most); ++i) named += (i == 0 ? "" : ", ") + token(tokens[i]);
  if (tokens.size() > most) named += fmt::format(" and {} others", tokens.size() - most);
  return named;
}

/// The heads with mass in the layers that have such a sink, for each kind of attention, for BOS and for other tokens.
/// Last the sinks that early queries alone see.
std::vector<std::pair<Clause, std::vector<const MappedHead*>>> clauses_of(const SinkMap& map) {
  std::set<std::tuple<std::int64_t, std::string, bool>> layers;  // with a sink: number, attention, elsewhere
  for (const MappedHead& head : map.heads) {
    if (head.is_sink && !head.early) layers.insert({head.layer, head.attention, head.elsewhere});
  }
  std::vector<std::pair<Clause, std::vector<const MappedHead*>>> clauses;
  const auto add = [&](const MappedHead& head, const Clause& key) {
    const auto same =
        std::find_if(clauses.begin(), clauses.end(), [&](const auto& entry) { return entry.first == key; });
    if (same == clauses.end())
      clauses.push_back({key, {&head}});
    else
      same->second.push_back(&head);
  };
  for (const MappedHead* head : strongest(map, map.heads.size())) {
    if (layers.contains({head->layer, head->attention, head->elsewhere}))
      add(*head, {head->attention, head->elsewhere, false});
  }
  for (const MappedHead& head : map.heads) {
    if (head.early) add(head, {head.attention, false, true});
  }
  return clauses;
}

/// "on BOS"; where some head has mass on another token too, "on a few keys, most on BOS".
std::string where_in_words(const std::vector<const MappedHead*>& heads, const std::string& tokens) {
  const bool alone = std::all_of(heads.begin(), heads.end(), [](const MappedHead* head) { return head->token_alone; });
  return alone ? "on " + tokens : "on a few keys, most on " + tokens;
}

}  // namespace

std::string shown(const analyses::SinkMass& mass) {
  return (mass.at_least ? "≥ " : "") + shown(mass.value);
}

std::string sink_sentence(const SinkMap& map, const std::function<std::string(const std::string&)>& token) {
  std::set<std::string> kinds;
  for (const MappedHead& head : map.heads) kinds.insert(head.attention);
  const bool several = kinds.size() > 1;
  std::vector<std::string> words;
  for (const auto& [key, heads] : clauses_of(map)) {
    const std::string tokens =
        tokens_of_heads(heads, std::get<2>(key) ? &MappedHead::early_token : &MappedHead::token, token);
    words.push_back(
        std::get<2>(key)
            ? fmt::format("{} is a sink for early queries only in {}", tokens, layers_named(heads, several))
            : fmt::format("{} {}{}", heads_put(heads, several), where_in_words(heads, tokens), values_in_words(heads)));
  }
  std::string text = words.empty() ? no_sink_sentence(map) : join_clauses(words) + ".";
  if (!words.empty())
    text += fmt::format(" {} of {} {}{}.", map.sinks(), counted(map.heads.size(), "head"),
                        map.sinks() == 1 ? "has a sink" : "have a sink",
                        map.early() == 0 ? "" : fmt::format(", {} of them for early queries only", map.early()));
  return text;
}

}  // namespace gainlens::reports
