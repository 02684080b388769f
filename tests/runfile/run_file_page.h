#pragma once

#include <string>

/// The tables of docs/run-file.md, in Markdown. They are made from the tables of the sources, and a test holds the page
/// to them.
namespace gainlens::testing {

/// The dimension scales: axis, size, unit, meaning.
std::string axes_table();

/// The other coordinates: name, axes, type, unit, meaning, in which runs.
std::string coordinates_table();

/// All datasets, with a heading and a table for each group: path, unit, meaning. Above a table stands what most of its
/// datasets have: axes, the first statistics version, in which runs; a row says what it has instead. A variance stands
/// in the row of its mean.
std::string datasets_tables();

}  // namespace gainlens::testing
