#include "reports/made_report.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/nearest.h"
#include "core/scratch_folder.h"
#include "reports/figures/palette.h"
#include "reports/page/page.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

namespace gainlens::reports {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view staging_prefix = ".report-";
constexpr const char* page_file = "report.html";
constexpr const char* paper_file = "paper.html";

/// Tables of a report on several runs: "differences-3" is a file of the stem "differences".
std::string without_number(std::string name) {
  const auto digits = name.find_last_not_of("0123456789");
  if (digits != std::string::npos && digits + 1 < name.size() && name[digits] == '-') name.erase(digits);
  return name;
}

bool is_listed(const MadeReport& report, const std::string& name) {
  const auto listed = [&](const std::string& stem) {
    return std::find(report.stems.begin(), report.stems.end(), stem) != report.stems.end();
  };
  return listed(name) || listed(without_number(name));
}

/// Every block of the type, in the order of the page.
template <typename Type, typename Use>
void for_each_block(const MadeReport& report, Use use) {
  for (const MadeSection& section : report.sections) {
    for (const Block& block : section.blocks) {
      if (const auto* wanted = std::get_if<Type>(&block)) use(*wanted);
    }
  }
}

void write(const fs::path& folder, const fs::path& file, const std::string& content, WrittenReport& report) {
  fs::create_directories((folder / file).parent_path());
  write_file_atomically(folder / file, content);
  report.files.push_back(file);
}

/// The report with the figures that the style names.
/// @throws InvalidArgument  it names one that no section can draw
MadeReport with_figures(MadeReport report, const std::vector<std::string>& names) {
  if (names.empty()) return report;
  std::vector<std::string> drawn;
  for_each_block<CaptionedFigure>(report, [&](const CaptionedFigure& figure) { drawn.push_back(figure.name); });
  for (const std::string& name : names)
    CHECK(std::count(drawn.begin(), drawn.end(), name) == 1, "--style: 'figures' names {}, and this report has {}{}",
          printable(name, 60), fmt::join(drawn, ", "), did_you_mean(name, drawn));
  for (MadeSection& section : report.sections) {
    std::erase_if(section.blocks, [&](const Block& block) {
      const auto* figure = std::get_if<CaptionedFigure>(&block);
      return figure != nullptr && std::count(names.begin(), names.end(), figure->name) == 0;
    });
  }
  return report;
}

RenderedFigures render_all(const MadeReport& report, const fs::path& folder, const Style& style,
                           WrittenReport& written) {
  RenderedFigures rendered;
  for_each_block<CaptionedFigure>(report, [&](const CaptionedFigure& captioned) {
    if (!captioned.figure) {
      written.left_out.push_back(fmt::format("{}: {}", captioned.name, captioned.figure.reason()));
      return;
    }
    for (const std::string& file : render(*captioned.figure, folder, style)) written.files.emplace_back(file);
    rendered[captioned.name] = read_text_file(folder / (captioned.name + ".svg"));
  });
  return rendered;
}

/// Whether the folder holds a report of gainlens, which a new one replaces.
/// @throws InvalidArgument  it does not, and it holds a file that the new report would overwrite
bool holds_report(const fs::path& out, const WrittenReport& report) {
  if (fs::exists(out / page_file) && is_own_page(read_text_file(out / page_file))) return true;
  for (const fs::path& file : report.files) {
    CHECK(!fs::exists(fs::symlink_status(out / file)),
          "{}: holds {}, which is not of a report of gainlens, and the report would overwrite it; give a new or empty "
          "folder",
          printable(out.string()), printable(file.string()));
  }
  return false;
}

/// Figures and tables of an earlier report of other runs would otherwise lie beside ours as if they belonged to it.
void remove_stale(const MadeReport& report, const WrittenReport& written, const fs::path& out) {
  std::vector<fs::path> stale;
  const auto look_into = [&](const fs::path& folder, const std::set<std::string>& extensions) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const fs::path& path = entry.path();
      if (!extensions.contains(path.extension().string()) || !is_listed(report, path.stem().string())) continue;
      if (!std::binary_search(written.files.begin(), written.files.end(), fs::relative(path, out)))
        stale.push_back(path);
    }
  };
  std::set<std::string> figures;
  for (const std::string_view format : figure_formats) figures.insert("." + std::string(format));
  look_into(out, figures);
  look_into(out / "tables", {".csv", ".tex"});
  for (std::size_t run = 1; run <= max_runs; ++run)
    look_into(out / "tables" / fmt::format("run-{}", run), {".csv", ".tex"});
  if (const fs::path paper = out / paper_file;
      !std::binary_search(written.files.begin(), written.files.end(), fs::path(paper_file)) && fs::exists(paper) &&
      is_own_page(read_text_file(paper)))
    stale.push_back(paper);
  for (const fs::path& path : stale) fs::remove(path);
}

}  // namespace

