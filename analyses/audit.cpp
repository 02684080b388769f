#include "analyses/audit.h"

#include "analyses/sink_keys.h"
#include "analyses/statistics.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "runfile/shard.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace gainlens::analyses {
namespace {

/// A member of LemmaHead, and the dataset that it is a mean of.
struct Field {
  const char* dataset;
  double LemmaHead::*member;
};
constexpr std::array head_fields = {Field{"summary/without_first_norm", &LemmaHead::others_norm},
                                    Field{"summary/sink_alignment", &LemmaHead::alignment},
                                    Field{"summary/estimate_norm", &LemmaHead::estimate_norm},
                                    Field{"summary/gained_estimate_norm", &LemmaHead::gained_norm},
                                    Field{"summary/bos_mass", &LemmaHead::bos_mass},
                                    Field{"summary/sink_bound", &LemmaHead::bound},
                                    Field{"summary/sink_bound_vacuous", &LemmaHead::vacuous},
                                    Field{"summary/sink_bound_gain", &LemmaHead::gain_bound},
                                    Field{"summary/sink_bound_gain_violated", &LemmaHead::gain_violated}};

/// The datasets of the lemma.
struct LemmaCells {
  std::vector<Cells> fields;  // as head_fields
  Cells first_norm, min_norm, slack, slack_min;
};

Maybe<LemmaCells> read_lemma_cells(const runfile::RunReader& reader) {
  const auto missing = [&](const std::string& reason) {
    const std::int64_t version = reader.request().version;
    if (version >= 2) return Maybe<LemmaCells>::none(reason);
    return Maybe<LemmaCells>::none(fmt::format(
        "{}: it was swept with statistics version {}, which did not measure the lemma; sweep again into another folder",
        reason, version));
  };
  std::vector<Cells> fields;
  for (const Field& field : head_fields) {
    const auto cells = Cells::read(reader, field.dataset);
    if (!cells) return missing(cells.reason());
    fields.push_back(*cells);
  }
  std::vector<Cells> others;
  for (const char* name :
       {"values/first_norm", "values/min_norm", "summary/sink_bound_slack", "summary/sink_bound_slack_min"}) {
    const auto cells = Cells::read(reader, name);
    if (!cells) return missing(cells.reason());
    others.push_back(*cells);
  }
  return LemmaCells{std::move(fields), others[0], others[1], others[2], others[3]};
}

/// Smallest over chunks and lengths; NaN if no chunk has a value.
double smallest(const Cells& cells, const std::vector<Length>& lengths, std::size_t layer, std::size_t head) {
  double least = std::numeric_limits<double>::quiet_NaN();
  for (const Length& length : lengths) {
    for (const std::int64_t sample : length.samples)
      least = std::fmin(least, cells.at(length.index, sample, layer, head));
  }
  return least;
}

bool is_whole(const LemmaHead& head) {
  bool whole = std::isfinite(head.first_norm) && std::isfinite(head.min_norm) && std::isfinite(head.slack_min);
  for (const Field& field : head_fields) whole = whole && std::isfinite(head.*field.member);
  return whole;
}

/// Whether key 0 is outside the window of every second-half query at one of the lengths.
bool hides_first_key(const std::string& attention, const std::vector<Length>& lengths) {
  return std::any_of(lengths.begin(), lengths.end(), [&](const Length& length) {
    return first_key_visibility(attention, length.tokens) == FirstKey::hidden;
  });
}

LemmaHead read_head(const runfile::RunReader& reader, const LemmaCells& cells, const std::vector<Length>& lengths,
                    std::size_t layer, std::size_t head) {
  std::size_t ignored = 0;
  const auto mean_of = [&](const Cells& of, std::size_t which) {
    return mean_over_lengths(of, lengths, layer, which, 0, ignored);
  };
  const std::size_t kv_head =
      head * static_cast<std::size_t>(reader.kv_heads()) / static_cast<std::size_t>(reader.heads());
  const double slack = mean_of(cells.slack, head);
  const std::string& attention = reader.attention()[layer];
  LemmaHead result{.layer = reader.layers()[layer],
                   .head = static_cast<std::int64_t>(head),
                   .kv_head = reader.kv_head_of(layer, static_cast<std::int64_t>(head)),
                   .attention = attention,
                   .set_apart = hides_first_key(attention, lengths),
                   .first_norm = mean_of(cells.first_norm, kv_head),
                   .min_norm = mean_of(cells.min_norm, kv_head),
                   .others_norm = 0,
                   .alignment = 0,
                   .estimate_norm = 0,
                   .gained_norm = 0,
                   .bos_mass = 0,
                   .bound = 0,
                   .vacuous = 0,
                   .slack = std::isfinite(slack) ? Measured(slack)
                                                 : Measured::none("the bound is vacuous at every query of some length"),
                   .slack_min = smallest(cells.slack_min, lengths, layer, head),
                   .gain_bound = 0,
                   .gain_violated = 0};
  for (std::size_t i = 0; i < head_fields.size(); ++i) result.*head_fields[i].member = mean_of(cells.fields[i], head);
  return result;
}

double mean_over_heads(const std::vector<LemmaHead>& heads, double LemmaHead::*member) {
  double sum = 0;
  std::size_t count = 0;
  for (const LemmaHead& head : heads) {
    if (head.set_apart) continue;
    sum += head.*member;
    ++count;
  }
  return sum / static_cast<double>(count);
}

Measured mean_slack(const std::vector<LemmaHead>& heads) {
  std::vector<double> slacks;
  for (const LemmaHead& head : heads) {
    if (!head.set_apart && head.slack) slacks.push_back(*head.slack);
  }
  return slacks.empty() ? Measured::none("the bound is vacuous everywhere") : Measured(mean(slacks));
}

std::string holds_in_words(const SinkLemma& lemma) {
  if (lemma.violated > 0) {
    return fmt::format(
        "The bound is broken at {} of {}, by up to {:.2g}. It is a theorem, so the measurement is wrong there, or less "
        "exact than float32.",
        lemma.violated, counted(lemma.judged, "head"), -lemma.slack_min);
  }
  return fmt::format(
      "The bound holds at every query of {}, as it must by the triangle inequality (smallest weight less bound, also "
      "where the bound is negative: {:.2g}).",
      counted(lemma.judged, "head"), lemma.slack_min);
}

/// Says at how many heads the bound is above 0 for most queries.
std::string binding_in_words(const SinkLemma& lemma) {
  if (lemma.binding == 0) return "no head has a bound above 0 at most of its queries";
  return fmt::format("{} of {} {} a bound above 0 at most of {} queries", lemma.binding, counted(lemma.judged, "head"),
                     lemma.binding == 1 ? "has" : "have", lemma.binding == 1 ? "its" : "their");
}

std::string in_words(const SinkLemma& lemma) {
  std::string text = holds_in_words(lemma);
  text += fmt::format(" It is vacuous (not above 0) at {:.1f}% of the queries; {}.", 100 * lemma.vacuous,
                      binding_in_words(lemma));
  if (lemma.slack)
    text += fmt::format(" Where the bound is above 0, the weight is {:.3f} above it on average.", *lemma.slack);
  std::vector<double> first_to_least;
  for (const LemmaHead& head : lemma.heads) {
    if (!head.set_apart && head.min_norm > 0) first_to_least.push_back(head.first_norm / head.min_norm);
  }
  if (!first_to_least.empty()) {
    text += fmt::format(
        " The median of epsilon / mu over heads is {:.2f} (epsilon: norm of the value of key 0); the bound says "
        "something only well below 1.",
        median(first_to_least));
  }
  text += fmt::format(" With K o e in place of e, the weight is below the bound at {:.1f}% of the queries.",
                      100 * lemma.gain_violated);
  return text;
}

/// Of the keys of one head in one chunk, the strongest with a short value; null if there is none.
using Strongest = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>, const SinkKey*>;

Strongest strongest_short_keys(const SinkKeys& sinks) {
  Strongest strongest;  // by layer, head, length, sample
  for (const SinkKey& key : sinks.keys) {
    if (!(key.value_norm_ratio <= short_value_ratio)) continue;
    const SinkKey*& best = strongest[{key.layer, key.head, key.length, key.sample}];
    if (best == nullptr || key.column_mean > best->column_mean) best = &key;
  }
  return strongest;
}

std::vector<std::string> notes_of(const runfile::RunReader& reader, const std::vector<Length>& lengths,
                                  const Maybe<SinkLemma>& lemma) {
  std::vector<std::string> notes;
  notes.emplace_back(
      "Norms are taken in head space, before W_O, because the paper's layers have no W_O. mu is the smallest norm in "
      "the whole chunk: the bound then holds for every query, and is a little weaker than with only the keys that the "
      "query sees.");
  if (!reader.request().bos) {
    notes.emplace_back(
        "Key 0 is the text's first token, not a BOS token: the lemma holds for any key, and another key may be the "
        "sink.");
  }
  if (reader.request().gated) {
    notes.emplace_back(
        "The gate of this model scales e before W_O; delta is the norm before the gate, as in a layer without a gate.");
  }
  if (reader.request().sink_logits) {
    notes.emplace_back(
        "The lemma is about weights among the keys, without the learned sink logit; BOS mass is a share of the keys "
        "and the sink together.");
  }
  for (const Length& length : lengths) {
    if (length.missing > 0)
      notes.push_back(fmt::format("Chunks missing at {} tokens: {} of {}.", format_count(length.tokens), length.missing,
                                  reader.samples()));
  }
  if (lemma && lemma->judged < lemma->heads.size()) {
    notes.push_back(fmt::format("{} excluded: key 0 is outside the window, so its weight is 0 there.",
                                counted_are(lemma->heads.size() - lemma->judged, "head")));
  }
  if (lemma && lemma->left_out > 0) {
    notes.push_back(fmt::format("{} left out of the lemma's table because a number is missing.",
                                counted_are(lemma->left_out, "head")));
  }
  return notes;
}

}  // namespace

