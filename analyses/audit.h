#pragma once

#include "analyses/cells.h"
#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/statements.h"
#include "runfile/query_windows.h"
#include "runfile/run_reader.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::analyses {

using runfile::bound_rounding;

/// The sink lemma at one head, in head space: before W_O, because the paper's layers have no W_O. Means over
/// second-half queries, then over chunks, then over lengths, each length with the same weight. Norms are in the unit of
/// the values.
struct LemmaHead {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::int64_t kv_head;
  std::string attention;  ///< "global" or "window:N"
  bool set_apart;  ///< key 0 is outside its window, so the weight is 0 and the bound vacuous; excluded from the figures
  double first_norm;     ///< epsilon: norm of the value of key 0
  double min_norm;       ///< mu: smallest norm of a value of the chunk's other keys
  double others_norm;    ///< ||vbar||: norm of the mean of the other keys' values under their weights renormalised
  double alignment;      ///< c = min(1, ||vbar|| / mu)
  double estimate_norm;  ///< delta: ||e||
  double gained_norm;    ///< ||K o e||, K at lambda = 1
  double bos_mass;       ///< alpha_1: weight of key 0
  double bound;          ///< max(0, 1 - (delta + epsilon) / (mu c)), the lemma's lower bound on alpha_1
  double vacuous;        ///< share of queries whose bound is vacuous: not above 0
  Measured slack;        ///< alpha_1 - bound, over the queries with a bound above 0
  /// Smallest alpha_1 - B of any query, chunk and length, with the bound B as it is: where B is negative, this is more
  /// than alpha_1 itself. By the lemma not below 0.
  double slack_min;
  double gain_bound;     ///< the bound with ||K o e|| in place of delta
  double gain_violated;  ///< share of queries whose alpha_1 is below that bound
};

/// slack_min of a head with a bound above 0 at some query. Elsewhere the distance to a negative bound says nothing.
Measured smallest_slack(const LemmaHead& head);

/// Order of heads in tables: by the bound, equal bounds by the weight of key 0, largest first. Where most bounds are
/// vacuous the weight decides: those heads are the sinks that the lemma does not explain.
bool binds_more(const LemmaHead& a, const LemmaHead& b);

/// Does the sink lemma hold, and is its bound above 0? The lemma is the triangle inequality, so it holds for every
/// model: a violation is an error of measurement. What a run can show is where the bound is above 0. With the gain that
/// the paper proposes, the lemma's conclusion need not hold ("the constraint vanishes once K < 1").
struct SinkLemma {
  std::vector<LemmaHead> heads;  ///< layer by layer
  std::size_t left_out;          ///< number of heads without one of the numbers
  std::size_t judged;            ///< number of heads that are not set apart; the figures below are over these
  std::size_t violated;          ///< number of heads with slack_min below -bound_rounding
  double slack_min;              ///< smallest over heads
  double vacuous;                ///< share of queries with a vacuous bound, mean over heads
  std::size_t binding;           ///< number of heads whose bound is above 0 at more than half of the queries
  Measured slack;                ///< mean over heads with a bound above 0
  double gain_violated;          ///< mean over heads
  std::string finding;           ///< these figures in words
};

/// Missing if the run does not have one of the datasets (it was made by an earlier version), or if every layer is set
/// apart.
/// @throws InvalidArgument  see sink_lengths()
/// Source: bft.tex, Lemma sink-necessity.
Maybe<SinkLemma> sink_lemma(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const SinkLemma& lemma);

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
