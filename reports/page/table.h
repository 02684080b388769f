#pragma once

#include "analyses/table.h"
#include "reports/page/csv_table.h"
#include "reports/page/paper_table.h"

#include <string>

// The writers of a table: html_table() and latex_table() of its paper_table(), to_csv() of its csv_table(), and
// text_table(). JSON: analyses/table.h.

namespace gainlens::reports {

using analyses::Table;

/// What readers see of a table. The caption ends with the reasons of what is missing.
PaperTable paper_table(const Table& table);

/// What programs read of a table: full numbers; what is missing is an empty cell.
/// @param name  stem of its file; empty: the table's
CsvTable csv_table(const Table& table, const std::string& name = {});

/// What readers see of a table, for a terminal: its caption, then columns two blanks apart, numbers flush right, and
/// the reasons of what is missing. Nothing of a table without rows.
std::string text_table(const Table& table);

/// Words for a terminal, in lines of at most 100 characters where blanks allow it, each after `indent` blanks.
std::string wrapped(const std::string& text, std::size_t indent = 0);

}  // namespace gainlens::reports
