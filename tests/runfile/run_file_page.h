#pragma once

#include <string>

/// The tables of docs/run-file.md, in Markdown. They are made from the tables of the sources, and a test holds the page
/// to them.
namespace gainlens::testing {

/// The dimension scales: axis, size, unit, meaning.
std::string axes_table();

/// The other coordinates: name, axes, type, unit, meaning, in which runs.
std::string coordinates_table();

/// All datasets, with a heading and a table for each group: path, axes, unit, meaning, since which statistics version,
/// in which runs.
std::string datasets_tables();

}  // namespace gainlens::testing
