#include "reports/page/paper_table.h"

#include "core/check.h"
#include "reports/page/typography.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

/// Tables of more columns are set closer.
constexpr std::size_t max_usual_columns = 10;

/// Whether a column but the first holds text, which is wrapped.
bool is_wrapped(const PaperTable& table) {
  return std::any_of(table.columns.begin() + 1, table.columns.end(), [](const Column& column) { return column.text; });
}

void check_rows(const PaperTable& table) {
  for (const auto& row : table.rows) {
    ASSERT(row.size() == 1 || row.size() == table.columns.size(), "{}: {} cells under {} headings", table.name,
           row.size(), table.columns.size());
  }
}

std::string html_spans(const PaperTable& table) {
  std::string html;
  for (const ColumnSpan& span : table.spans) {
    html += span.heading.empty() ? fmt::format("<td colspan=\"{}\"></td>", span.columns)
                                 : fmt::format("<th scope=\"colgroup\" colspan=\"{}\" class=\"span\">{}</th>",
                                               span.columns, to_html(span.heading));
  }
  return html.empty() ? html : html + "</tr>\n<tr>";
}

/// The line of spanning headings, with a rule below each of them.
std::string latex_spans(const PaperTable& table) {
  std::string headings, rules;
  std::size_t first = 1;
  for (const ColumnSpan& span : table.spans) {
    if (first > 1) headings += " & ";
    const std::size_t last = first + span.columns - 1;
    headings += fmt::format("\\multicolumn{{{}}}{{c}}{{{}}}", span.columns, to_latex(span.heading));
    if (!span.heading.empty()) rules += fmt::format("\\cmidrule(lr){{{}-{}}}", first, last);
    first = last + 1;
  }
  return headings.empty() ? headings : headings + " \\\\\n" + rules + "\n";
}

const char* html_class(const Column& column) {
  return column.text ? " class=\"text\"" : "";
}

std::string latex_columns(const PaperTable& table) {
  std::string columns = "@{}";
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    // the first names its row and keeps its width; what is said in the others is wrapped
    columns += !table.columns[i].text ? "r" : i == 0 ? "l" : ">{\\raggedright\\arraybackslash}X";
  }
  return columns + "@{}";
}

}  // namespace

std::string html_table(const PaperTable& table, int number) {
  check_rows(table);
  std::string html =
      fmt::format("<div class=\"table{}\" id=\"table-{}\"><table>\n<caption><b>Table {}.</b> {}</caption>\n<thead><tr>",
                  table.columns.size() > max_usual_columns ? " wide" : "", table.name, number, to_html(table.caption));
  html += html_spans(table);
  for (const Column& column : table.columns)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", html_class(column), to_html(column.heading));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    if (row.size() == 1 && table.columns.size() > 1) {
      html += fmt::format("<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{}\">{}</th></tr>\n",
                          table.columns.size(), to_html(row[0]));
      continue;
    }
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const char* const tag = i == 0 ? "th" : "td";
      html += fmt::format("<{0}{1}{2}>{3}</{0}>", tag, i == 0 ? " scope=\"row\"" : "", html_class(table.columns[i]),
                          table.columns[i].verbatim ? escape_html(row[i]) : to_html(row[i]));
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string latex_table(const PaperTable& table) {
  check_rows(table);
  const bool wrapped = is_wrapped(table);
  const std::string columns = latex_columns(table);
  std::string latex = fmt::format(
      "% needs "
      "\\usepackage{{booktabs}}{}\n\\begin{{table*}}[t]\n\\centering\\small\n\\caption{{{}}}\n\\label{{tab:{}}}\n",
      wrapped ? " and \\usepackage{tabularx}" : "", to_latex(table.caption), table.name);
  latex += wrapped ? fmt::format("\\begin{{tabularx}}{{\\textwidth}}{{{}}}\n", columns)
                   : fmt::format("\\begin{{tabular}}{{{}}}\n", columns);
  latex += "\\toprule\n" + latex_spans(table);
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    latex += (i == 0 ? "" : " & ") + to_latex(table.columns[i].heading);
  latex += " \\\\\n\\midrule\n";
  for (const auto& row : table.rows) {
    if (row.size() == 1 && table.columns.size() > 1) {
      latex +=
          fmt::format("\\multicolumn{{{}}}{{@{{}}l}}{{\\textit{{{}}}}} \\\\\n", table.columns.size(), to_latex(row[0]));
      continue;
    }
    for (std::size_t i = 0; i < row.size(); ++i)
      latex += (i == 0 ? "" : " & ") + (table.columns[i].verbatim ? escape_latex(row[i]) : to_latex(row[i]));
    latex += " \\\\\n";
  }
  return latex + "\\bottomrule\n" + (wrapped ? "\\end{tabularx}\n" : "\\end{tabular}\n") + "\\end{table*}\n";
}

}  // namespace gainlens::reports
