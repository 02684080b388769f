#include "reports/sweep/sink_map.h"

#include "analyses/cells.h"
#include "analyses/heatmap.h"
#include "analyses/sink_vs_k.h"
#include "analyses/statistics.h"
#include "core/error.h"
#include "reports/sweep/sections.h"
#include "reports/words/counts.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::Maybe;
using analyses::Measured;

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
                       masses->at(layer, head),
                       masses->by_construction[layer],
                       false,
                       false,
                       "",
                       Measured::none("no sink"),
                       Measured::none("not measured")};
      entry.is_sink = !entry.hidden && entry.mass > map.threshold;
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
void set_strongest_token(MappedHead& head, const std::vector<const analyses::SinkKey*>& keys) {
  std::vector<TokenSum> sums;
  for (const analyses::SinkKey* key : keys) {
    const std::string token = shown_token(*key);
    auto sum = std::find_if(sums.begin(), sums.end(), [&](const TokenSum& other) { return other.token == token; });
    if (sum == sums.end()) sum = sums.insert(sums.end(), {token, key->position == 0, 0, {}, {}});
    sum->mass += std::isfinite(key->second_half_mean) ? key->second_half_mean : 0;
    sum->value_ratios.push_back(key->value_norm_ratio);
    sum->stream_ratios.push_back(key->stream_ratio);
  }
  if (sums.empty()) return;
  const TokenSum& most =
      *std::max_element(sums.begin(), sums.end(), [](const TokenSum& a, const TokenSum& b) { return a.mass < b.mass; });
  head.is_sink = true;
  head.early = head.mass == 0;  // no query of the second half sees one of its sinks
  head.elsewhere = !most.bos;
  head.token = most.token;
  head.value_ratio = mean_of_finite(most.value_ratios, "the run has no norms of this token's values");
  head.stream_ratio = mean_of_finite(most.stream_ratios, "the run has no hidden states of this token");
}

std::string percent_range(const std::vector<const MappedHead*>& heads) {
  const auto [least, most] =
      std::minmax_element(heads.begin(), heads.end(), [](const auto* a, const auto* b) { return a->mass < b->mass; });
  const std::string low = fmt::format("{:.0f}", 100 * (*least)->mass),
                    high = fmt::format("{:.0f}", 100 * (*most)->mass);
  return low == high ? high + "%" : fmt::format("{} to {}%", low, high);
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

/// "global layers 5, 11, 17 put 10 to 58%"
std::string layers_put(const std::vector<const MappedHead*>& heads, bool several_kinds, const std::string& share) {
  return fmt::format("{} {} {}", layers_named(heads, several_kinds),
                     layers_of_heads(heads).size() == 1 ? "puts" : "put", share);
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
    if (!head.hidden && std::isfinite(head.mass) && (largest == nullptr || head.mass > largest->mass)) largest = &head;
  }
  if (largest == nullptr && map.everywhere) return "No key is seen by enough queries, so none can be a sink.";
  if (largest == nullptr) return "BOS is outside the window of every layer, so no head can be a sink on it.";
  if (map.everywhere)
    return fmt::format("No head is a sink: no token gets {:g} of the attention of the queries that see it.",
                       map.threshold);
  return fmt::format("No head is a sink on BOS: the largest BOS mass is {} (layer {}, head {}).", shown(largest->mass),
                     largest->layer, largest->head);
}

}  // namespace

std::size_t SinkMap::sinks() const {
  return static_cast<std::size_t>(
      std::count_if(heads.begin(), heads.end(), [](const MappedHead& head) { return head.is_sink; }));
}

SinkMap sink_map_of_keys(const runfile::RunReader& reader, const analyses::SinkKeys& sinks) {
  SinkMap map{sinks.lengths.back(), true, sinks.threshold, {}};
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<const analyses::SinkKey*>> keys;  // by layer, head
  for (const analyses::SinkKey& key : sinks.keys) {
    if (key.length == map.length.tokens) keys[{key.layer, key.head}].push_back(&key);
  }
  for (std::size_t layer = 0; layer < reader.layers().size(); ++layer) {
    for (std::int64_t head = 0; head < reader.heads(); ++head) {
      std::size_t left_out = 0;
      MappedHead entry{
          layer,
          reader.layers()[layer],
          head,
          reader.attention()[layer],
          analyses::mean_over_samples(sinks.total_mass, map.length, layer, static_cast<std::size_t>(head), 0, left_out),
          false,
          false,
          false,
          "",
          Measured::none("no sink"),
          Measured::none("no sink")};
      if (const auto found = keys.find({entry.layer, head}); found != keys.end() && std::isfinite(entry.mass))
        set_strongest_token(entry, found->second);
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
    if (head.is_sink) heads.push_back(&head);
  }
  std::stable_sort(heads.begin(), heads.end(), [](const auto* a, const auto* b) { return a->mass > b->mass; });
  if (heads.size() > most) heads.resize(most);
  return heads;
}

namespace {

/// "BOS, a", in the order of their heads' mass.
std::string tokens_of_heads(const std::vector<const MappedHead*>& heads,
                            const std::function<std::string(const std::string&)>& token) {
  std::vector<std::string> tokens;
  for (const MappedHead* head : heads) {
    if (std::find(tokens.begin(), tokens.end(), head->token) == tokens.end()) tokens.push_back(head->token);
  }
  constexpr std::size_t most = 3;
  std::string named;
  for (std::size_t i = 0; i < std::min(tokens.size(), most); ++i) named += (i == 0 ? "" : ", ") + token(tokens[i]);
  if (tokens.size() > most) named += fmt::format(" and {} others", tokens.size() - most);
  return named;
}

/// Heads that share a clause: kind of attention, whether the sink is another token than BOS, whether early queries
/// alone see it.
using Clause = std::tuple<std::string, bool, bool>;

/// In the order of their largest mass.
std::vector<std::pair<Clause, std::vector<const MappedHead*>>> clauses_of(const SinkMap& map) {
  std::vector<std::pair<Clause, std::vector<const MappedHead*>>> clauses;
  for (const MappedHead* head : strongest(map, map.heads.size())) {
    const Clause key{head->attention, head->elsewhere, head->early};
    const auto same =
        std::find_if(clauses.begin(), clauses.end(), [&](const auto& entry) { return entry.first == key; });
    if (same == clauses.end())
      clauses.push_back({key, {head}});
    else
      same->second.push_back(head);
  }
  return clauses;
}

}  // namespace

std::string sink_sentence(const SinkMap& map, const std::function<std::string(const std::string&)>& token) {
  std::set<std::string> kinds;
  for (const MappedHead& head : map.heads) kinds.insert(head.attention);
  const bool several = kinds.size() > 1;
  std::vector<std::string> words;
  for (const auto& [key, heads] : clauses_of(map)) {
    const std::string tokens = tokens_of_heads(heads, token);
    words.push_back(std::get<2>(key)
                        ? fmt::format("{} is a sink for early queries only in {}", tokens, layers_named(heads, several))
                        : fmt::format("{} of the attention on {}{}", layers_put(heads, several, percent_range(heads)),
                                      tokens, values_in_words(heads)));
  }
  std::string text = words.empty() ? no_sink_sentence(map) : join_clauses(words) + ".";
  if (!words.empty())
    text += fmt::format(" {} of {} {}.", map.sinks(), counted(map.heads.size(), "head"),
                        map.sinks() == 1 ? "has a sink" : "have a sink");
  return text;
}

}  // namespace gainlens::reports
