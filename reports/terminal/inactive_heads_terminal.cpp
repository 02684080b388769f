#include "reports/terminal/inactive_heads_terminal.h"

#include "analyses/statistics.h"
#include "core/counted.h"
#include "reports/page/table.h"

#include <fmt/format.h>

namespace gainlens::reports {

std::vector<Fact> inactive_heads_facts(const analyses::InactiveHeads& result, const std::string& of) {
  return {{"measured", fmt::format("{}; {}, {}", of, counted(result.heads, "head"),
                                   counted(result.area_of_draw.size(), "random order"))},
          {"random", fmt::format("mean of the orders: {:+.4f} to {:+.4f}, median {:+.4f}", result.area_of_draw.front(),
                                 result.area_of_draw.back(), analyses::median(result.area_of_draw))}};
}

std::vector<std::string> best_scores(const analyses::InactiveHeads& result) {
  if (result.best_filter.empty()) return {};
  const auto& interval = result.filter_interval;
  const bool better = interval && interval->high < 0, worse = interval && interval->low > 0;
  return {fmt::format("best of the filter, {}, less best of the literature, {}: {:+.4f} {}", result.best_filter,
                      result.best_literature, result.filter_minus_literature,
                      interval ? fmt::format("[{:+.4f}, {:+.4f}]", interval->low, interval->high) : "–"),
          fmt::format("the best of the filter is {} the best of the literature (both are chosen by these documents)",
                      better  ? "better than"
                      : worse ? "worse than"
                              : "not shown to differ from")};
}

std::string print_inactive_heads(const analyses::InactiveHeads& result, const std::string& of) {
  constexpr std::size_t label_width = 10;
  std::string text = fact_lines(inactive_heads_facts(result, of), label_width) + "\n" + text_table(scores_of(result));
  if (const Table ties = ties_of(result.curves); !ties.rows.empty()) text += "\n" + text_table(ties);
  const std::vector<std::string> best = best_scores(result);
  if (!best.empty()) text += "\n";
  for (const std::string& sentence : best) text += sentence + "\n";
  return text;
}

}  // namespace gainlens::reports