Block paragraph(const std::string& text) {
  return Html{fmt::format("<p>{}</p>\n", to_html(text))};
}

Block absence(const std::string& text) {
  return Html{fmt::format("<p class=\"absent\">{}</p>\n", to_html(text))};
}

Block list(std::span<const std::string> sentences) {
  std::string items;
  for (const std::string& sentence : sentences) items += fmt::format("<li>{}</li>\n", to_html(sentence));
  return Html{fmt::format("<ul>\n{}</ul>\n", items)};
}

void check_sections(const MadeReport& report) {
  std::set<std::string> names, stems;
  for (const MadeSection& section : report.sections)
    ASSERT(names.insert(section.name).second, "two sections of a report are called {}", section.name);
  for (const std::string& stem : report.stems)
    ASSERT(stems.insert(stem).second, "two sections of a report write files called {}", stem);
  const auto check = [&](const std::string& name) {
    ASSERT(is_listed(report, name), "no section of the report lists its file {}", name);
  };
  for_each_block<CaptionedFigure>(report, [&](const CaptionedFigure& figure) { check(figure.name); });
  for_each_block<PaperTable>(report, [&](const PaperTable& table) { check(table.name); });
  for (const PlacedCsv& file : report.csv) check(file.table.name);
}

WrittenReport write_files(const MadeReport& whole, const fs::path& out, const Writing& writing) {
  const MadeReport report = with_figures(whole, writing.style.figures);
  ensure_writable_folder(out);
  remove_abandoned_folders(out, staging_prefix);
  const ScratchFolder staging(out, staging_prefix);  // inside `out`: on its file system
  WrittenReport written;
  for (const MadeSection& section : report.sections) {
    if (!section.failure.empty()) written.failed.push_back(fmt::format("{}: {}", section.name, section.failure));
  }
  const RenderedFigures rendered = render_all(report, staging.path(), writing.style, written);
  for (const PlacedCsv& file : report.csv)
    write(staging.path(), file.folder / (file.table.name + ".csv"), to_csv(file.table), written);
  for_each_block<PaperTable>(report, [&](const PaperTable& table) {
    if (table.rows.empty()) return;
    write(staging.path(), fs::path("tables") / (table.name + ".tex"), latex_table(table), written);
  });
  write(staging.path(), "summary.json", report.summary.dump(2) + "\n", written);
  if (writing.paper_page) {
    write(staging.path(), page_file, report_page(report, rendered, PageOf::all_but_paper), written);
    write(staging.path(), paper_file, report_page(report, rendered, PageOf::paper), written);
  } else {
    write(staging.path(), page_file, report_page(report, rendered, PageOf::everything), written);
  }
  std::sort(written.files.begin(), written.files.end());

  const bool replaces = holds_report(out, written);
  ensure_writable_folder(out / "tables");
  if (replaces) remove_stale(report, written, out);
  const auto publish = [&](const fs::path& file) {
    fs::create_directories((out / file).parent_path());
    publish_file(staging.path() / file, out / file);
  };
  publish(page_file);  // first: after a kill it shows that the other files are ours
  for (const fs::path& file : written.files) {
    if (file != page_file) publish(file);
  }
  return written;
}

}  // namespace gainlens::reports
