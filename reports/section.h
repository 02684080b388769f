#pragma once

#include "core/json.h"
#include "reports/figures/figure.h"
#include "reports/page/csv_table.h"
#include "reports/page/paper_table.h"

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace gainlens::reports {

/// What a figure shows, with its numbers, and what it can and cannot show: plain sentences, symbols as in typography.h.
struct Caption {
  std::string shows;
  std::string can;     ///< what the figure is good for
  std::string cannot;  ///< what it must not be read as
};

/// A figure with its words. Where the figure is missing, the page says why.
struct CaptionedFigure {
  std::string name;  ///< stem of its files
  std::string title;
  Caption caption;
  Maybe<Figure> figure;
};

/// Finished HTML.
struct Html {
  std::string text;
};

/// What stands between these two is folded: the reader sees the title with the numbers of the tables inside, and opens
/// it. Folds do not nest.
struct FoldStart {
  std::string title;
};
struct FoldEnd {};

/// One thing on the page. A table without rows is left out.
using Block = std::variant<CaptionedFigure, PaperTable, Html, FoldStart, FoldEnd>;

/// One part of a report: everything that is computed, written and shown of one subject. A section is a value of this
/// type in a file of its own; a report is a list of sections (e.g. sweep/sections.h), and everything else (page,
/// summary.json, files, removal of old files) follows from that list. A test compares docs/report.md with it.
/// @tparam Run  what the report is about; has `label()`
template <typename Run>
struct Section {
  std::string_view name;      ///< its id on the page; unique within a report
  std::string_view title;     ///< its heading
  std::string_view question;  ///< what it answers, one line
  /// Stems of every figure, table of the page and CSV file that the section can write. Figures and tables of these
  /// names from an earlier report are removed.
  std::vector<std::string> files = {};
  /// Keys of summary.json that add_json and add_common_json write. If the section fails they are null, with a reason.
  std::vector<std::string_view> keys = {};
  /// What the page shows of the runs, in order. An empty list leaves the section out.
  std::vector<Block> (*blocks)(std::span<const Run> runs);
  /// Adds what summary.json says of one run; null: nothing.
  void (*add_json)(const Run& run, OrderedJson& summary) = nullptr;
  /// The CSV files of one run; null: none.
  std::vector<CsvTable> (*tables)(const Run& run) = nullptr;
  /// Adds what summary.json says of several runs together; null: nothing.
  void (*add_common_json)(std::span<const Run> runs, OrderedJson& summary) = nullptr;
  /// The CSV files about several runs together; null: none.
  std::vector<CsvTable> (*common_tables)(std::span<const Run> runs) = nullptr;
  /// Whether it is for readers of the paper: it is folded below the other sections, or on a page of its own.
  bool paper = false;
  /// Whether the page's script fills it. Without a script, and in print, the page shows nothing of it.
  bool scripted = false;
};

/// A paragraph of plain text with symbols as in typography.h.
Block paragraph(const std::string& text);
/// A paragraph that says why something is not there.
Block absence(const std::string& text);
/// A list of such sentences.
Block list(std::span<const std::string> sentences);

}  // namespace gainlens::reports
