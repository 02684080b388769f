#include "reports/recommend/stratum_words.h"

#include <fmt/format.h>

namespace gainlens::reports {

using analyses::StratumKind;

std::string stratum_heading(StratumKind kind) {
  return kind == StratumKind::item_frequency ? "by training count" : "by training items";
}

std::string stratum_label(const analyses::StratifiedGains& gains, std::size_t stratum) {
  const bool items = gains.kind == StratumKind::item_frequency;
  const auto& edges = gains.strata.edges;
  std::string name = fmt::format("{}", stratum + 1);
  if (stratum == 0) name += items ? " rarest" : " least active";
  if (stratum == edges.size()) name += items ? " popular" : " most active";
  if (edges.empty()) return name;
  const std::int64_t above = gains.shares_edges ? 0 : 1;
  if (stratum == 0) return fmt::format("{}: at most {}", name, edges.front());
  const std::int64_t first = edges[stratum - 1] + above;
  if (stratum == edges.size()) return fmt::format("{}: {} or more", name, first);
  return first == edges[stratum] ? fmt::format("{}: {}", name, first)
                                 : fmt::format("{}: {} to {}", name, first, edges[stratum]);
}

}  // namespace gainlens::reports