Measured smallest_slack(const LemmaHead& head) {
  return head.vacuous < 1 ? Measured(head.slack_min) : Measured::none("the bound is negative at every query");
}

bool binds_more(const LemmaHead& a, const LemmaHead& b) {
  return std::pair(a.bound, a.bos_mass) > std::pair(b.bound, b.bos_mass);
}

Maybe<SinkLemma> sink_lemma(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> lengths = sink_lengths(reader, options);
  const auto cells = read_lemma_cells(reader);
  if (!cells) return Maybe<SinkLemma>::none(cells.reason());
  SinkLemma result{.heads = {},
                   .left_out = 0,
                   .judged = 0,
                   .violated = 0,
                   .slack_min = std::numeric_limits<double>::infinity(),
                   .vacuous = 0,
                   .binding = 0,
                   .slack = Measured::none("no head"),
                   .gain_violated = 0,
                   .finding = {}};
  for (const std::size_t layer : all_layers(reader)) {
    for (std::size_t head = 0; head < static_cast<std::size_t>(reader.heads()); ++head) {
      LemmaHead found = read_head(reader, *cells, lengths, layer, head);
      if (!is_whole(found)) {
        ++result.left_out;
        continue;
      }
      if (!found.set_apart) {
        ++result.judged;
        result.violated += found.slack_min < -bound_rounding ? 1 : 0;
        result.binding += found.vacuous < 0.5 ? 1 : 0;
        result.slack_min = std::min(result.slack_min, found.slack_min);
      }
      result.heads.push_back(std::move(found));
    }
  }
  if (result.judged == 0) {
    return Maybe<SinkLemma>::none(result.heads.empty()
                                      ? "no head has all the numbers of the lemma"
                                      : "key 0 is outside the window of every layer, so no head can be a sink on it");
  }
  result.vacuous = mean_over_heads(result.heads, &LemmaHead::vacuous);
  result.gain_violated = mean_over_heads(result.heads, &LemmaHead::gain_violated);
  result.slack = mean_slack(result.heads);
  result.finding = in_words(result);
  return result;
}

