#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::golden {

/// How a command serves a family in a format and a dtype.
enum class Support {
  untested,  ///< there is no checkpoint, or no number of the reference
  refused,   ///< with one line and exit code 2
  exact,     ///< the reference's numbers, within the tolerance of float32 or float64
  lower,     ///< the same within that of bfloat16
};

/// What every command did with one checkpoint of every family and format.
struct SupportMap {
  struct Place {
    std::string family;  ///< Family::name
    std::string command;
    bool gguf = false;
    std::string dtype;
    auto operator<=>(const Place&) const = default;
  };
  std::map<Place, Support> states;  ///< untested where there is none
  /// A command, and the program's words for its refusal. Which families got them.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> refusals;
  /// What should not be: a command that failed, or whose numbers are not the reference's.
  std::vector<std::string> complaints;
  /// The largest share of the tolerance that an error had, by command and dtype.
  std::map<std::string, double> worst;
};

/// Runs `inspect`, `sweep`, `capture`, `look`, `generate`, `intervene`, `gate-arms`, `inactive-heads`, `train finetune`
/// and `sweep --depth-precision` in this process, on a golden of every family and format, in float32, float64 and
/// bfloat16. Compares logits, n_eff of every query, and the loss without a head with the reference's numbers; tokens of
/// `generate` after the first with a pass over the whole text; the loss of a step of training with logits in float64;
/// what the reference does not have with the own float64 run.
SupportMap measure_support();

/// The section of the page of supported models that shows the map.
std::string support_section(const SupportMap& map);

/// The heading of that section.
inline constexpr std::string_view support_heading = "## Which command computes which family";

}  // namespace gainlens::golden
