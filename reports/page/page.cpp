#include "reports/page/page.h"

#include "core/check.h"
#include "core/error.h"
#include "reports/page/compact_svg.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"

#include <span>
#include <utility>
#include <variant>

namespace gainlens::reports {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Takes out everything between each pair of these marks, the marks included.
void remove_between(std::string& text, std::string_view from, std::string_view to) {
  for (auto start = text.find(from); start != std::string::npos; start = text.find(from, start)) {
    const auto end = text.find(to, start);
    if (end == std::string::npos) return;
    text.erase(start, end + to.size() - start);
  }
}

/// Numbers figures and tables as they come.
class Page {
 public:
  explicit Page(const RenderedFigures& figures) : figures_(figures) {}

  /// @param heading  whether its title stands over it
  void section(const MadeSection& section, bool heading = true) {
    if (section.blocks.empty() && section.failure.empty()) return;
    // The script takes "hidden" away where it fills the section.
    const char* const hidden = section.scripted && section.failure.empty() ? " class=\"scripted\" hidden" : "";
    contents_ += fmt::format("<a href=\"#{}-section\"{}>{}</a> ", section.name, hidden, to_html(section.title));
    html_ += fmt::format("<section id=\"{}-section\"{}>\n", section.name, hidden);
    if (heading) html_ += fmt::format("<h2>{}</h2>\n", to_html(section.title));
    if (!section.failure.empty())
      html_ += fmt::format("<p class=\"absent\">This section could not be made: {}.</p>\n",
                           escape_html(printable(section.failure, 400)));
    for (auto block = section.blocks.begin(); block != section.blocks.end(); ++block) {
      if (const auto* fold = std::get_if<FoldStart>(&*block))
        open(*fold, {block + 1, section.blocks.end()});
      else
        std::visit([&](const auto& content) { add(content); }, *block);
    }
    html_ += "</section>\n";
  }

  /// What was added since the last call; it leaves the page.
  std::string take() { return std::exchange(html_, {}); }
  /// Sections between these two calls are folded.
  void open_paper() {
    html_ +=
        "<details class=\"paper\" id=\"paper\">\n<summary>The paper: its predictions, its theory and an audit of "
        "them</summary>\n";
  }
  void close_paper() { html_ += "</details>\n"; }

  const std::string& contents() const { return contents_; }
  const std::string& html() const { return html_; }

 private:
  void add(const Html& html) { html_ += html.text; }
  void add(const FoldStart&) {}  // see open()
  void add(const FoldEnd&) { html_ += "</details>\n"; }
  /// @param behind  the blocks after the start of the fold
  void open(const FoldStart& fold, std::span<const Block> behind);
  void add(const PaperTable& table) {
    if (!table.rows.empty()) html_ += html_table(table, ++table_number_);
  }
  void add(const CaptionedFigure& figure);

  const RenderedFigures& figures_;
  std::string html_;
  std::string contents_;
  int figure_number_ = 0;
  int table_number_ = 0;
};

void Page::open(const FoldStart& fold, std::span<const Block> behind) {
  int tables = 0;
  for (const Block& block : behind) {
    if (std::holds_alternative<FoldEnd>(block)) break;
    const auto* table = std::get_if<PaperTable>(&block);
    tables += table != nullptr && !table->rows.empty() ? 1 : 0;
  }
  std::string numbers;  // a number that is not seen would be missed
  if (tables == 1) numbers = fmt::format(" (Table {})", table_number_ + 1);
  if (tables > 1) numbers = fmt::format(" (Tables {} to {})", table_number_ + 1, table_number_ + tables);
  html_ += fmt::format("<details>\n<summary>{}{}</summary>\n", to_html(fold.title), numbers);
}

void Page::add(const CaptionedFigure& figure) {
  if (!figure.figure) {
    html_ += fmt::format("<p class=\"absent\" id=\"{}\">{}. Left out: {}.</p>\n", figure.name, to_html(figure.title),
                         to_html(figure.figure.reason()));
    return;
  }
  html_ += fmt::format(
      "<figure id=\"figure-{}\"{}>\n{}\n<figcaption>\n<p><b>Figure {}. {}.</b> {}</p>\n"
      "<p class=\"can\"><b>What it can show.</b> {}</p>\n"
      "<p class=\"cannot\"><b>What it cannot show.</b> {}</p>\n</figcaption>\n</figure>\n",
      figure.name, figure.figure->width < page_width ? " class=\"column\"" : "",
      inline_svg(figures_.at(figure.name), figure.name, figure.title + ". " + figure.caption.shows), ++figure_number_,
      to_html(figure.title), to_html(figure.caption.shows), to_html(figure.caption.can),
      to_html(figure.caption.cannot));
}

}  // namespace

std::string inline_svg(std::string_view svg, std::string_view name, std::string_view description) {
  const auto start = svg.find("<svg");
  const auto end = svg.rfind("</svg>");
  ASSERT(start != std::string_view::npos && end != std::string_view::npos, "{}: gnuplot's SVG has no <svg> element",
         name);
  std::string text = compact_svg(svg.substr(start, end + 6 - start));
  remove_between(text, "<style>", "</style>");  // inside a page it would hold for all of it
  remove_between(text, "<title>", "</title>");  // browsers show titles, of plots too, as tooltips
  remove_between(text, "<desc>", "</desc>");
  for (const char quote : {'\'', '"'}) {
    replace_all(text, fmt::format(" id={}", quote), fmt::format(" id={}{}-", quote, name));
    replace_all(text, fmt::format("href={}#", quote), fmt::format("href={}#{}-", quote, name));
  }
  replace_all(text, "url(#", fmt::format("url(#{}-", name));
  replace_all(text, "font-family=\"DejaVu Sans\"", "font-family=\"DejaVu Sans, Verdana, sans-serif\"");
  text.insert(4, fmt::format(" role=\"img\" aria-label=\"{}\"", escape_html(description)));
  return text;
}

std::string report_page(const MadeReport& report, const RenderedFigures& figures, PageOf shown) {
  Page page(figures);
  std::string lead;  // above the table of contents
  bool any_paper = false;
  for (const MadeSection& section : report.sections) {
    any_paper = any_paper || section.paper;
    if (section.paper != (shown == PageOf::paper)) continue;
    const bool leads = report.leads && &section == &report.sections.front();
    page.section(section, !leads);
    if (leads) lead = page.take();
  }
  if (any_paper && shown == PageOf::everything) {
    page.open_paper();
    for (const MadeSection& section : report.sections) {
      if (section.paper) page.section(section);
    }
    page.close_paper();
  }
  const std::string other_page =
      shown == PageOf::paper        ? "<p><a href=\"report.html\">The measurements</a></p>\n"
      : shown == PageOf::everything ? ""
      : any_paper ? "<p>The predictions and the theory of the paper: <a href=\"paper.html\">paper.html</a>.</p>\n"
                  : "";
  return page_head(report.title) + report.header + lead + "<nav aria-label=\"Contents\">" + page.contents() +
         "</nav>\n" + page.html() + other_page + page_end();
}

}  // namespace gainlens::reports
