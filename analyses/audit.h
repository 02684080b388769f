#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/sink_lemma.h"
#include "analyses/statements.h"
#include "runfile/run_reader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// A key counts as short-valued if its value is at most this fraction of the median value norm of its KV head.
inline constexpr double short_value_ratio = 0.5;

/// The strongest short-valued key of a head: in each chunk the key with the largest column mean among the stored ones
/// (at least .1) whose value is short. Numbers are means over the chunks that have such a key.
struct ShortKey {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::int64_t chunks;      ///< that have such a key
  std::int64_t all_chunks;  ///< over the lengths
  std::int64_t elsewhere;   ///< of `chunks`: in how many it is not key 0
  std::string token;        ///< how the token that it most often is, is shown
  double mass;              ///< mean weight over second-half queries
  double value_norm_ratio;
};

/// The keys to which the sink lemma applies besides key 0: the paper's statement allows any fixed key. The lemma's
/// bound at them is not computed: it needs the mean of the values without that key, and a run stores it without key 0
/// alone. Heads without such a key are left out. Missing if the run does not have /sinks.
/// @throws InvalidArgument  see sink_lengths() and sink_keys()
Maybe<std::vector<ShortKey>> short_keys(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const ShortKey& key);

/// The paper's theory compared with the numbers of one run: the sink lemma head by head, and statements of the paper
/// that are false as printed or depend on the model.
struct Audit {
  std::vector<Length> lengths;
  std::string lengths_rule;
  std::string bos_policy;
  bool bos;  ///< whether key 0 is a BOS token; otherwise it is the text's first token
  std::int64_t head_dim;
  Maybe<SinkLemma> lemma;
  Maybe<std::vector<ShortKey>> short_keys;  ///< the keys to which the lemma applies besides key 0
  Maybe<std::vector<PriorShare>> prior_shares;
  std::vector<Statement> statements;
  std::vector<std::string> notes;  ///< what a reader must know about these numbers
};

/// Source: bft.tex, app. "Sink Necessity Lemma"; docs/method.md, "False as printed".
/// @throws InvalidArgument  see sink_lengths()
Audit audit(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Audit& audit);

}  // namespace gainlens::analyses
