// The manual stays short enough to be read: every page of docs/ has a budget of words, and so has the whole.
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace manual_length_test {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t budget_of_the_manual = 82'000;
/// Of a page without a row in page_budgets().
constexpr std::size_t usual_budget = 1'500;

/// The most words of each page: what stands between white space and has a letter or a digit. Pages without a row have
/// usual_budget. A page near its budget is made shorter, or its reference part becomes a page of its own; a larger
/// number here is the last resort, and has to be saved on another page.
const std::map<std::string, std::size_t>& page_budgets() {
  static const std::map<std::string, std::size_t> budgets = {
      {"analyses/intervention.md", 2'550},
      {"analyses/prediction-3.md", 2'070},
      {"bft-measurements.md", 1'870},
      {"bft.md", 3'430},
      {"developer-guide.md", 3'230},
      {"finetune.md", 3'200},
      {"inference.md", 4'690},
      {"look.md", 1'600},
      {"method.md", 3'850},
      {"models.md", 2'250},
      {"performance.md", 2'350},
      {"recommend-data.md", 2'220},
      {"recommend-results.md", 1'950},
      {"recommend-training.md", 1'950},
      {"report.md", 2'060},
      {"reproduction.md", 2'100},
      {"run-file.md", 5'190},
      {"troubleshooting.md", 1'680},
      {"tutorial.md", 2'150},
  };
  return budgets;
}

bool is_letter_or_digit(unsigned char byte) {
  return std::isalnum(byte) != 0 || byte >= 0x80;
}

std::size_t words_of(const fs::path& page) {
  std::ifstream file(page);
  std::size_t words = 0;
  for (std::string word; file >> word;) words += std::any_of(word.begin(), word.end(), is_letter_or_digit);
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
    for (std::size_t i = 0; i < words; ++i) file << (i % 10 == 9 ? "word |\n" : "word  ");
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

}  // namespace manual_length_test
}  // namespace gainlens::testing
