#include "reports/report.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "core/scratch_folder.h"
#include "reports/palette.h"
#include "reports/paper_tables.h"
#include "reports/report_page.h"
#include "reports/results.h"
#include "reports/tables.h"

#include <algorithm>
#include <system_error>

namespace gainlens::reports {
namespace {

namespace fs = std::filesystem;

void render_all(std::vector<FigureSlot>& slots, const fs::path& folder, WrittenReport& report) {
  for (FigureSlot& slot : slots) {
    if (!slot.figure) {
      report.left_out.push_back(fmt::format("{}: {}", slot.name, slot.figure.reason()));
      continue;
    }
    for (const std::string& file : render(*slot.figure, folder)) report.files.emplace_back(file);
    slot.svg = read_text_file(folder / (slot.name + ".svg"));
  }
}

void write(const fs::path& folder, const fs::path& file, const std::string& content, WrittenReport& report) {
  write_file_atomically(folder / file, content);
  report.files.push_back(file);
}

/// Whether a report writes a table of this name: "context", and of several runs "context-2".
bool is_table_name(std::string name) {
  constexpr std::string_view names[] = {"runs",
                                        "verdicts",
                                        "lengths",
                                        "context",
                                        "context-by-attention",
                                        "gain-theory",
                                        "gain-theory-checks",
                                        "gain-theory-unseen",
                                        "sink-vs-k-inference",
                                        "sink-vs-k-correlations",
                                        "sinks",
                                        "differences",
                                        "value-norms",
                                        "sink-vs-k",
                                        "run-differences",
                                        "sink-lemma",
                                        "prior-shares",
                                        "statements"};
  const auto digits = name.find_last_not_of("0123456789");
  if (digits != std::string::npos && digits + 1 < name.size() && name[digits] == '-') name.erase(digits);
  const auto heatmaps = analyses::heatmap_quantities();
  const bool heatmap = std::any_of(heatmaps.begin(), heatmaps.end(), [&](const analyses::HeatmapQuantity& quantity) {
    return name == fmt::format("heatmap-{}", quantity.name);
  });
  return heatmap || std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Figures and tables of an earlier report of other runs would otherwise lie beside ours as if they belonged to it.
void remove_stale(const std::vector<FigureSlot>& slots, const WrittenReport& report, const fs::path& out) {
  for (const FigureSlot& slot : slots) {
    if (slot.figure) continue;
    for (const std::string_view format : figure_formats) fs::remove(out / fmt::format("{}.{}", slot.name, format));
  }
  std::vector<fs::path> stale;
  const auto look_into = [&](const fs::path& folder) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const fs::path& path = entry.path();
      if ((path.extension() != ".csv" && path.extension() != ".tex") || !is_table_name(path.stem().string())) continue;
      if (!std::binary_search(report.files.begin(), report.files.end(), fs::relative(path, out))) stale.push_back(path);
    }
  };
  look_into(out / "tables");
  for (std::size_t run = 1; run <= most_runs; ++run) {
    const fs::path folder = out / "tables" / fmt::format("run-{}", run);
    if (fs::is_directory(folder)) look_into(folder);
  }
  for (const fs::path& path : stale) fs::remove(path);
}

Report analyse_all(std::span<const RunInput> runs, const analyses::Options& options) {
  CHECK(!runs.empty() && runs.size() <= most_runs, "report: {} runs; 1 to {} can be told apart in one figure",
        runs.size(), most_runs);
  Report report;
  for (const RunInput& run : runs) {
    for (const Results& earlier : report.runs)
      CHECK(earlier.label != run.label, "report: two runs are called '{}'; give each a name of its own",
            printable(run.label));
    report.runs.push_back(analyse(run, options));
    if (report.runs.size() > 1) {
      // the first against every later one, and every pair for being one run given twice
      for (std::size_t i = 1; i + 1 < report.runs.size(); ++i) analyses::check_different(runs[i].reader, run.reader);
      report.contrasts.push_back(
          {runs.front().label, run.label, analyses::compare(runs.front().reader, run.reader, options)});
    }
  }
  return report;
}

void write_tables(const Report& contents, const fs::path& folder, WrittenReport& report) {
  fs::create_directory(folder / "tables");
  for (std::size_t i = 0; i < contents.runs.size(); ++i) {
    const fs::path place =
        contents.runs.size() > 1 ? fs::path("tables") / fmt::format("run-{}", i + 1) : fs::path("tables");
    fs::create_directories(folder / place);
    for (const Table& table : tables(contents.runs[i]))
      write(folder, place / (table.name + ".csv"), to_csv(table), report);
  }
  if (!contents.contrasts.empty()) {
    const Table table = differences_table(contents.contrasts);
    write(folder, fs::path("tables") / (table.name + ".csv"), to_csv(table), report);
  }
  for (const PaperTable& table : paper_tables(contents))
    write(folder, fs::path("tables") / (table.name + ".tex"), latex_table(table), report);
}

}  // namespace

WrittenReport write_report(std::span<const RunInput> runs, const fs::path& out, const analyses::Options& options) {
  const Report contents = analyse_all(runs, options);
  std::vector<FigureSlot> slots = figure_slots(contents);

  ensure_writable_folder(out);
  const ScratchFolder staging(out, ".report-");  // inside `out`: on its file system
  WrittenReport report;
  render_all(slots, staging.path(), report);
  write_tables(contents, staging.path(), report);
  write(staging.path(), "summary.json", summary(contents).dump(2) + "\n", report);
  write(staging.path(), "report.html", report_page(contents, slots), report);
  std::sort(report.files.begin(), report.files.end());

  ensure_writable_folder(out / "tables");
  remove_stale(slots, report, out);
  for (const fs::path& file : report.files) {
    fs::create_directories((out / file).parent_path());
    publish_file(staging.path() / file, out / file);
  }
  return report;
}

WrittenReport write_report(const runfile::RunReader& reader, const fs::path& out, const analyses::Options& options) {
  const RunInput run{"run", reader};
  return write_report({&run, 1}, out, options);
}

}  // namespace gainlens::reports
