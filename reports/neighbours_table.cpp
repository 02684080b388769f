#include "core/quantity.h"
#include "reports/paper_tables.h"
#include "reports/run_rows.h"
#include "reports/shown.h"

#include <map>

namespace gainlens::reports {
namespace {

/// "+0.31", and where it can be used the mean with the interval that allows for it.
std::string cell(const analyses::NeighbourCorrelation& row) {
  if (!row.correlation) return "–";
  const std::string correlation = shown_signed(row.correlation);
  if (!row.allowing) return correlation;
  return fmt::format("{}; {}", correlation, with_interval(shown(row.mean), row.allowing));
}

}  // namespace

PaperTable neighbours_paper_table(const Report& report) {
  PaperTable table{
      "neighbours",
      fmt::format(
          "How alike neighbouring chunks of one length are: lag-1 correlation of chunk means over the deep layers' "
          "last-quarter "
          "queries, in text order; from {} chunks on also the mean with the 95% interval that allows for it. {}",
          analyses::least_neighbours, of_each(report, [](const Results& run) { return run.neighbours.finding; })),
      {{"T (tokens)"}, {"chunks"}},
      {}};
  for (const auto& [dataset, name] : analyses::neighbour_quantities) table.columns.push_back({std::string(name)});
  add_runs(table, report, [&](const Results& run) {
    std::map<std::int64_t, std::vector<std::string>> rows;  // tokens -> cells
    for (const analyses::NeighbourCorrelation& row : run.neighbours.rows) {
      auto& cells = rows.try_emplace(row.tokens, table.columns.size(), "–").first->second;
      cells[0] = format_count(row.tokens);
      cells[1] = std::to_string(row.chunks);
      for (std::size_t i = 0; i < std::size(analyses::neighbour_quantities); ++i) {
        if (analyses::neighbour_quantities[i].second == row.quantity) cells[i + 2] = cell(row);
      }
    }
    for (auto& [tokens, cells] : rows) table.rows.push_back(std::move(cells));
  });
  return table;
}

}  // namespace gainlens::reports
