#include "reports/comparison/decided_changes.h"
#include "reports/recommend/reading_notes.h"
#include "reports/recommend/sections.h"

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

std::vector<Block> reading_blocks(Comparisons comparisons) {
  std::vector<std::string> all = recommender_notes();
  for (const ComparedArms& arms : comparisons) {
    const std::string_view note = paper_note(arms.comparison.paper);
    if (!note.empty() && std::find(all.begin(), all.end(), note) == all.end()) all.emplace_back(note);
  }
  return {list(all)};
}

}  // namespace

std::string_view paper_note(const analyses::PaperMatch& paper) {
  if (paper.data_set.empty()) return {};
  if (paper.named)
    return "The paper's numbers stand beside ours because --paper says so. Whether its data are the same is not "
           "checked.";
  return "The paper's numbers stand beside data with the numbers of users, items and interactions that it prints. Its "
         "split is not known.";
}

std::vector<std::string> recommender_notes() {
  std::vector<std::string> notes = comparison_notes("user");
  notes.emplace_back(
      "A gain that is tested in each of several strata is not a difference between strata. The difference has its own "
      "test.");
  return notes;
}

const Section<ComparedArms> reading_section = {.name = "reading",
                                               .title = "How to read this page",
                                               .question = "What do these numbers not say?",
                                               .blocks = reading_blocks};

}  // namespace gainlens::reports