OrderedJson to_json(const SinkLemma& lemma) {
  OrderedJson json{{"finding", lemma.finding},
                   {"heads_judged", lemma.judged},
                   {"heads_violated", lemma.violated},
                   {"slack_min", lemma.slack_min},
                   {"vacuous_share", lemma.vacuous},
                   {"heads_binding", lemma.binding},
                   {"gain_violated_share", lemma.gain_violated}};
  put(json, "slack", lemma.slack);
  json["heads"] = OrderedJson::array();
  for (const LemmaHead& head : lemma.heads) {
    OrderedJson row{{"layer", head.layer},
                    {"head", head.head},
                    {"kv_head", head.kv_head},
                    {"attention", head.attention},
                    {"set_apart", head.set_apart},
                    {"epsilon", head.first_norm},
                    {"mu", head.min_norm},
                    {"c", head.alignment},
                    {"delta", head.estimate_norm},
                    {"delta_gain", head.gained_norm},
                    {"without_first_norm", head.others_norm},
                    {"bos_mass", head.bos_mass},
                    {"bound", head.bound},
                    {"vacuous_share", head.vacuous},
                    {"slack_min", head.slack_min},
                    {"bound_gain", head.gain_bound},
                    {"gain_violated_share", head.gain_violated}};
    put(row, "slack", head.slack);
    json["heads"].push_back(std::move(row));
  }
  json["heads_left_out"] = lemma.left_out;
  return json;
}

