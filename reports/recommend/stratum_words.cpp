#include "reports/recommend/stratum_words.h"

#include <fmt/format.h>

#include <cmath>

namespace gainlens::reports {

using analyses::StratumKind;

namespace {

/// Whether the first stratum holds the test items that stand in no training item.
bool is_of_untrained(const analyses::StratifiedUsers& users) {
  return users.kind == StratumKind::item_frequency && !users.shares_edges && users.strata.edges.front() == 0;
}

}  // namespace

std::string stratum_heading(StratumKind kind) {
  return kind == StratumKind::item_frequency ? "by training count" : "by training items";
}

std::string stratum_rule(const analyses::StratifiedUsers& users) {
  const std::string groups =
      users.kind == StratumKind::user_activity
          ? "Users by the number of their training items, with edges at the quintiles of users."
      : users.shares_edges ? "Users by how often their test item stands in the training items: five groups of equally "
                             "many items of the catalogue. Items whose count is an edge can be on both sides of it."
                           : "Users by how often their test item stands in the training items, with given edges.";
  return groups + " \"target count\" and \"known items\" are means.";
}

std::string stratum_name(const analyses::StratifiedUsers& users, std::size_t stratum) {
  const bool items = users.kind == StratumKind::item_frequency;
  std::string name = fmt::format("{}", stratum + 1);
  if (users.strata.edges.empty()) return name + (items ? " all items" : " all users");
  if (stratum == 0 && is_of_untrained(users)) return name + " never trained";
  if (stratum == 0) name += items ? " rarest" : " least active";
  if (stratum == users.strata.edges.size()) name += items ? " popular" : " most active";
  return name;
}

std::string stratum_label(const analyses::StratifiedUsers& users, std::size_t stratum) {
  const auto& edges = users.strata.edges;
  const std::string name = stratum_name(users, stratum);
  if (edges.empty()) return name;
  const std::int64_t above = users.shares_edges ? 0 : 1;
  if (stratum == 0 && is_of_untrained(users)) return name + ": 0";
  if (stratum == 0) return fmt::format("{}: at most {}", name, edges.front());
  const std::int64_t first = edges[stratum - 1] + above;
  if (stratum == edges.size()) return fmt::format("{}: {} or more", name, first);
  return first == edges[stratum] ? fmt::format("{}: {}", name, first)
                                 : fmt::format("{}: {} to {}", name, first, edges[stratum]);
}

std::string correlation_sentence(double correlation) {
  if (!std::isfinite(correlation)) return {};
  return fmt::format(
      "The correlation between known items and target count over users is {:+.3f}. If it is not near 0, a difference "
      "between groups of one kind may come from the other kind.",
      correlation);
}

}  // namespace gainlens::reports
