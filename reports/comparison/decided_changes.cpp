#include "reports/comparison/decided_changes.h"

#include "core/counted.h"
#include "reports/page/page_style.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <set>
#include <utility>

namespace gainlens::reports {
namespace {

using analyses::Decision;
using analyses::GainDecision;

/// "bft against plain on Beauty (SASRec) in HR@10, MRR" for the rows that a test keeps; empty if it keeps none.
std::string rows_in_words(std::span<const DecidedChange> changes,
                          const std::function<bool(const GainDecision&)>& keeps) {
  std::vector<std::pair<std::string, std::vector<std::string>>> kept;  // metrics of each comparison
  for (const DecidedChange& change : changes) {
    if (!keeps(change.decision)) continue;
    if (kept.empty() || kept.back().first != change.title) kept.push_back({change.title, {}});
    kept.back().second.push_back(change.metric);
  }
  std::vector<std::string> all;
  all.reserve(kept.size());
  for (const auto& [title, metrics] : kept) all.push_back(fmt::format("{} in {}", title, fmt::join(metrics, ", ")));
  return fmt::format("{}", fmt::join(all, "; "));
}

}  // namespace

std::string answer_in_words(std::span<const DecidedChange> changes) {
  const auto corrected = [](const GainDecision& row) { return row.holm && *row.holm <= analyses::decision_level; };
  const auto with_holm = [&](Decision decision) {
    return rows_in_words(changes, [&](const GainDecision& row) { return row.decision == decision && corrected(row); });
  };
  const auto without_holm = [&](Decision decision) {
    return rows_in_words(changes, [&](const GainDecision& row) { return row.decision == decision && !corrected(row); });
  };
  if (std::none_of(changes.begin(), changes.end(), [](const DecidedChange& row) { return bool(row.decision.p); }))
    return "Nothing is decided: no row has a p, and the table says why.";
  std::string text;
  const auto add = [&](const std::string& found, std::string_view what) {
    if (!found.empty()) text += fmt::format("{}{}: {}.", text.empty() ? "" : " ", what, found);
  };
  add(with_holm(Decision::better), "Better, also after Holm's correction");
  if (text.empty()) text = "No candidate is shown to be better after Holm's correction.";
  add(with_holm(Decision::worse), "Worse, also after Holm's correction");
  add(without_holm(Decision::better), "Better at 5% without the correction alone");
  add(without_holm(Decision::worse), "Worse at 5% without the correction alone");
  return text;
}

std::vector<std::string> notes_on_few_seeds(std::span<const std::size_t> seeds, std::string_view unit) {
  std::vector<std::string> notes;
  std::set<std::size_t> seen;
  for (const std::size_t count : seeds) {
    if (!seen.insert(count).second) continue;
    if (count == 1) {
      notes.push_back(
          fmt::format("With one seed nothing is known of other trainings. The intervals marked \"{0}s alone\" are 95% "
                      "intervals over other {0}s of this kind.",
                      unit));
    } else if (count < analyses::fewest_crossed_seeds) {
      notes.emplace_back(
          "With two seeds there is a range without a level, marked \"range\". A 95% interval and a p need a third "
          "seed.");
    } else if (const std::string note = analyses::few_seeds_note(count); !note.empty()) {
      notes.push_back(note + ".");
      notes.back().front() = static_cast<char>(std::toupper(static_cast<unsigned char>(notes.back().front())));
    }
  }
  return notes;
}

std::string decisions_in_words(std::span<const DecidedChange> changes, std::string_view units) {
  const auto tested = std::count_if(changes.begin(), changes.end(),
                                    [](const DecidedChange& change) { return bool(change.decision.p); });
  return fmt::format(
      "{}The naive p is the paired t over seeds, which takes the {} as fixed. \"not shown\" does not say that there is "
      "no difference.",
      tested > 1 ? fmt::format("Holm's p is corrected for the {} rows that have a p. ", tested) : "", units);
}

std::string interval_heading(std::span<const std::size_t> seeds) {
  const bool stated = std::all_of(seeds.begin(), seeds.end(),
                                  [](std::size_t count) { return count >= analyses::fewest_crossed_seeds; });
  return stated ? "95% interval" : "interval";
}

std::string interval_kind(const Maybe<analyses::CrossedEstimate>& estimate) {
  if (!estimate) return "";
  if (estimate->interval) return fmt::format("95%, seeds and {}s", estimate->noun);
  if (estimate->range) return "range without a level";
  return estimate->over_units ? fmt::format("95%, {}s alone", estimate->noun) : "";
}

std::string common_name(std::span<const std::string> names, std::string_view otherwise) {
  const bool one =
      std::all_of(names.begin(), names.end(), [&](const std::string& name) { return name == names.front(); });
  return one && !names.empty() ? names.front() : std::string(otherwise);
}

std::string comparisons_title(std::span<const std::string> pairs, std::span<const std::string> data_sets) {
  return page_title(common_name(pairs, counted(pairs.size(), "comparison")),
                    common_name(data_sets, "several data sets"));
}

std::vector<std::string> comparison_notes(std::string_view unit) {
  return {
      fmt::format("The paired t over seeds takes the test {0}s as fixed. It says whether other seeds would gain on "
                  "these {0}s. It does not say whether other {0}s would gain.",
                  unit),
      fmt::format("The interval and p over seeds and {}s count both. They decide.", unit),
      "Sign tests with fewer than 6 seeds cannot reach .05 and are left out.",
      "A comparison is fair if both arms were tuned with equal effort. This page cannot show that.",
  };
}

}  // namespace gainlens::reports