Maybe<std::vector<ShortKey>> short_keys(const runfile::RunReader& reader, const Options& options) {
  if (!has_sink_keys(reader)) {
    return Maybe<std::vector<ShortKey>>::none(
        "the run has no /sinks: it was swept with an earlier statistics version, or without statistics");
  }
  const std::vector<Length> lengths = sink_lengths(reader, options);
  std::vector<std::int64_t> tokens;
  std::int64_t all_chunks = 0;
  for (const Length& length : lengths) {
    tokens.push_back(length.tokens);
    all_chunks += std::ssize(length.samples);
  }
  const SinkKeys sinks = sink_keys(reader, runfile::min_stored_mean, tokens);
  std::vector<ShortKey> heads;
  std::map<std::string, std::int64_t> names;
  const auto finish = [&] {
    if (heads.empty()) return;
    ShortKey& head = heads.back();
    head.mass /= static_cast<double>(head.chunks);
    head.value_norm_ratio /= static_cast<double>(head.chunks);
    head.token = std::max_element(names.begin(), names.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
    names.clear();
  };
  for (const auto& [place, key] : strongest_short_keys(sinks)) {
    if (heads.empty() || std::pair(heads.back().layer, heads.back().head) != std::pair(key->layer, key->head)) {
      finish();
      heads.push_back({key->layer, key->head, 0, all_chunks, 0, "", 0, 0});
    }
    ShortKey& head = heads.back();
    ++head.chunks;
    head.elsewhere += key->position != 0 ? 1 : 0;
    head.mass += key->second_half_mean;
    head.value_norm_ratio += key->value_norm_ratio;
    ++names[label_of(key->text, key->token)];
  }
  finish();
  return heads;
}

OrderedJson to_json(const ShortKey& key) {
  return {{"layer", key.layer},
          {"head", key.head},
          {"chunks", key.chunks},
          {"all_chunks", key.all_chunks},
          {"chunks_at_another_key_than_0", key.elsewhere},
          {"token", key.token},
          {"mass", key.mass},
          {"value_norm_ratio", key.value_norm_ratio}};
}

Audit audit(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> lengths = sink_lengths(reader, options);
  const auto lemma = sink_lemma(reader, options);
  return {.lengths = lengths,
          .lengths_rule = sink_lengths_rule(reader, options),
          .bos_policy = reader.request().bos_policy,
          .bos = reader.request().bos.has_value(),
          .head_dim = reader.request().head_dim,
          .lemma = lemma,
          .short_keys = short_keys(reader, options),
          .prior_shares = prior_shares(reader, options),
          .statements = statements(reader, options),
          .notes = notes_of(reader, lengths, lemma)};
}

OrderedJson to_json(const PriorShare& group) {
  return {{"heads", group.heads},
          {"n_eff", group.n_eff},
          {"residual", group.residual},
          {"share", group.share},
          {"fading_share", group.fading}};
}

OrderedJson to_json(const Audit& audit) {
  OrderedJson json{{"lengths", tokens_of(audit.lengths)},
                   {"lengths_rule", audit.lengths_rule},
                   {"bos_policy", audit.bos_policy},
                   {"bos", audit.bos},
                   {"head_dim", audit.head_dim}};
  json["lemma"] = audit.lemma ? to_json(*audit.lemma) : OrderedJson{{"reason", audit.lemma.reason()}};
  put(json, "short_valued_keys", audit.short_keys);
  put(json, "prior_shares", audit.prior_shares);
  json["statements"] = to_json(audit.statements);
  json["notes"] = audit.notes;
  return json;
}

}  // namespace gainlens::analyses
