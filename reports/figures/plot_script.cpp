#include "reports/figures/plot_script.h"

#include "core/check.h"
#include "core/quantity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace gainlens::reports {

namespace {

/// Gives a point's surroundings a width.
void widen(double& low, double& high) {
  if (low < high) return;
  const double room = std::max(std::abs(low) * 0.01, 1e-6);
  low -= room;
  high += room;
}

/// 1, 2 or 5 times a power of ten: at most six ticks over the reach.
double tick_step(double reach) {
  const double power = std::pow(10, std::floor(std::log10(reach / 5)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (reach / (factor * power) <= 5) return factor * power;
  }
  return 10 * power;
}

constexpr std::size_t most_layer_colours = 8;

/// Whether layers with others between them have a colour each.
bool are_apart(const std::vector<std::int64_t>& layers) {
  const bool neighbours = layers.back() - layers.front() + 1 == static_cast<std::int64_t>(layers.size());
  return !neighbours && layers.size() <= most_layer_colours;
}

}  // namespace

PlotScript::PlotScript() {
  text_ =
      "reset\n"
      "set encoding utf8\n"
      "set minussign\n"
      "set datafile missing 'NaN'\n"
      "set border 3 linewidth 0.7 linecolor rgb '#333333'\n"
      "set tics nomirror out scale 0.35 textcolor rgb '#222222'\n"
      "set xtics offset 0,0.3\n"
      "set ytics offset 0.4,0\n"
      "set grid ytics linecolor rgb '#DDDDDD' linetype 1 linewidth 0.5\n"
      "set key samplen 1.6 spacing 1.1 textcolor rgb '#222222'\n"
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

PlotScript& PlotScript::length_axis(std::span<const std::int64_t> lengths, double width) {
  ASSERT(!lengths.empty(), "an axis over no length");
  const auto shortest = static_cast<double>(lengths.front()), longest = static_cast<double>(lengths.back());
  const double octaves = std::max(std::log2(longest / shortest), 1e-9);
  constexpr double character = 0.062, gap = 0.05;  // inches at the figures' font size
  std::string ticks;
  double free_from = -1e9;
  for (const std::int64_t length : lengths) {
    const std::string text = format_count(length);
    const double place = width * std::log2(static_cast<double>(length) / shortest) / octaves;
    const double half = 0.5 * character * static_cast<double>(text.size());
    const bool labelled = place - half >= free_from;
    if (labelled) free_from = place + half + gap;
    ticks += fmt::format("{}'{}' {}", ticks.empty() ? "" : ", ", labelled ? text : "", length);
  }
  line("set logscale x 2");
  line("set xrange [{:.9g}:{:.9g}]", shortest * 0.88, longest * 1.14);
  line("set xtics ({})", ticks);
  return line("set xlabel 'context {{/:Italic T}} (tokens)' offset 0,0.5");
}

PlotScript& PlotScript::value_axis(double low, double high) {
  ASSERT(std::isfinite(low) && std::isfinite(high) && low <= high, "an axis from {} to {}", low, high);
  widen(low, high);
  const double reach = high - low;
  line("set xrange [{:.9g}:{:.9g}]", low - 0.06 * reach, high + 0.06 * reach);
  return line("set xtics {:.9g}", tick_step(reach));
}

PlotScript& PlotScript::y_axis(double low, double high, double headroom) {
  ASSERT(std::isfinite(low) && std::isfinite(high) && low <= high, "an axis from {} to {}", low, high);
  widen(low, high);
  const double reach = high - low;
  line("set yrange [{:.9g}:{:.9g}]", low == 0 ? 0 : low - 0.06 * reach, high + headroom * reach);
  return line("set ytics {:.9g}", tick_step((1 + headroom) * reach));
}

PlotScript& PlotScript::viridis() {
  return line(
      "set palette defined (0 '#440154', 1 '#482878', 2 '#3E4989', 3 '#31688E', 4 '#26828E', 5 '#1F9E89', 6 '#35B779', "
      "7 '#6DCD59', "
      "8 '#B4DE2C', 9 '#FDE725')");
}

double layer_colour(const std::vector<std::int64_t>& layers, std::int64_t layer) {
  if (!are_apart(layers)) return static_cast<double>(layer);
  return static_cast<double>(std::lower_bound(layers.begin(), layers.end(), layer) - layers.begin());
}

PlotScript& PlotScript::layer_colours(const std::vector<std::int64_t>& layers) {
  if (!are_apart(layers)) return layer_colours(static_cast<double>(layers.front()), static_cast<double>(layers.back()));
  viridis();
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < layers.size(); ++i) tics.push_back(fmt::format("'{}' {}", layers[i], i));
  line("set palette maxcolors {}", layers.size())
      .line("set cbrange [-0.5:{}]", static_cast<double>(layers.size()) - 0.5);
  return line("set cbtics ({}) out scale 0.4", fmt::join(tics, ", "));
}

PlotScript& PlotScript::layer_colours(double first, double last) {
  viridis();
  const double layers = last - first + 1;
  if (layers > static_cast<double>(most_layer_colours)) {
    line("set cbrange [{}:{}]", first, last);
    return line("set cbtics autofreq out scale 0.4");
  }
  // One colour for each of a few layers, its number at the middle: there is no layer 0.5.
  line("set palette maxcolors {}", layers).line("set cbrange [{}:{}]", first - 0.5, last + 0.5);
  return line("set cbtics {},1,{} out scale 0.4", first, last);
}

PlotScript& PlotScript::panel(std::size_t index, std::string_view title) {
  ASSERT(index < 26, "panel {}", index);
  line("unset label");
  return line("set label \"{{/:Bold ({})}} {}\" at graph 0, graph 1 left offset 0, 0.8", static_cast<char>('a' + index),
              title);
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
