#include "reports/terminal/attributions_terminal.h"

#include "core/counted.h"
#include "core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::Attributions;
using analyses::EstimatedArm;
using analyses::EstimatedKind;

constexpr std::size_t max_estimates = 40;

std::string whole(const std::string& text) {
  return printable(text, text.size());
}

/// "+0.946 [+0.884, +0.976]"
std::string correlation_cell(const EstimatedKind& kind) {
  if (!kind.correlation) return fmt::format("none ({})", kind.correlation.reason());
  const std::string value = fmt::format("{:+.3f}", *kind.correlation);
  if (!kind.interval) return value;
  return fmt::format("{} [{:+.3f}, {:+.3f}]", value, kind.interval->low, kind.interval->high);
}

/// How far the estimates can be trusted.
std::string kinds_table(const Attributions& attributions) {
  std::size_t width = std::string_view("kind").size();
  for (const EstimatedKind& kind : attributions.kinds) width = std::max(width, whole(kind.kind).size());
  std::string text = fmt::format("{:<{}}  {:>13}  {:>7}  {:>5}  rank correlation\n", "kind", width, "interventions",
                                 "can act", "exact");
  for (const EstimatedKind& kind : attributions.kinds) {
    text += fmt::format("{:<{}}  {:>13}  {:>7}  {:>5}  {}\n", whole(kind.kind), width, kind.arms, kind.acting,
                        kind.exact, correlation_cell(kind));
  }
  return text +
         "The correlation is Spearman's, of the estimates and exact changes of those that --seed drew; the interval "
         "is\n"
         "that of all that can act.\n"
         "Trust the other estimates of a kind only as far as it is near 1.\n";
}

std::string share(const Measured& normalised) {
  return normalised ? fmt::format("{:+.3f}", *normalised) : "–";
}

std::string row_of(const Attributions& attributions, const EstimatedArm& arm, std::size_t width) {
  const std::string exact = arm.exact ? fmt::format("{:+.4f}", *arm.exact) : "";
  if (!attributions.other) {
    const std::string interval =
        arm.interval ? fmt::format("[{:+.4f}, {:+.4f}]", arm.interval->low, arm.interval->high) : "–";
    return fmt::format("{:<{}}  {:>+10.4f}  {:>22}  {:>10}\n", whole(arm.intervention), width, arm.estimate, interval,
                       exact);
  }
  return fmt::format("{:<{}}  {:>+10.4f}  {:>8}  {:>10}  {:>8}\n", whole(arm.intervention), width, arm.estimate,
                     share(attributions.normalised(arm.estimate)), exact,
                     arm.exact ? share(attributions.normalised(*arm.exact)) : "");
}

}  // namespace

std::string print_attributions(const Attributions& attributions, const std::string& number) {
  std::string text = fmt::format(
      "estimated {} by one backward pass of {}\n\n", counted(attributions.arms.size(), "intervention"),
      attributions.documents == 1 ? "the document" : fmt::format("each of {} documents", attributions.documents));
  text += kinds_table(attributions) + '\n';
  text += attributions.other ? fmt::format("patched run {:.4f}, other run {:.4f}: {}\n\n", attributions.native,
                                           *attributions.other, number)
                             : fmt::format("native    {:.4f}: {}\n\n", attributions.native, number);
  const std::vector<std::size_t> places = analyses::by_size(attributions);
  const std::size_t shown = std::min(places.size(), max_estimates);
  std::size_t width = std::string_view("intervention").size();
  for (std::size_t i = 0; i < shown; ++i)
    width = std::max(width, whole(attributions.arms[places[i]].intervention).size());
  text += attributions.other ? fmt::format("{:<{}}  {:>10}  {:>8}  {:>10}  {:>8}\n", "intervention", width, "estimate",
                                           "share", "exact", "share")
                             : fmt::format("{:<{}}  {:>10}  {:>22}  {:>10}\n", "intervention", width, "estimate",
                                           "95% over documents", "exact");
  for (std::size_t i = 0; i < shown; ++i) text += row_of(attributions, attributions.arms[places[i]], width);
  if (attributions.other) text += "A share is the change over the difference of the two runs: 1 is all of it.\n";
  if (shown < places.size())
    text += fmt::format("{} with smaller estimates are left out; --json and --out FILE.csv have all.\n",
                        places.size() - shown);
  return text;
}

CsvTable attributions_table(std::span<const NamedAttributions> all) {
  CsvTable table{"attributions",
                 {"direction", "intervention", "kind", "can_act", "estimate", "estimate_low", "estimate_high",
                  "estimate_normalised", "exact", "exact_normalised"},
                 {}};
  const auto none = Measured::none("not measured");
  for (const auto& [direction, estimates] : all) {
    for (const EstimatedArm& arm : estimates.arms) {
      std::vector<Cell>& row = table.rows.emplace_back(
          std::vector<Cell>{direction, arm.intervention, arm.kind, std::int64_t{arm.acts}, arm.estimate});
      append(row, arm.interval);
      row.push_back(cell(estimates.normalised(arm.estimate)));
      row.push_back(cell(arm.exact ? Measured(*arm.exact) : none));
      row.push_back(cell(arm.exact ? estimates.normalised(*arm.exact) : none));
    }
  }
  return table;
}

}  // namespace gainlens::reports
