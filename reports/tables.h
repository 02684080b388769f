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

/// lengths, context, gain-theory, sink-vs-k (one row a head), sink-vs-k-correlations, sinks, value-norms, and one for each heat map.
/// A table whose analysis has no result is not among them.
std::vector<Table> tables(const Results& results);
Table sinks_table(const analyses::Sinks& sinks);
Table correlations_table(const analyses::SinkVsK& result);
Table lengths_table(const std::vector<LengthFacts>& lengths);

/// RFC 4180 with a header line and line feeds; numbers in the fewest digits that give them back.
std::string to_csv(const Table& table);

}  // namespace gainlens::reports
