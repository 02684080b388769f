#include "analyses/audit.h"

#include "analyses/sink_keys.h"
#include "core/counted.h"
#include "core/quantity.h"
#include "runfile/shard.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace gainlens::analyses {
namespace {

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
