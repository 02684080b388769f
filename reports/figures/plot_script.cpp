#include "reports/figures/plot_script.h"

#include "core/check.h"
#include "core/quantity.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
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

/// "#rrggbb" at a place from 0 to 1 in a range of colours.
std::string between(std::span<const std::string_view> colours, double place) {
  const double at = place * static_cast<double>(colours.size() - 1);
  const std::size_t low = std::min(static_cast<std::size_t>(at), colours.size() - 2);
  const double share = at - static_cast<double>(low);
  std::string mixed = "#";
  for (std::size_t part = 0; part < 3; ++part) {
    const auto read = [&](std::string_view colour) {
      return std::stoi(std::string(colour.substr(1 + 2 * part, 2)), nullptr, 16);
    };
    mixed += fmt::format("{:02X}", std::lround((1 - share) * read(colours[low]) + share * read(colours[low + 1])));
  }
  return mixed;
}

/// Whether layers with others between them have a colour each.
bool are_apart(const std::vector<std::int64_t>& layers) {
  const bool neighbours = layers.back() - layers.front() + 1 == static_cast<std::int64_t>(layers.size());
  return !neighbours && layers.size() <= max_layer_colours;
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
  std::string ticks;
  double free_from = -1e9;
  for (const std::int64_t length : lengths) {
    const std::string text = format_count(length);
    const double place = width * std::log2(static_cast<double>(length) / shortest) / octaves;
    const double half = 0.5 * character_width * static_cast<double>(text.size());
    const bool labelled = place - half >= free_from;
    if (labelled) free_from = place + half + label_gap;
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

std::span<const std::string_view> viridis_colours() {
  static constexpr std::array<std::string_view, 10> colours = {"#440154", "#482878", "#3E4989", "#31688E", "#26828E",
                                                               "#1F9E89", "#35B779", "#6DCD59", "#B4DE2C", "#FDE725"};
  return colours;
}

std::string palette_command(std::span<const std::string_view> colours, std::size_t steps) {
  std::string entries;
  const auto add = [&](std::size_t place, const std::string& colour) {
    entries += fmt::format("{}{} '{}'", entries.empty() ? "" : ", ", place, colour);
  };
  if (steps == 0) {
    for (std::size_t i = 0; i < colours.size(); ++i) add(i, std::string(colours[i]));
  } else {
    for (std::size_t i = 0; i < steps; ++i) {
      const double at = steps == 1 ? 0 : static_cast<double>(i) / static_cast<double>(steps - 1);
      const std::string colour = between(colours, at);
      add(i, colour);
      add(i + 1, colour);
    }
  }
  return "set palette defined (" + entries + ")";
}

PlotScript& PlotScript::viridis() {
  return line("{}", palette_command(viridis_colours()));
}

double layer_colour(const std::vector<std::int64_t>& layers, std::int64_t layer) {
  if (!are_apart(layers)) return static_cast<double>(layer);
  return static_cast<double>(std::lower_bound(layers.begin(), layers.end(), layer) - layers.begin());
}

PlotScript& PlotScript::layer_colours(const std::vector<std::int64_t>& layers) {
  if (!are_apart(layers)) return layer_colours(static_cast<double>(layers.front()), static_cast<double>(layers.back()));
  std::vector<std::string> tics;
  for (std::size_t i = 0; i < layers.size(); ++i) tics.push_back(fmt::format("'{}' {}", layers[i], i));
  line("{}", palette_command(viridis_colours(), layers.size()))
      .line("set cbrange [-0.5:{}]", static_cast<double>(layers.size()) - 0.5);
  return line("set cbtics ({}) out scale 0.4", fmt::join(tics, ", "));
}

PlotScript& PlotScript::layer_colours(double first, double last) {
  const double layers = last - first + 1;
  if (layers > static_cast<double>(max_layer_colours)) {
    viridis().line("set cbrange [{}:{}]", first, last);
    return line("set cbtics autofreq out scale 0.4");
  }
  // One colour for each of a few layers, its number at the middle: there is no layer 0.5.
  line("{}", palette_command(viridis_colours(), static_cast<std::size_t>(layers)))
      .line("set cbrange [{}:{}]", first - 0.5, last + 0.5);
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
