#pragma once

#include "analyses/cells.h"
#include "analyses/options.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// The status of a statement of the paper. None is the result of a test: what a run measures is given as a range,
/// without a ruling.
enum class Outcome {
  by_algebra,   ///< false for every model; the numbers show by how much
  measured,     ///< depends on the model: the range over its heads is given
  no_numbers,   ///< depends on the model, and this run does not have the numbers
  not_measured  ///< no sweep can show it
};
/// "false by algebra", "measured, no ruling", "no numbers in this run", "not measured by a sweep".
std::string_view name_of(Outcome outcome);

/// A number used in a finding.
struct Quantity {
  std::string name;   ///< JSON key
  std::string label;  ///< in words, with its unit
  Measured value;
};

/// A statement of the paper that is false as printed or depends on the model, and what this run shows about it.
struct Statement {
  std::string name;
  std::string claim;              ///< the statement in our words
  std::string source;             ///< where the paper makes it
  std::vector<Quantity> numbers;  ///< of this run, or arithmetic
  std::string finding;            ///< one or two sentences with the numbers
  std::string conclusion;  ///< what is correct instead, with the algebra; if a sweep cannot show it, how to check it
  Outcome outcome;
  bool on_recommenders = false;  ///< about recommenders: it does not stand on a page about a language model
};

/// Heads of similar n_eff, and the prior's share of S + nu sigma0^2 at them.
struct PriorShare {
  std::size_t heads;
  double n_eff;     ///< mean over heads
  double residual;  ///< mean S, squared unit of the values
  double share;     ///< mean over heads of nu sigma0^2 / (S + nu sigma0^2), as printed
  double fading;    ///< the same for a prior that counts as nu observations: nu sigma0^2 / (n_eff S + nu sigma0^2)
};

/// Up to four groups of about equally many heads, n_eff ascending. Missing if the run has no n_eff or S, or if a head
/// has no finite value of one of them.
/// @throws InvalidArgument  see sink_lengths()
Maybe<std::vector<PriorShare>> prior_shares(const runfile::RunReader& reader, const Options& options = {});

/// The statements listed in docs/method.md, "False as printed", in that order, including those that a sweep cannot
/// show. Numbers are means at the lengths of sink_lengths(), over all heads.
/// @throws InvalidArgument  see sink_lengths()
std::vector<Statement> statements(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Statement& statement);

}  // namespace gainlens::analyses
