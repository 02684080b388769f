#include "reports/sweep/sink_map.h"

#include "analyses/cells.h"
#include "analyses/heatmap.h"
#include "analyses/sink_vs_k.h"
#include "reports/sweep/sections.h"
#include "reports/words/counts.h"
#include "reports/words/numbers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::Maybe;
using analyses::Measured;

/// Norm of the value of BOS by the mean norm of the values beyond the first keys.
Measured value_ratio_of_bos(const SweepRun& run, std::size_t layer, std::int64_t head) {
  const auto& norms = run.of(value_norms_of);
  if (!norms) return Measured::none(norms.reason());
  const std::int64_t kv_head = head * run.reader().kv_heads() / run.reader().heads();
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
                       Measured::none("no sink")};
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

std::string percent_range(const std::vector<const MappedHead*>& heads) {
  const auto [least, most] =
      std::minmax_element(heads.begin(), heads.end(), [](const auto* a, const auto* b) { return a->mass < b->mass; });
  const std::string low = fmt::format("{:.0f}", 100 * (*least)->mass),
                    high = fmt::format("{:.0f}", 100 * (*most)->mass);
  return low == high ? high + "%" : fmt::format("{} to {}%", low, high);
}

/// "Global layers 5, 11 and 17": of one kind of attention, which is named if the model has several.
std::string layers_of_kind(const std::vector<const MappedHead*>& heads, bool several_kinds) {
  std::set<std::int64_t> layers;
  for (const MappedHead* head : heads) layers.insert(head->layer);
  const std::string words = layers_in_words({layers.begin(), layers.end()});
  if (several_kinds) return fmt::format("{} {}", heads.front()->attention == "global" ? "global" : "window", words);
  return words;
}

/// "its value there is 0.25 times as long as that of other keys"
std::string values_in_words(const std::vector<const MappedHead*>& heads) {
  std::vector<double> ratios;
  for (const MappedHead* head : heads) {
    if (head->value_ratio) ratios.push_back(*head->value_ratio);
  }
  if (ratios.empty()) return {};
  std::nth_element(ratios.begin(), ratios.begin() + std::ssize(ratios) / 2, ratios.end());
  return fmt::format(" (values {:.2f} times as long as usual)", ratios[ratios.size() / 2]);
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

Maybe<SinkMap> sink_map(const SweepRun& run) {
  return map_of_bos(run);
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

std::string sink_sentence(const SinkMap& map, const std::function<std::string(const std::string&)>& token) {
  std::set<std::string> kinds;
  // By kind of attention and where the sink is: layers of one clause share both. Kinds in the order of their largest
  // mass.
  std::vector<std::pair<std::pair<std::string, bool>, std::vector<const MappedHead*>>> clauses;
  for (const MappedHead& head : map.heads) kinds.insert(head.attention);
  for (const MappedHead* head : strongest(map, map.heads.size())) {
    const std::pair key{head->attention, head->elsewhere};
    const auto same =
        std::find_if(clauses.begin(), clauses.end(), [&](const auto& entry) { return entry.first == key; });
    if (same == clauses.end()) {
      clauses.push_back({key, {head}});
    } else {
      same->second.push_back(head);
    }
  }
  std::vector<std::string> words;
  for (const auto& [key, heads] : clauses) {
    std::vector<std::string> tokens;  // in the order of their heads' mass
    for (const MappedHead* head : heads) {
      if (std::find(tokens.begin(), tokens.end(), head->token) == tokens.end()) tokens.push_back(head->token);
    }
    constexpr std::size_t most_tokens = 3;
    std::string named;
    for (std::size_t i = 0; i < std::min(tokens.size(), most_tokens); ++i)
      named += (i == 0 ? "" : ", ") + token(tokens[i]);
    if (tokens.size() > most_tokens) named += fmt::format(" and {} others", tokens.size() - most_tokens);
    words.push_back(fmt::format("{} put {} of their attention on {}{}", layers_of_kind(heads, kinds.size() > 1),
                                percent_range(heads), named, values_in_words(heads)));
  }
  std::string text = words.empty() ? no_sink_sentence(map) : join_clauses(words) + ".";
  if (!words.empty())
    text += fmt::format(" {} of {} {}.", map.sinks(), counted(map.heads.size(), "head"),
                        map.sinks() == 1 ? "is a sink" : "are sinks");
  return text;
}

}  // namespace gainlens::reports
