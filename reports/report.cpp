#include "reports/report.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "reports/report_page.h"
#include "reports/results.h"
#include "reports/tables.h"

#include <algorithm>
#include <system_error>

#include <stdlib.h>

namespace gainlens::reports {
namespace {

namespace fs = std::filesystem;

/// A folder inside `out`, on the same file system, that goes with the object.
class Staging {
 public:
  explicit Staging(const fs::path& out) {
    std::string pattern = (out / ".report-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw_run_failed("{}: no temporary folder can be made in it", printable(out.string()));
    path_ = pattern;
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

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

/// Figures of an earlier report of another run would otherwise lie beside ours as if they belonged to it.
void remove_stale_figures(const std::vector<FigureSlot>& slots, const fs::path& out) {
  for (const FigureSlot& slot : slots) {
    if (slot.figure) continue;
    for (const std::string_view format : figure_formats) fs::remove(out / fmt::format("{}.{}", slot.name, format));
  }
}

}  // namespace

WrittenReport write_report(const runfile::RunReader& reader, const fs::path& out, const analyses::Options& options) {
  const Results results = analyse(reader, options);
  std::vector<FigureSlot> slots = figure_slots(results);

  ensure_writable_folder(out);
  const Staging staging(out);
  WrittenReport report;
  render_all(slots, staging.path(), report);
  fs::create_directory(staging.path() / "tables");
  for (const Table& table : tables(results)) write(staging.path(), fs::path("tables") / (table.name + ".csv"), to_csv(table), report);
  write(staging.path(), "summary.json", summary(results).dump(2) + "\n", report);
  write(staging.path(), "report.html", report_page(results, slots), report);
  std::sort(report.files.begin(), report.files.end());

  ensure_writable_folder(out / "tables");
  remove_stale_figures(slots, out);
  for (const fs::path& file : report.files) publish_file(staging.path() / file, out / file);
  return report;
}

}  // namespace gainlens::reports
