#include "analyses/audit.h"

#include "core/counted.h"
#include "core/quantity.h"

namespace gainlens::analyses {
namespace {

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
