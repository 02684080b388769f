#include "reports/figures/palette.h"

#include "core/check.h"
#include "core/plain_text.h"

#include <array>
#include <charconv>
#include <utility>

namespace gainlens::reports {
namespace {

constexpr std::array<RunStyle, max_runs> run_styles = {{
    {colour::blue, 7, 6, 1},
    {colour::vermillion, 5, 4, 2},
    {colour::green, 9, 8, 4},
    {colour::purple, 13, 12, 5},
    {colour::orange, 11, 10, 3},
    {colour::grey, 15, 14, 2},
}};

constexpr std::array<LayerStyle, max_runs> layer_styles = {{
    {colour::ink, 1},
    {colour::ink, 2},
    {colour::ink, 3},
    {colour::ink, 4},
    {colour::ink, 5},
    {colour::grey, 1},
}};

/// Colours that are too dark, or too light, on a dark ground, and what stands for them there. The others are seen on
/// both.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> dark_colours = {{
    {colour::blue, "#56B4E9"},
    {colour::vermillion, "#F28E4B"},
    {colour::green, "#2FC79B"},
    {colour::grey, "#9BA3AB"},
    {colour::ink, "#E3E6E8"},
    {colour::frame, "#B9C0C6"},
    {colour::faint, "#333A41"},
    {colour::ground, "#14181C"},
    {"black", "#E3E6E8"},
    {"#000000", "#E3E6E8"},
    {"#D9D9D9", "#4A525A"},
}};

/// "rgb( 51,  51,  51)" at the start of `text` as "#333333", and its length; empty where it is none.
std::pair<std::string, std::size_t> hexadecimal(std::string_view text) {
  std::size_t at = 4;  // behind "rgb("
  std::string colour = "#";
  for (int part = 0; part < 3; ++part) {
    while (at < text.size() && text[at] == ' ') ++at;
    int value = -1;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > 255) return {};
    colour += fmt::format("{:02x}", value);
    at = static_cast<std::size_t>(end - text.data()) + 1;  // behind the comma or the bracket
  }
  return {colour, at};
}

}  // namespace

const RunStyle& run_style(std::size_t run) {
  ASSERT(run < max_runs, "no style for run number {}", run);
  return run_styles[run];
}

const LayerStyle& layer_style(std::size_t layer) {
  ASSERT(layer < max_runs, "no style for layer number {}", layer);
  return layer_styles[layer];
}

std::string dark_rules() {
  std::string rules;
  for (const auto& [light, dark] : dark_colours) {
    for (const char* property : {"fill", "stroke", "color"}) {
      // gnuplot writes its own colours as it was given them, and others in lower case
      rules += fmt::format("svg [{0}=\"{1}\" i] {{ {0}: {2}; }}\n", property, ascii_lower(light), dark);
    }
  }
  return rules;
}

std::string with_one_notation(std::string_view svg) {
  std::string text;
  for (std::size_t at = 0; at < svg.size();) {
    if (svg.substr(at, 4) == "rgb(") {
      if (const auto [colour, length] = hexadecimal(svg.substr(at)); !colour.empty()) {
        text += colour;
        at += length;
        continue;
      }
    }
    text += svg[at++];
  }
  return text;
}

std::string with_schemes(std::string_view svg) {
  std::string text(svg);
  const auto start = text.find("<svg"), end = text.find('>', start == std::string::npos ? 0 : start);
  ASSERT(start != std::string::npos && end != std::string::npos, "gnuplot's SVG has no <svg> element");
  text.insert(end + 1,
              fmt::format("\n<style>@media screen and (prefers-color-scheme: dark) {{\n{}}}</style>", dark_rules()));
  return text;
}

}  // namespace gainlens::reports
