#include "reports/recommend/reading_notes.h"
#include "reports/recommend/sections.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

constexpr std::string_view notes[] = {
    ("The paired t over seeds takes the test users as fixed. It says whether other seeds would gain on these users. It "
     "does not say whether other users would gain."),
    "The interval and p over seeds and users count both. They decide.",
    "Sign tests with fewer than 6 seeds cannot reach .05 and are left out.",
    ("A gain that is tested in each of several strata is not a difference between strata. The difference has its own "
     "test."),
    "A comparison is fair if both arms were tuned with equal effort. This page cannot show that.",
};

std::vector<Block> blocks(Comparisons comparisons) {
  std::vector<std::string_view> all(std::begin(notes), std::end(notes));
  for (const ComparedArms& arms : comparisons) {
    const std::string_view note = paper_note(arms.comparison.paper);
    if (!note.empty() && std::find(all.begin(), all.end(), note) == all.end()) all.push_back(note);
  }
  return {list(all)};
}

std::vector<std::string> files() {
  return {};
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

std::span<const std::string_view> comparison_notes() {
  return notes;
}

Block list(std::span<const std::string_view> sentences) {
  std::string items;
  for (const std::string_view note : sentences) items += fmt::format("<li>{}</li>\n", note);
  return Html{fmt::format("<ul>\n{}</ul>\n", items)};
}

const Section<ComparedArms>& reading_section() {
  static const Section<ComparedArms> section = {.name = "reading",
                                                .title = "How to read this page",
                                                .question = "What do these numbers not say?",
                                                .files = files,
                                                .keys = {},
                                                .blocks = blocks};
  return section;
}

}  // namespace gainlens::reports
