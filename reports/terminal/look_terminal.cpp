#include "reports/terminal/look_terminal.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/json.h"
#include "reports/terminal/generation_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

constexpr std::int64_t shown_first = 16, shown_last = 48;  // tokens of a long prompt
constexpr std::size_t shown_heads = 160;                   // lines of heads that a person can read

std::string quoted(const std::string& text) {
  constexpr std::size_t longest = 24;
  return "'" + printable(text, longest) + "'";
}

std::string shown(const std::string& text, std::int32_t id) {
  return text.empty() ? fmt::format("token {}", id) : quoted(text);
}

std::string next_text(const NextToken& token) {
  return shown(token.text, token.id);
}

std::string number(float value, int digits) {
  return std::isnan(value) ? std::string("-") : fmt::format("{:.{}f}", value, digits);
}

std::string tokens_of(const PromptLook& look) {
  const std::int64_t length = std::ssize(look.tokens);
  std::string text = fmt::format("tokens    {}; {}\n", counted(length, "token"), look.bos_policy);
  if (look.trained_for)
    text += fmt::format("          the model was made for {}: all that follows is beyond what it was trained with\n",
                        counted(*look.trained_for, "token"));
  std::string line = "        ";
  const auto flush = [&] {
    text += line + '\n';
    line = "        ";
  };
  for (std::int64_t position = 0; position < length; ++position) {
    if (length > shown_first + shown_last && position == shown_first) {
      position = length - shown_last;
      flush();
      text += fmt::format("          .. {} more\n", counted(position - shown_first, "token"));
    }
    const std::string item = fmt::format("  {} {}", position, position_text(look, position));
    if (line.size() + item.size() > 110) flush();
    line += item;
  }
  flush();
  return text;
}

std::string next_of(const PromptLook& look) {
  std::string text = "next     ";
  for (const NextToken& token : look.next)
    text += fmt::format("  {} {:.3f} (logit {:.2f})", next_text(token), token.probability, token.logit);
  return text + '\n';
}

/// "3 ' The' 0.41, 0 '<bos>' 0.22": the keys with the most weight.
std::string keys_of(const PromptLook& look, const LookedHead& head, std::int64_t query, std::int64_t most) {
  std::string text;
  for (std::int64_t rank = 0; rank < std::min(most, look.top_count); ++rank) {
    const auto at = static_cast<std::size_t>(query * look.top_count + rank);
    if (head.top_keys[at] < 0) break;
    text += fmt::format("{}{} {} {:.2f}", rank == 0 ? "" : ", ", head.top_keys[at],
                        position_text(look, head.top_keys[at]), head.top_weights[at]);
  }
  return text;
}

std::string heads_of(const PromptLook& look, std::int64_t query) {
  std::vector<const LookedHead*> shown;
  for (const LookedHead& head : look.heads) shown.push_back(&head);
  const std::size_t all = shown.size();
  const auto at = static_cast<std::size_t>(query);
  if (all > shown_heads) {  // those that look at the fewest keys say the most
    std::stable_sort(shown.begin(), shown.end(), [&](const LookedHead* a, const LookedHead* b) {
      return !(std::isnan(a->n_eff[at])) && (std::isnan(b->n_eff[at]) || a->n_eff[at] < b->n_eff[at]);
    });
    shown.resize(shown_heads);
  }
  std::string text =
      fmt::format("heads     at query {} {}{}\n", query, position_text(look, query),
                  all > shown.size() ? fmt::format("; the {} of {} with the smallest n_eff", shown.size(), all) : "");
  text += fmt::format("{:>7}  {:>8}  {:>6}  {:>7}  {:>8}  keys with the most weight\n", "head", "n_eff", "K", "entropy",
                      "BOS mass");
  for (const LookedHead* head : shown) {
    text += fmt::format("{:>7}  {:>8}  {:>6}  {:>7}  {:>8}  {}\n", fmt::format("{}.{}", head->layer, head->head),
                        number(head->n_eff[at], 2), number(head->kalman_gain[at], 3), number(head->entropy[at], 2),
                        number(head->bos_mass[at], 3), keys_of(look, *head, query, 3));
  }
  return text;
}

std::string sinks_of(const PromptLook& look) {
  const std::vector<SinkKey> keys = sink_keys(look);
  if (keys.empty()) return {};
  std::string text = fmt::format(
      "keys      that queries look at: their mean weight over the queries that see them, mean over heads; heads where "
      "it is {} or more\n",
      sink_column);
  for (const SinkKey& key : keys)
    text += fmt::format("{:>7}  {:<26}  {:.3f}  {}\n", key.position, position_text(look, key.position), key.mean,
                        counted(key.heads, "head"));
  return text;
}

