#pragma once

#include "analyses/cells.h"
#include "analyses/options.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// How a statement of the paper stands. None of them is a test: what a run measures is given as a range, without a
/// ruling.
enum class Outcome {
  by_algebra,   ///< false whatever is measured; the numbers show by how much
  measured,     ///< hangs on the model: the range over its heads is given
  no_numbers,   ///< hangs on the model, and this run lacks the numbers
  not_measured  ///< no sweep can show it
};
/// "false by algebra", "measured, no ruling", "no numbers in this run", "not measured by a sweep".
std::string_view name_of(Outcome outcome);

/// A number that a finding rests on.
struct Quantity {
  std::string name;   ///< of the JSON key
  std::string label;  ///< in words, with its unit
  Measured value;
};

/// A statement of the paper that is false as printed, or hangs on the model, and what this run shows of it.
struct Statement {
  std::string name;
  std::string claim;              ///< in our words
  std::string source;             ///< where the paper makes it
  std::vector<Quantity> numbers;  ///< of this run, or arithmetic
  std::string finding;            ///< one or two sentences with the numbers
  std::string
      conclusion;  ///< what is right instead, with the algebra; where a sweep cannot show it, where it can be checked
  Outcome outcome;
};

/// Heads of similar n_eff, and how much of S + nu sigma0^2 is the prior's there.
struct PriorShare {
  std::size_t heads;
  double n_eff;     ///< mean over heads
  double residual;  ///< mean S, squared unit of the values
  double share;     ///< mean over heads of nu sigma0^2 / (S + nu sigma0^2), as printed
  double
      fading;  ///< mean over heads of nu sigma0^2 / (n_eff S + nu sigma0^2), of a prior that counts as nu observations
};

/// Up to four groups of equally many heads, n_eff ascending. Missing where the run has no n_eff or S, or no head with
/// both.
/// @throws InvalidArgument  see sink_lengths()
Maybe<std::vector<PriorShare>> prior_shares(const runfile::RunReader& reader, const Options& options = {});

/// The statements listed in method.md ("False as printed"), in its order; those that a sweep cannot show too.
/// Means over all heads at the lengths of sink_lengths().
/// @throws InvalidArgument  see sink_lengths()
std::vector<Statement> statements(const runfile::RunReader& reader, const Options& options = {});
OrderedJson to_json(const Statement& statement);

}  // namespace gainlens::analyses
