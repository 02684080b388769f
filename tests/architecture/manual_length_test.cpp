// The manual stays short enough to be read: every page of docs/ has a budget of words, and so has the whole.
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t budget_of_the_manual = 90'000;
/// Of a page without a row in page_budgets().
constexpr std::size_t usual_budget = 1'500;

/// The most words of each page, split at white space; marks of tables count. Pages without a row have usual_budget.
/// A page near its budget is made shorter, or its reference part becomes a page of its own; a larger number here is the
/// last resort, and has to be saved on another page.
const std::map<std::string, std::size_t>& page_budgets() {
  static const std::map<std::string, std::size_t> budgets = {
      {"analyses/check.md", 1'550},
      {"analyses/coverage.md", 3'700},
      {"analyses/depth.md", 1'550},
      {"analyses/intervention.md", 2'700},
      {"analyses/k-by-frequency.md", 2'400},
      {"analyses/prediction-3.md", 2'300},
      {"analyses/seed-coverage.md", 8'200},
      {"analyses/sensitivity.md", 1'900},
      {"analyses/user-attention.md", 1'800},
      {"analyses/when-does-it-help.md", 2'500},
      {"bft-measurements.md", 4'800},
      {"bft.md", 5'400},
      {"developer-guide.md", 3'300},
      {"estimators.md", 2'700},
      {"finetune.md", 4'500},
      {"gemma3-270m.md", 1'600},
      {"inference.md", 8'600},
      {"look.md", 1'700},
      {"method.md", 5'400},
      {"models.md", 5'500},
      {"performance.md", 7'800},
      {"recommend.md", 9'500},
      {"report.md", 2'300},
      {"reproduction.md", 4'500},
      {"run-file.md", 8'700},
      {"scale.md", 2'000},
      {"troubleshooting.md", 1'900},
      {"tutorial.md", 2'300},
  };
  return budgets;
}

std::size_t words_of(const fs::path& page) {
  std::ifstream file(page);
  std::size_t words = 0;
  for (std::string word; file >> word;) ++words;
  return words;
}

/// Words of every page of docs/, by its path below it.
std::map<std::string, std::size_t> words_of_pages(const fs::path& docs) {
  std::map<std::string, std::size_t> words;
  for (const auto& entry : fs::recursive_directory_iterator(docs)) {
    if (entry.is_regular_file() && entry.path().extension() == ".md")
      words[fs::relative(entry.path(), docs).generic_string()] = words_of(entry.path());
  }
  return words;
}

/// What is too long, and rows of pages that are gone, each with what to do.
std::vector<std::string> faults_of(const fs::path& docs, const std::map<std::string, std::size_t>& budgets,
                                   std::size_t budget_of_all) {
  const std::map<std::string, std::size_t> pages = words_of_pages(docs);
  std::vector<std::string> faults;
  std::size_t sum = 0;
  for (const auto& [page, words] : pages) {
    sum += words;
    const auto row = budgets.find(page);
    const std::size_t budget = row == budgets.end() ? usual_budget : row->second;
    if (words > budget)
      faults.push_back("docs/" + page + " has " + std::to_string(words) + " words, its budget is " +
                       std::to_string(budget) +
                       ": cut what another page says, what is out of date and what was only on the way, and link; if "
                       "all of it is needed, give it more in page_budgets() and save as much elsewhere");
  }
  for (const auto& [page, budget] : budgets) {
    if (!pages.contains(page)) faults.push_back("there is no docs/" + page + ": remove its row from page_budgets()");
  }
  if (sum > budget_of_all)
    faults.push_back("docs/ has " + std::to_string(sum) + " words, its budget is " + std::to_string(budget_of_all) +
                     ": shorten the pages that grew last; a new page replaces text, it does not add to it");
  return faults;
}

TEST(ManualLength, EveryPageKeepsItsBudget) {
  for (const std::string& fault :
       faults_of(fs::path(GAINLENS_SOURCE_DIR) / "docs", page_budgets(), budget_of_the_manual))
    ADD_FAILURE() << fault;
}

TEST(ManualLength, WhatIsTooLongIsFound) {
  const TemporaryFolder folder;
  const auto write = [&](const char* page, std::size_t words) {
    fs::create_directories((folder.path() / page).parent_path());
    std::ofstream file(folder.path() / page);
    for (std::size_t i = 0; i < words; ++i) file << (i % 10 == 9 ? "word\n" : "word  ");
  };
  write("long.md", 11);
  write("analyses/short.md", 10);
  write("analyses/usual.md", usual_budget + 1);
  write("numbers.csv", 5'000);
  const std::map<std::string, std::size_t> budgets = {{"analyses/short.md", 10}, {"gone.md", 10}, {"long.md", 10}};
  EXPECT_THAT(faults_of(folder.path(), budgets, usual_budget + 22),
              ElementsAre(HasSubstr("docs/analyses/usual.md has 1501 words, its budget is 1500"),
                          HasSubstr("docs/long.md has 11 words, its budget is 10"), HasSubstr("no docs/gone.md")));
  EXPECT_THAT(faults_of(folder.path(), {{"long.md", 11}, {"analyses/usual.md", 2'000}}, usual_budget + 21),
              ElementsAre(HasSubstr("docs/ has 1522 words, its budget is 1521")));
}

}  // namespace
}  // namespace gainlens::testing