std::string query_of(const PromptLook& look) {
  const LookedQuery& query = *look.query;
  const double largest = *std::max_element(query.weights.begin(), query.weights.end());
  constexpr std::int64_t a_line = 64;
  std::string text = fmt::format("head {}.{} at query {} {}: the weight of each key (a full bar is {:.3f}{})\n",
                                 query.layer, query.head, query.query, position_text(look, query.query), largest,
                                 query.query < a_line ? "" : "; lines without a bar are left out");
  for (std::int64_t begin = 0; begin <= query.query; begin += a_line) {
    const std::int64_t end = std::min(begin + a_line, query.query + 1);
    if (std::all_of(query.weights.begin() + begin, query.weights.begin() + end,
                    [&](double weight) { return weight < largest / 16; }))
      continue;
    text += fmt::format("{:>7}  |", begin);
    for (std::int64_t key = begin; key < end; ++key) {
      const double share = largest > 0 ? query.weights[static_cast<std::size_t>(key)] / largest : 0;
      text += bar(share);
    }
    text += "|\n";
  }
  const auto head = std::find_if(look.heads.begin(), look.heads.end(), [&](const LookedHead& one) {
    return one.layer == query.layer && one.head == query.head;
  });
  for (std::int64_t rank = 0; rank < look.top_count; ++rank) {
    const auto at = static_cast<std::size_t>(query.query * look.top_count + rank);
    if (head->top_keys[at] < 0) break;
    text += fmt::format("{:>7}  {:<26}  {:.4f}\n", head->top_keys[at], position_text(look, head->top_keys[at]),
                        head->top_weights[at]);
  }
  return text;
}

std::string lens_of(const PromptLook& look, std::int64_t query) {
  std::string text =
      fmt::format("lens      the stream after each layer at query {} {}, read by the final norm and the output head\n",
                  query, position_text(look, query));
  text += fmt::format("{:>7}  {:>7}  {:>10}", "layer", "entropy", "KL to last");
  if (look.lens_answer)
    text += fmt::format("  {:>7}  {:>8}  {:>7}", "rank", "logit", "p") +
            fmt::format("  (of {})", shown(look.lens_answer_text, *look.lens_answer));
  text += "  most likely next tokens\n";
  for (const LensRow& row : look.lens) {
    if (row.position != query) continue;
    text += fmt::format("{:>7}  {:>7.3f}  {:>10.3f}", row.layer, row.entropy, row.kl_to_last);
    if (row.answer)
      text += fmt::format("  {:>7}  {:>8.3f}  {:>7.4f}", row.answer->rank, row.answer->logit, row.answer->probability);
    for (const NextToken& token : row.next) text += fmt::format("  {} {:.3f}", next_text(token), token.probability);
    text += '\n';
  }
  return text;
}

std::string parts_of(const PromptLook& look) {
  const LogitParts& parts = *look.parts;
  std::string text = fmt::format(
      "parts     of the logit of {} minus that of {}, {:+.4f} at the last token; they sum to {:+.4f}\n",
      shown(parts.answer_text, parts.answer), shown(parts.foil_text, parts.foil), parts.difference, parts.sum);
  if (!parts.missed.empty()) text += fmt::format("          not the same: {}\n", parts.missed);
  if (!parts.divided.empty()) text += fmt::format("          heads have no parts of their own: {}\n", parts.divided);
  std::vector<const LogitPart*> order;
  for (const LogitPart& part : parts.parts) order.push_back(&part);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return std::abs(a->value) > std::abs(b->value); });
  constexpr std::size_t most = 24;
  for (std::size_t i = 0; i < std::min(most, order.size()); ++i)
    text += fmt::format("{:>+9.4f}  {}\n", order[i]->value, order[i]->name);
  if (order.size() > most) {
    double rest = 0;
    for (std::size_t i = most; i < order.size(); ++i) rest += order[i]->value;
    text += fmt::format("{:>+9.4f}  {} more, together\n", rest, order.size() - most);
  }
  return text;
}

std::string segments_of(const PromptLook& look) {
  std::string text =
      look.segment_queries == 1
          ? std::string("segments  share of the weights of the last query\n")
          : fmt::format("segments  share of the weights of the last {} queries, mean\n", look.segment_queries);
  text += fmt::format("{:>7}", "head");
  for (const PromptSegment& segment : look.segments) text += fmt::format("  {:>12}", printable(segment.name, 12));
  text += '\n';
  for (const LookedHead& head : look.heads) {
    text += fmt::format("{:>7}", fmt::format("{}.{}", head.layer, head.head));
    for (const double mass : head.segment_mass) text += fmt::format("  {:>12.3f}", mass);
    text += '\n';
  }
  return text;
}

