#include "reports/words/facts.h"

#include "reports/page/typography.h"

#include <fmt/format.h>

namespace gainlens::reports {

std::string fact_lines(std::span<const Fact> facts, std::size_t width) {
  std::string lines;
  for (const Fact& fact : facts) lines += fmt::format("{:<{}}{}\n", fact.label, width, fact.text);
  return lines;
}

std::string fact_items(std::span<const Fact> facts) {
  std::string html;
  for (const Fact& fact : facts) {
    const bool first = !fact.label.empty() || html.empty();
    if (first) html += html.empty() ? "<ul>\n<li>" : "</li>\n<li>";
    html += fmt::format("{}{}{}", first ? escape_html(fact.label) : "; ", first && !fact.label.empty() ? ": " : "",
                        escape_html(fact.text));
  }
  return html.empty() ? html : html + "</li>\n</ul>\n";
}

}  // namespace gainlens::reports
