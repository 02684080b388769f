#include "reports/words/compare_words.h"

#include "core/number_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::reports::compare_words {

using analyses::CrossedEstimate;

void Reasons::add(const std::string& reason) {
  if (!reason.empty() && std::find(reasons_.begin(), reasons_.end(), reason) == reasons_.end())
    reasons_.push_back(reason);
}

std::string Reasons::text() const {
  std::string text;
  for (const std::string& reason : reasons_) text += fmt::format("-: {}\n", reason);
  return text;
}

std::string p_number(const Measured& p) {
  return !p ? "-" : *p < 0.0001 ? "<.0001" : fmt::format("{:.4f}", *p);
}

std::string ends_of(const Maybe<CrossedEstimate>& estimate, const std::function<std::string(const Interval&)>& ends) {
  const Maybe<Interval> shown = analyses::shown_ends(estimate);
  return shown ? ends(*shown) : "-";
}

std::string kind_of(const Maybe<CrossedEstimate>& estimate) {
  if (!estimate || estimate->interval) return "";
  if (estimate->range) return " (range)";
  return estimate->over_units ? fmt::format(" ({}s alone)", estimate->noun) : "";
}

std::string interval_heading(std::size_t seeds, const std::string& noun) {
  return seeds == 1                               ? fmt::format("95%, {}s alone", noun)
         : seeds < analyses::fewest_crossed_seeds ? "range, no level"
                                                  : "95% of the change";
}

std::string notes_on_seeds(std::size_t seeds, const std::string& noun) {
  if (seeds == 1)
    return fmt::format("95%, {0}s alone: other {0}s of this kind. It says nothing about other trainings.\n", noun);
  const std::string note = analyses::few_seeds_note(seeds);
  return note.empty() ? "" : "p: " + note + "\n";
}

std::string far_seeds(const std::vector<NamedSeeds>& scores, const std::vector<std::uint64_t>& seeds) {
  std::vector<std::string> far;
  for (const NamedSeeds& score : scores) {
    if (!score.seeds->has_far_seed()) continue;
    const analyses::OutlyingValue& farthest = *score.seeds->farthest;
    far.push_back(fmt::format("{} with seed {} (p {:.2g})", score.name, seeds.at(farthest.place), farthest.p));
  }
  if (far.empty()) return "";
  return fmt::format(
      "Far from the other seeds by Grubbs' test at 5%: {}. Look at these trainings before you trust the mean.",
      fmt::join(far, ", "));
}

std::string paired_seeds(const std::vector<std::uint64_t>& baseline, const std::vector<std::uint64_t>& candidate) {
  if (baseline == candidate) return number_ranges(baseline, " to ");
  return fmt::format("{} with {} in order", number_ranges(baseline, " to "), number_ranges(candidate, " to "));
}

}  // namespace gainlens::reports::compare_words