std::string json_head(const PromptLook& look, const LookedHead& head) {
  std::string text = '{' + json_members(head) + ",\"top_keys\":[";
  for (std::size_t query = 0; query < head.n_eff.size(); ++query) {
    text += query == 0 ? "[" : ",[";
    for (std::int64_t rank = 0; rank < look.top_count; ++rank) {
      const std::size_t at = query * static_cast<std::size_t>(look.top_count) + static_cast<std::size_t>(rank);
      if (head.top_keys[at] < 0) break;
      text += fmt::format("{}[{},{}]", rank == 0 ? "" : ",", head.top_keys[at], json_number(head.top_weights[at]));
    }
    text += ']';
  }
  text += "],\"column_mean\":" + json_list(head.column_mean);
  if (!look.segments.empty()) text += ",\"segment_mass\":" + json_list(head.segment_mass);
  return text + '}';
}

OrderedJson json_next(const std::vector<NextToken>& next) {
  OrderedJson list = OrderedJson::array();
  for (const NextToken& token : next)
    list.push_back({{"id", token.id}, {"logit", token.logit}, {"probability", token.probability}});
  return list;
}

/// What was asked for besides, as further members: ",\"lens\":[..]".
std::string json_asked(const PromptLook& look) {
  std::string text;
  const auto add = [&](const char* name, const OrderedJson& json) {
    text += fmt::format(",\"{}\":{}", name, json_text(json));
  };
  if (look.query)
    add("query", {{"layer", look.query->layer},
                  {"head", look.query->head},
                  {"query", look.query->query},
                  {"weights", look.query->weights}});
  if (!look.lens.empty()) {
    OrderedJson rows = OrderedJson::array();
    for (const LensRow& row : look.lens) {
      OrderedJson one = {
          {"position", row.position}, {"layer", row.layer}, {"entropy", row.entropy}, {"kl_to_last", row.kl_to_last}};
      if (row.answer)
        one["answer"] = {{"id", *look.lens_answer},
                         {"rank", row.answer->rank},
                         {"logit", row.answer->logit},
                         {"probability", row.answer->probability}};
      one["next"] = json_next(row.next);
      rows.push_back(one);
    }
    add("lens", rows);
  }
  if (look.parts) {
    OrderedJson parts = OrderedJson::array();
    for (const LogitPart& part : look.parts->parts) parts.push_back({{"part", part.name}, {"value", part.value}});
    OrderedJson attribution = {{"answer", look.parts->answer},
                               {"foil", look.parts->foil},
                               {"logit_difference", look.parts->difference},
                               {"before_soft_cap", look.parts->linear},
                               {"sum", look.parts->sum}};
    if (!look.parts->missed.empty()) attribution["sum_reason"] = look.parts->missed;
    if (!look.parts->divided.empty()) attribution["heads_reason"] = look.parts->divided;
    attribution["parts"] = parts;
    add("attribution", attribution);
  }
  if (!look.segments.empty()) {
    OrderedJson segments = OrderedJson::array();
    for (const PromptSegment& one : look.segments)
      segments.push_back({{"name", one.name}, {"begin", one.begin}, {"end", one.end}});
    add("segments", segments);
  }
  return text;
}

}  // namespace

std::string position_text(const PromptLook& look, std::int64_t position) {
  const auto at = static_cast<std::size_t>(position);
  return look.token_texts.empty() ? fmt::format("token {}", look.tokens[at]) : quoted(look.token_texts[at]);
}

std::vector<SinkKey> sink_keys(const PromptLook& look, std::size_t most) {
  const std::int64_t length = std::ssize(look.tokens);
  const std::int64_t counted_keys = length < 8 ? length : length - length / 4;
  std::vector<SinkKey> keys;
  for (std::int64_t position = 0; position < counted_keys; ++position) {
    SinkKey key{position};
    std::int64_t seen = 0;
    for (const LookedHead& head : look.heads) {
      const float mean = head.key_mean[static_cast<std::size_t>(position)];
      if (std::isnan(mean)) continue;
      ++seen;
      key.mean += mean;
      if (mean >= sink_column) ++key.heads;
    }
    if (seen == 0) continue;
    key.mean /= static_cast<double>(seen);
    keys.push_back(key);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const SinkKey& a, const SinkKey& b) { return a.mean > b.mean; });
  keys.resize(std::min(keys.size(), most));
  return keys;
}

std::string print_look(const PromptLook& look, std::int64_t query) {
  std::string text = tokens_of(look) + next_of(look) + '\n' + heads_of(look, query) + '\n' + sinks_of(look);
  if (look.query) text += '\n' + query_of(look);
  if (!look.lens.empty()) text += '\n' + lens_of(look, query);
  if (look.parts) text += '\n' + parts_of(look);
  if (!look.segments.empty()) text += '\n' + segments_of(look);
  return text;
}

void write_look_json(const PromptLook& look, const std::function<void(std::string_view)>& write) {
  write(fmt::format("{{\"tokens\":{},\"next\":{},\"heads\":[", json_text(OrderedJson(look.tokens)),
                    json_text(json_next(look.next))));
  for (std::size_t i = 0; i < look.heads.size(); ++i) write((i == 0 ? "" : ",") + json_head(look, look.heads[i]));
  write("]" + json_asked(look) + "}\n");
}

}  // namespace gainlens::reports
