#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace gainlens::reports {

/// A column of a table for readers.
struct Column {
  std::string heading;    ///< with its unit in brackets
  bool text = false;      ///< set flush left and wrapped; numbers are set flush right
  bool verbatim = false;  ///< its cells come from a file: no letter of them is a symbol
};

/// A heading over several neighbouring columns; empty: nothing stands over them.
struct ColumnSpan {
  std::string heading;
  std::size_t columns;
};

/// A table as a paper prints it: its cells are short plain text, with numbers rounded for reading (those for programs
/// are in tables/*.csv).
struct PaperTable {
  std::string name;  ///< stem of its file
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  ///< a row with one cell is a heading over the rows below it
  std::vector<ColumnSpan> spans = {};          ///< over all columns, from the left; empty: one line of headings
};

/// <table> with caption and scopes.
/// @param number  of the table on its page
std::string html_table(const PaperTable& table, int number);

/// A `table` environment for a document that uses booktabs and, where it has text columns, tabularx.
std::string latex_table(const PaperTable& table);

}  // namespace gainlens::reports
