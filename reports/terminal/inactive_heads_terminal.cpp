#include "reports/terminal/inactive_heads_terminal.h"

#include "analyses/statistics.h"
#include "core/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

std::string numbers(const std::vector<double>& changes) {
  std::string text;
  for (const double change : changes) text += fmt::format(" {:>+8.4f}", change);
  return text;
}

std::string name_of(const analyses::ScoreCurve& curve) {
  return curve.source == "filter" ? curve.name + " (filter)" : curve.name;
}

/// Where the number of a head chooses; "" if nowhere.
std::string ties_of(const std::vector<analyses::ScoreCurve>& curves) {
  std::string text;
  for (const analyses::ScoreCurve& curve : curves) {
    if (curve.ties.empty()) continue;
    text += fmt::format("  {:<23}", name_of(curve));
    for (const analyses::BrokenTie& tie : curve.ties)
      text += fmt::format("  {:.0f}%: {} of {}", 100 * tie.share, tie.taken, tie.equal);
    text += '\n';
  }
  if (text.empty()) return text;
  return "ties: at these shares some heads of equal score are set to zero and some are not; those that come first in "
         "the model are\n" +
         text;
}

std::string bracket(const analyses::Maybe<analyses::Interval>& interval) {
  return interval ? fmt::format("[{:+.4f}, {:+.4f}]", interval->low, interval->high) : "–";
}

}  // namespace

std::string print_inactive_heads(const analyses::InactiveHeads& result, const std::string& of) {
  std::string text = fmt::format(
      "measured  {}; {}\n\nChange of the loss, in nats per token, with these shares of heads "
      "set to zero; their mean from 0 on [95% over documents]; on these documents: how many of {} have a smaller mean "
      "[95% for all draws], and p of a score that is a random order itself\n{:<23}",
      of, counted(result.heads, "head"), counted(result.area_of_draw.size(), "random order"), "score");
  for (const double share : result.shares) text += fmt::format(" {:>8}", fmt::format("{:.0f}%", 100 * share));
  text += fmt::format("  {:>8}  {:>20}  {:>18}  {:>5}  {:>8}\n", "mean", "", "random better", "p", "Spearman");
  const auto row = [&](std::string_view name, const std::vector<double>& changes, double area) {
    text += fmt::format("{:<23}{}  {:>+8.4f}", name, numbers(changes), area);
  };
  for (const analyses::ScoreCurve& curve : result.curves) {
    row(name_of(curve), curve.changes, curve.area);
    const analyses::Exceedance& among = curve.among_random;
    text += fmt::format("  {:>20}  {:>18}  {:>5}  {:>8}\n", bracket(curve.interval),
                        fmt::format("{} [{:.0f}, {:.0f}%]", among.lower, 100 * among.share.low, 100 * among.share.high),
                        among.p ? fmt::format("{:.3f}", *among.p) : "–",
                        curve.spearman ? fmt::format("{:+.2f}", *curve.spearman) : "–");
  }
  row("random heads", result.random_changes, result.random_area);
  text += fmt::format("  of the orders: {:+.4f} to {:+.4f}, median {:+.4f}\n", result.area_of_draw.front(),
                      result.area_of_draw.back(), analyses::median(result.area_of_draw));
  text += ties_of(result.curves);
  const analyses::Measured& p = result.curves.front().among_random.p;
  if (!p) text += fmt::format("p: {}\n", p.reason());
  if (!result.best_filter.empty()) {
    text += fmt::format("\nbest of the filter, {}, less best of the literature, {}: {:+.4f} {}\n", result.best_filter,
                        result.best_literature, result.filter_minus_literature, bracket(result.filter_interval));
    const bool better = result.filter_interval && result.filter_interval->high < 0,
               worse = result.filter_interval && result.filter_interval->low > 0;
    text +=
        fmt::format("the best of the filter is {} the best of the literature (both are chosen by these documents)\n",
                    better  ? "better than"
                    : worse ? "worse than"
                            : "not shown to differ from");
  }
  return text + "Spearman: of the score, turned so that inactive is small, with the change by each head alone.\n";
}

}  // namespace gainlens::reports
