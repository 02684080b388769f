#include "reports/terminal/generation_terminal.h"

#include "core/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace gainlens::reports {
namespace {

using Numbers = std::vector<float> HeadQueries::*;

constexpr std::size_t max_bars = 32;  // of a strip; so the rows of a large model fit a terminal

/// The mean over heads at one query; NaN if none sees a key.
double mean_over(std::span<const HeadQueries> heads, Numbers numbers, std::size_t query) {
  double sum = 0;
  std::int64_t seen = 0;
  for (const HeadQueries& head : heads) {
    const float number = (head.*numbers)[query];
    if (std::isnan(number)) continue;
    sum += number;
    ++seen;
  }
  return seen == 0 ? NAN : sum / static_cast<double>(seen);
}

std::string number(double value, int digits) {
  return std::isnan(value) ? std::string("-") : fmt::format("{:.{}f}", value, digits);
}

/// The heads of one bar: those of a layer, or of neighbouring layers.
std::vector<std::span<const HeadQueries>> by_bar(std::span<const HeadQueries> heads, std::size_t layers_a_bar) {
  std::vector<std::span<const HeadQueries>> bars;
  for (std::size_t begin = 0; begin < heads.size();) {
    std::size_t end = begin;
    for (std::size_t layers = 0; layers < layers_a_bar && end < heads.size(); ++layers) {
      const std::int64_t layer = heads[end].layer;
      while (end < heads.size() && heads[end].layer == layer) ++end;
    }
    bars.push_back(heads.subspan(begin, end - begin));
    begin = end;
  }
  return bars;
}

}  // namespace

std::string json_members(const HeadQueries& head) {
  return fmt::format(R"("layer":{},"head":{},"n_eff":{},"kalman_gain":{},"entropy":{},"bos_mass":{})", head.layer,
                     head.head, json_list(head.n_eff), json_list(head.kalman_gain), json_list(head.entropy),
                     json_list(head.bos_mass));
}

std::string_view bar(double share) {
  static constexpr std::array<std::string_view, 9> bars = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  return std::isnan(share) ? bars[0] : bars.at(static_cast<std::size_t>(std::lround(share * 8)));
}

std::string print_token_statistics(std::span<const AddedToken> tokens, std::span<const HeadQueries> heads) {
  ASSERT(!heads.empty(), "print_token_statistics: no head");
  const std::size_t layers = by_bar(heads, 1).size();
  const std::size_t layers_a_bar = (layers + max_bars - 1) / max_bars;
  const auto bars = by_bar(heads, layers_a_bar);
  double max_keys = 1;
  for (const auto& bar_heads : bars) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const double mean = mean_over(bar_heads, &HeadQueries::n_eff, i);
      if (mean > max_keys) max_keys = mean;
    }
  }
  const auto strip = [&](Numbers numbers, std::size_t query, double full) {
    std::string text = "|";
    for (const auto& bar_heads : bars) text += bar(std::clamp(mean_over(bar_heads, numbers, query) / full, 0.0, 1.0));
    return text + '|';
  };
  const std::size_t wide = bars.size() + 2;
  std::string text = fmt::format(
      "statistics  of the query that each token comes from: means over heads. Bars: {} from {} to {}; a full bar of\n"
      "            n_eff is {:.3g}, one of BOS mass is 1\n",
      layers_a_bar == 1 ? std::string("layers") : fmt::format("{} layers each,", layers_a_bar), heads.front().layer,
      heads.back().layer, max_keys);
  text += fmt::format("{:<18}  {:>7}  {:>8}  {:>6}  {:>7}  {:>8}  {:<{}}  BOS\n", "token", "ln p", "n_eff", "K",
                      "entropy", "BOS mass", "n_eff", wide);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto mean = [&](Numbers numbers) { return mean_over(heads, numbers, i); };
    text += fmt::format("{:<18}  {:>7.2f}  {:>8}  {:>6}  {:>7}  {:>8}  {}  {}\n",
                        "'" + printable(tokens[i].text, 16) + "'", tokens[i].log_probability,
                        number(mean(&HeadQueries::n_eff), 2), number(mean(&HeadQueries::kalman_gain), 3),
                        number(mean(&HeadQueries::entropy), 2), number(mean(&HeadQueries::bos_mass), 3),
                        strip(&HeadQueries::n_eff, i, max_keys), strip(&HeadQueries::bos_mass, i, 1));
  }
  return text;
}

std::string token_statistics_json(std::span<const HeadQueries> heads) {
  std::string text = "[";
  for (const HeadQueries& head : heads) text += (text.size() == 1 ? "{" : ",{") + json_members(head) + '}';
  return text + ']';
}

}  // namespace gainlens::reports
