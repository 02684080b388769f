#include "reports/page/html.h"

#include "core/check.h"
#include "reports/page/compact_svg.h"
#include "reports/page/typography.h"

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

}  // namespace gainlens::reports
