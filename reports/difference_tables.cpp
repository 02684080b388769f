#include "core/quantity.h"
#include "reports/paper_tables.h"
#include "reports/shown.h"

#include <map>
#include <string_view>

namespace gainlens::reports {
namespace {

/// A quantity's name for readers, with its unit.
std::string heading_of(const analyses::ComparedQuantity& quantity) {
  static const std::map<std::string_view, std::string> headings = {
      {"n_eff", "n_eff (keys)"}, {"entropy", "entropy (nats)"},      {"observation_precision", "lambda_obs"},
      {"kalman_gain", "K"},      {"kalman_gain_scaled", "scaled K"}, {"gate", "gate"},
      {"bos_mass", "BOS mass"},  {"sink_share", "sink share"},       {"nll", "NLL (nats per token)"},
  };
  const auto found = headings.find(quantity.name);
  ASSERT(found != headings.end(), "no heading for {}", quantity.name);
  return found->second;
}

std::string signed_digits(const analyses::Measured& value) {
  return value ? (*value > 0 ? "+" : "") + shown(*value) : "–";
}

}  // namespace

PaperTable differences_paper_table(const Contrast& contrast) {
  const analyses::Comparison& comparison = contrast.comparison;
  PaperTable table{
      "differences",
      "",
      {{"quantity", true}, {contrast.first}, {contrast.second}, {"difference"}, {"95% interval"}, {"chunks"}},
      {}};
  table.caption = fmt::format(
      "{} less {}{} Intervals are Student's over chunks; they do not cover training seeds. Quantities of attention are "
      "means over the deep "
      "layers' last-quarter queries; BOS mass over second-half queries of the layers that see key 0.",
      contrast.second, contrast.first,
      comparison.unpaired.empty() ? ", paired by chunk." : ": no difference is taken, since " + comparison.unpaired);
  for (const analyses::ComparedLength& length : comparison.lengths) {
    table.rows.push_back({format_count(length.tokens) + " tokens"});
    for (const analyses::PairedDifference& quantity : length.quantities) {
      if (!quantity.first && !quantity.second) continue;
      table.rows.push_back({heading_of(quantity.quantity), shown(quantity.first), shown(quantity.second),
                            signed_digits(quantity.difference), quantity.interval ? shown(quantity.interval) : "–",
                            quantity.pairs > 0 ? std::to_string(quantity.pairs) : "–"});
    }
  }
  return table;
}

PaperTable run_differences_paper_table(const Contrast& contrast) {
  PaperTable table{"run-differences",
                   fmt::format("What {} and {} do not share, and what follows.", contrast.first, contrast.second),
                   {{"", true}, {contrast.first, true}, {contrast.second, true}, {"consequence", true}},
                   {}};
  for (const analyses::RunDifference& difference : contrast.comparison.differences)
    table.rows.push_back({std::string(difference.what), difference.first, difference.second,
                          difference.consequence.empty() ? "–" : difference.consequence});
  return table;
}

}  // namespace gainlens::reports
