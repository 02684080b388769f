#include "reports/recommend/reading_notes.h"
#include "reports/recommend/run_sections.h"

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::reports {
namespace {

constexpr std::string_view notes[] = {
    "A standard deviation over seeds says how much another training would differ on the same users. It does not count "
    "other users.",
    "The validation items chose the epoch of each seed. The test items chose nothing.",
    "Each test item is ranked among all items of the catalogue that the user has not seen. Numbers of papers that rank "
    "it among a sample of items are higher and cannot be compared.",
    "Groups of users differ in more than their name says: the columns \"target count\" and \"known items\" show it.",
};

std::vector<Block> run_reading_blocks(TrainedRuns runs) {
  std::vector<std::string> all(std::begin(notes), std::end(notes));
  if (!runs.front().results.comparisons.empty()) {
    for (std::string& note : recommender_notes()) all.push_back(std::move(note));
  }
  if (const std::string_view note = paper_note(runs.front().results.paper); !note.empty()) all.emplace_back(note);
  return {list(all)};
}

}  // namespace

const Section<TrainedRun> run_reading_section = {.name = "reading",
                                                 .title = "How to read this page",
                                                 .question = "What do these numbers not say?",
                                                 .blocks = run_reading_blocks};

}  // namespace gainlens::reports
