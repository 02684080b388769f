#pragma once

#include "reports/paper_table.h"
#include "reports/results.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Adds the rows of each run, under its label where there are several.
template <typename AddRows>
void add_runs(PaperTable& table, const Report& report, AddRows add_rows) {
  for (const Results& run : report.runs) {
    const std::size_t before = table.rows.size();
    add_rows(run);
    if (report.runs.size() > 1 && table.rows.size() > before)
      table.rows.insert(table.rows.begin() + static_cast<std::ptrdiff_t>(before), std::vector<std::string>{run.label});
  }
}

/// A sentence of each run, with its label in front where there are several; the same sentence once.
template <typename Sentence>
std::string of_each(const Report& report, Sentence sentence) {
  std::vector<std::string> said;
  for (const Results& run : report.runs) said.push_back(sentence(run));
  std::string text;
  if (std::all_of(said.begin(), said.end(), [&](const std::string& other) { return other == said.front(); }))
    return said.front();
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i].empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : " ", report.runs[i].label, said[i]);
  }
  return text;
}

}  // namespace gainlens::reports
