#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gainlens::reports {

/// What a result says beside its tables: "measured": "4 documents". Plain text. A line without a label belongs to the
/// one above it.
struct Fact {
  std::string label;
  std::string text;
};

/// A line for each, the texts below each other: "measured  4 documents".
/// @param width  characters of the labels with the blanks behind them
std::string fact_lines(std::span<const Fact> facts, std::size_t width);

/// <ul> with an item for each label: "measured: 4 documents". No symbol is set, because texts may come from files.
std::string fact_items(std::span<const Fact> facts);

}  // namespace gainlens::reports
