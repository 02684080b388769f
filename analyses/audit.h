#pragma once

#include "analyses/short_keys.h"
#include "analyses/sink_lemma.h"
#include "analyses/statements.h"

#include <string>
#include <vector>

namespace gainlens::analyses {

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
