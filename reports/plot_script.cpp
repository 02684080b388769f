#include "reports/plot_script.h"

#include "core/quantity.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {

PlotScript::PlotScript() {
  text_ =
      "reset\n"
      "set encoding utf8\n"
      "set minussign\n"
      "set datafile missing 'NaN'\n"
      "set border 3 linewidth 0.8 linecolor rgb '#333333'\n"
      "set tics nomirror out scale 0.5 textcolor rgb '#222222'\n"
      "set grid ytics linecolor rgb '#DDDDDD' linetype 1 linewidth 0.5\n"
      "set key samplen 2 spacing 1.15 textcolor rgb '#222222'\n"
      "set style fill solid 1.0 noborder\n";
}

PlotScript& PlotScript::data(std::string_view name, const std::vector<std::vector<double>>& rows) {
  line("${} << EOD", name);
  for (const std::vector<double>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) text_ += ' ';
      text_ += std::isfinite(row[i]) ? fmt::format("{:.9g}", row[i]) : "NaN";
    }
    text_ += '\n';
  }
  return line("EOD");
}

PlotScript& PlotScript::length_axis(std::span<const std::int64_t> lengths) {
  ASSERT(!lengths.empty(), "an axis over no length");
  const auto shortest = static_cast<double>(lengths.front()), longest = static_cast<double>(lengths.back());
  const double octaves = std::max(std::log2(longest / shortest), 1e-9);
  std::string ticks;
  double last_labelled = -1;
  for (const std::int64_t length : lengths) {
    const double place = std::log2(static_cast<double>(length) / shortest) / octaves;
    const bool labelled = last_labelled < 0 || place - last_labelled > 0.08;  // labels closer than this overlap
    if (labelled) last_labelled = place;
    ticks += fmt::format("{}'{}' {}", ticks.empty() ? "" : ", ", labelled ? format_count(length) : "", length);
  }
  line("set logscale x 2");
  line("set xrange [{:.9g}:{:.9g}]", shortest * 0.88, longest * 1.14);
  line("set xtics ({})", ticks);
  return line("set xlabel 'context length {{/:Italic T}} (tokens)'");
}

PlotScript& PlotScript::value_axis(double low, double high) {
  ASSERT(std::isfinite(low) && std::isfinite(high) && low <= high, "an axis from {} to {}", low, high);
  if (low == high) {
    const double room = std::max(std::abs(low) * 0.01, 1e-6);
    low -= room;
    high += room;
  }
  const double reach = high - low;
  const double power = std::pow(10, std::floor(std::log10(reach / 5)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (reach / (factor * power) <= 5) step = factor * power;
  }
  line("set xrange [{:.9g}:{:.9g}]", low - 0.06 * reach, high + 0.06 * reach);
  return line("set xtics {:.9g}", step);
}

PlotScript& PlotScript::viridis() {
  return line(
      "set palette defined (0 '#440154', 1 '#482878', 2 '#3E4989', 3 '#31688E', 4 '#26828E', 5 '#1F9E89', 6 '#35B779', 7 '#6DCD59', "
      "8 '#B4DE2C', 9 '#FDE725')");
}

PlotScript& PlotScript::layer_colours(double first, double last) {
  viridis();
  line("set cbrange [{}:{}]", first, std::max(last, first + 1));
  return line("set cbtics {} out scale 0.4", last - first < 5 ? "1" : "autofreq");  // there is no layer 0.5
}

PlotScript& PlotScript::panel(std::size_t index, std::string_view title) {
  ASSERT(index < 26, "panel {}", index);
  line("unset label");
  return line("set label \"{{/:Bold ({})}} {}\" at graph 0, graph 1 left offset 0, 0.9", static_cast<char>('a' + index), title);
}

std::string plain(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) continue;  // a line break would end the command
    // within double quotes gnuplot reads a backslash first, its markup reads what is left
    if (std::string_view("_^{}@&~").find(c) != std::string_view::npos) {
      escaped += "\\\\";
    } else if (c == '"' || c == '\\' || c == '`') {
      escaped += '\\';
    }
    escaped += c;
  }
  return escaped;
}

}  // namespace gainlens::reports
