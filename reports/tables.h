#pragma once

#include "reports/results.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace gainlens::reports {

using Cell = std::variant<std::string, std::int64_t, double>;  ///< a double that is NaN is an empty cell

struct Table {
  std::string name;  ///< stem of its file under tables/
  std::vector<std::string> header;
  std::vector<std::vector<Cell>> rows;
};

/// lengths, context, gain-theory, sink-vs-k (one row a head), sink-vs-k-correlations, sinks, value-norms, sink-lemma
/// (one row a head), and one for each heat map. A table whose analysis has no result is not among them.
std::vector<Table> tables(const Results& results);
/// differences: one row for each pair of runs, context length and quantity.
Table differences_table(const std::vector<Contrast>& contrasts);

/// RFC 4180 with a header line and line feeds; numbers in the fewest digits that give them back.
std::string to_csv(const Table& table);

}  // namespace gainlens::reports
