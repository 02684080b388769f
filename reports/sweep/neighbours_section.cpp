#include "reports/sweep/sections.h"

#include "analyses/neighbours.h"
#include "core/quantity.h"
#include "reports/sweep/run_words.h"
#include "reports/words/numbers.h"

#include <map>

namespace gainlens::reports {
namespace {

PaperTable neighbours_table(Runs runs) {
  PaperTable table{
      "neighbours",
      fmt::format("How alike neighbouring chunks of one length are: lag-1 correlation of chunk means over "
                  "the deep layers' last-quarter queries, in text order. {}",
                  each_run_said(runs, [](const SweepRun& run) { return run.of(analyses::neighbours).finding; })),
      {{"T (tokens)"}, {"chunks"}},
      {}};
  for (const auto& [dataset, name] : analyses::neighbour_quantities) table.columns.push_back({std::string(name)});
  add_runs(table, runs, [&](const SweepRun& run) {
    std::map<std::int64_t, std::vector<std::string>> rows;  // tokens -> cells
    for (const analyses::NeighbourCorrelation& row : run.of(analyses::neighbours).rows) {
      auto& cells = rows.try_emplace(row.tokens, table.columns.size(), "–").first->second;
      cells[0] = format_count(row.tokens);
      cells[1] = std::to_string(row.chunks);
      for (std::size_t i = 0; i < std::size(analyses::neighbour_quantities); ++i) {
        if (analyses::neighbour_quantities[i].second == row.quantity)
          cells[i + 2] = row.correlation ? shown_signed(row.correlation) : "–";
      }
    }
    for (auto& [tokens, cells] : rows) table.rows.push_back(std::move(cells));
  });
  return table;
}

void add_neighbours_json(const SweepRun& run, OrderedJson& summary) {
  summary["neighbouring_chunks"] = to_json(run.of(analyses::neighbours));
}

}  // namespace

const Section<SweepRun> neighbours_section = {
    .name = "neighbours",
    .title = "Neighbouring chunks",
    .question = "How alike are neighbouring chunks, and what does it do to the intervals?",
    .files = {"neighbours"},
    .keys = {"neighbouring_chunks"},
    .blocks = [](Runs runs) { return std::vector<Block>{neighbours_table(runs)}; },
    .add_json = add_neighbours_json};

}  // namespace gainlens::reports
