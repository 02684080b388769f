#pragma once

#include "core/error.h"
#include "reports/figures/figure.h"
#include "reports/section.h"

#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// A section's content, or why it could not be made.
struct MadeSection {
  std::string name;
  std::string title;
  std::vector<Block> blocks;
  std::string failure;    ///< empty where it was made
  bool paper = false;     ///< see Section::paper
  bool scripted = false;  ///< see Section::scripted
};

/// A CSV file and the folder it belongs to, relative to the report's.
struct PlacedCsv {
  std::filesystem::path folder;
  CsvTable table;
};

/// Everything that a report writes, before any figure is rendered.
struct MadeReport {
  std::string title;   ///< of the page
  std::string header;  ///< HTML above the first section
  /// Whether the first section stands above the table of contents: it has to fit the first screen.
  bool leads = false;
  std::vector<MadeSection> sections;
  OrderedJson summary = OrderedJson::object();
  std::vector<PlacedCsv> csv;
  std::vector<std::string> stems;  ///< of every figure and table that the sections can write
};

/// Runs one step of a section. An InvalidArgument is the user's mistake and ends the report. Any other failure is kept
/// in `section`, and the report goes on without it.
template <typename Step>
void attempt(MadeSection& section, Step step) {
  if (!section.failure.empty()) return;
  try {
    step();
  } catch (const InvalidArgument&) {
    throw;
  } catch (const std::exception& error) {
    section.failure = error.what();
    section.blocks.clear();
  }
}

/// @throws InternalError  two sections of one name, or a section that writes a file it does not list
void check_sections(const MadeReport& report);

/// Makes every section of a report. summary.json of one run holds what its sections say of it; of several runs
/// {"runs": {label: ...}} and what the sections say of them together. CSV files of one run lie in tables/, those of
/// several in tables/run-N/, N from 1.
/// @param runs  at least one; labels differ
template <typename Run>
MadeReport make_report(std::span<const Section<Run>* const> sections, std::span<const Run> runs) {
  MadeReport report;
  const bool several = runs.size() > 1;
  std::vector<OrderedJson> summaries(runs.size(), OrderedJson::object());
  OrderedJson common = OrderedJson::object();
  for (const Section<Run>* section : sections) {
    MadeSection made{std::string(section->name), std::string(section->title), {}, {}, section->paper,
                     section->scripted};
    for (const std::string& stem : section->files) report.stems.push_back(stem);
    std::vector<PlacedCsv> csv;
    std::vector<OrderedJson> added(runs.size(), OrderedJson::object());  // joined if the whole section is made
    OrderedJson added_common = OrderedJson::object();
    attempt(made, [&] { made.blocks = section->blocks(runs); });
    attempt(made, [&] {
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (section->add_json) section->add_json(runs[i], added[i]);
        if (!section->tables) continue;
        const std::filesystem::path folder =
            several ? std::filesystem::path("tables") / fmt::format("run-{}", i + 1) : std::filesystem::path("tables");
        for (CsvTable& table : section->tables(runs[i])) csv.push_back({folder, std::move(table)});
      }
    });
    attempt(made, [&] {
      if (several && section->add_common_json) section->add_common_json(runs, added_common);
      if (!several || !section->common_tables) return;
      for (CsvTable& table : section->common_tables(runs)) csv.push_back({"tables", std::move(table)});
    });
    if (made.failure.empty()) {
      for (std::size_t i = 0; i < runs.size(); ++i) summaries[i].update(added[i]);
      common.update(added_common);
      for (PlacedCsv& file : csv) report.csv.push_back(std::move(file));
    } else {
      for (OrderedJson& summary : summaries) {
        for (const std::string_view key : section->keys) {
          summary[std::string(key)] = nullptr;
          summary[std::string(key) + "_reason"] = made.failure;
        }
      }
    }
    report.sections.push_back(std::move(made));
  }
  if (several) {
    report.summary["runs"] = OrderedJson::object();
    for (std::size_t i = 0; i < runs.size(); ++i) report.summary["runs"][runs[i].label()] = std::move(summaries[i]);
    report.summary.update(common);
  } else {
    report.summary = std::move(summaries.front());
  }
  check_sections(report);
  return report;
}

/// What was written.
struct WrittenReport {
  std::vector<std::filesystem::path> files;  ///< relative to the report's folder, sorted
  std::vector<std::string> left_out;         ///< "<figure>: <reason>" of every figure that could not be drawn
  std::vector<std::string> failed;           ///< "<section>: <reason>" of every section that could not be made
};

/// How a report is written.
struct Writing {
  Style style = {};
  /// Sections for readers of the paper get paper.html, beside report.html. Otherwise they are folded in report.html.
  bool paper_page = false;
};

/// Renders the figures and writes them with tables/*.csv, tables/*.tex, summary.json and report.html into `out`, which
/// is created. Everything is made in a temporary folder inside `out` first: after an error `out` holds what it held
/// before. Files of an earlier report that this one does not have are removed, and so are temporary folders of reports
/// that were killed.
/// @throws InvalidArgument  `out` cannot be written to, or holds no report but a file that would be overwritten
/// @throws RunFailed        gnuplot or rsvg-convert is missing or fails; the disk is full
/// @throws InvalidArgument  Writing::style asks for a figure that no section of the report can draw
WrittenReport write_files(const MadeReport& report, const std::filesystem::path& out, const Writing& writing = {});

}  // namespace gainlens::reports
