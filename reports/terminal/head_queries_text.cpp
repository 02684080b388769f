#include "reports/terminal/head_queries_text.h"

#include <array>

namespace gainlens::reports {

std::string json_members(const HeadQueries& head) {
  return fmt::format(R"("layer":{},"head":{},"n_eff":{},"kalman_gain":{},"entropy":{},"bos_mass":{})", head.layer,
                     head.head, json_list(head.n_eff), json_list(head.kalman_gain), json_list(head.entropy),
                     json_list(head.bos_mass));
}

std::string_view bar(double share) {
  static constexpr std::array<std::string_view, 9> bars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return std::isnan(share) ? bars[0] : bars.at(static_cast<std::size_t>(std::lround(share * 8)));
}

}  // namespace gainlens::reports
