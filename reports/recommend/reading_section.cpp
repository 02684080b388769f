#include "reports/comparison/decided_changes.h"
#include "reports/recommend/run_sections.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

constexpr std::string_view run_notes[] = {
    "A standard deviation over seeds says how much another training would differ on the same users. It does not count "
    "other users.",
    "The validation items chose the epoch of each seed. The test items chose nothing.",
    "Each test item is ranked among all items of the catalogue that the user has not seen. Numbers of papers that rank "
    "it among a sample of items are higher and cannot be compared.",
    "Groups of users differ in more than their name says: the columns \"target count\" and \"known items\" show it.",
};

/// A note on numbers that are copied from the paper; empty without a data set of the paper.
std::string_view paper_note(const analyses::PaperMatch& paper) {
  if (paper.data_set.empty()) return {};
  if (paper.named)
    return "The paper's numbers stand beside ours because --paper says so. Whether its data are the same is not "
           "checked.";
  return "The paper's numbers stand beside data with the numbers of users, items and interactions that it prints. Its "
         "split is not known.";
}

/// What the numbers of a comparison of recommenders do not say.
std::vector<std::string> recommender_notes() {
  std::vector<std::string> notes = comparison_notes("user");
  notes.emplace_back(
      "A gain that is tested in each of several strata is not a difference between strata. The difference has its own "
      "test.");
  return notes;
}

std::vector<Block> run_reading_blocks(TrainedRuns runs) {
  std::vector<std::string> all(std::begin(run_notes), std::end(run_notes));
  if (!runs.front().results.comparisons.empty()) {
    for (std::string& note : recommender_notes()) all.push_back(std::move(note));
  }
  if (const std::string_view note = paper_note(runs.front().results.paper); !note.empty()) all.emplace_back(note);
  return {list(all)};
}

std::vector<Block> reading_blocks(Comparisons comparisons) {
  std::vector<std::string> all = recommender_notes();
  for (const ComparedArms& arms : comparisons) {
    const std::string_view note = paper_note(arms.comparison.paper);
    if (!note.empty() && std::find(all.begin(), all.end(), note) == all.end()) all.emplace_back(note);
  }
  return {list(all)};
}

}  // namespace

const Section<TrainedRun> run_reading_section = {.name = "reading",
                                                 .title = "How to read this page",
                                                 .question = "What do these numbers not say?",
                                                 .blocks = run_reading_blocks};

const Section<ComparedArms> reading_section = {.name = "reading",
                                               .title = "How to read this page",
                                               .question = "What do these numbers not say?",
                                               .blocks = reading_blocks};

}  // namespace gainlens::reports
