#include "reports/html.h"

#include "core/error.h"

#include <cmath>

namespace gainlens::reports {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

std::string shown(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return escape_html(*text);
  if (const auto* integer = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *integer);
  const double number = std::get<double>(cell);
  return std::isfinite(number) ? fmt::format("{:.4g}", number) : "–";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string inline_svg(std::string_view svg, std::string_view name, std::string_view description) {
  const auto start = svg.find("<svg");
  const auto end = svg.rfind("</svg>");
  ASSERT(start != std::string_view::npos && end != std::string_view::npos, "{}: gnuplot's SVG has no <svg> element", name);
  std::string text(svg.substr(start, end + 6 - start));
  for (const char quote : {'\'', '"'}) {
    replace_all(text, fmt::format(" id={}", quote), fmt::format(" id={}{}-", quote, name));
    replace_all(text, fmt::format("href={}#", quote), fmt::format("href={}#{}-", quote, name));
  }
  replace_all(text, "url(#", fmt::format("url(#{}-", name));
  replace_all(text, "font-family=\"DejaVu Sans\"", "font-family=\"DejaVu Sans, Verdana, sans-serif\"");
  text.insert(4, fmt::format(" role=\"img\" aria-label=\"{}\"", escape_html(description)));
  return text;
}

std::string html_table(const Table& table, const std::vector<std::string>& headings) {
  ASSERT(headings.size() == table.header.size(), "{}: {} headings for {} columns", table.name, headings.size(), table.header.size());
  std::string html = "<div class=\"table\"><table>\n<thead><tr>";
  for (std::size_t i = 0; i < headings.size(); ++i) {
    const bool text = !table.rows.empty() && std::holds_alternative<std::string>(table.rows.front()[i]);
    html += fmt::format("<th{}>{}</th>", text ? " class=\"text\"" : "", escape_html(headings[i]));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : table.rows) {
    html += "<tr>";
    for (const Cell& cell : row)
      html += fmt::format("<td{}>{}</td>", std::holds_alternative<std::string>(cell) ? " class=\"text\"" : "", shown(cell));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

}  // namespace gainlens::reports
