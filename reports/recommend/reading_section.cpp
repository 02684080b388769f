#include "reports/recommend/sections.h"

#include <array>
#include <string_view>

namespace gainlens::reports {
namespace {

constexpr std::array<std::string_view, 6> notes = {
    "The paired t over seeds takes the test users as fixed. It says whether other seeds would gain on these users. It "
    "does not say whether other users would gain.",
    "The interval and p over seeds and users count both. They decide.",
    "Sign tests with fewer than 6 seeds cannot reach .05 and are left out.",
    "A gain that is tested in each of several strata is not a difference between strata. The difference has its own "
    "test.",
    "The paper's numbers stand beside ours by the name of the data file. The paper's version of the data may differ; "
    "its "
    "split is not known.",
    "A comparison is fair if both arms were tuned with equal effort. This page cannot show that.",
};

std::vector<Block> blocks(Comparisons) {
  std::string items;
  for (const std::string_view note : notes) items += fmt::format("<li>{}</li>\n", note);
  return {Html{fmt::format("<ul>\n{}</ul>\n", items)}};
}

std::vector<std::string> files() {
  return {};
}

}  // namespace

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
