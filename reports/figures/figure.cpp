#include "reports/figures/figure.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/json.h"
#include "core/knobs.h"
#include "core/plain_text.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/figures/program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace gainlens::reports {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> named_colours = {{
    {"blue", colour::blue},
    {"vermillion", colour::vermillion},
    {"green", colour::green},
    {"orange", colour::orange},
    {"purple", colour::purple},
    {"grey", colour::grey},
    {"ink", colour::ink},
    {"frame", colour::frame},
    {"faint", colour::faint},
}};

bool is_hexadecimal(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// @throws InvalidArgument  no "#rrggbb"
std::string colour_of(const Json& value, const std::string& what) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const bool valid = text.size() == 7 && text[0] == '#' && std::all_of(text.begin() + 1, text.end(), is_hexadecimal);
  CHECK(valid, "{} is {}; must be a colour such as \"#0072B2\"", what, printable(value.dump(), 60));
  return text;
}

/// @throws InvalidArgument  no list with at least `least` entries
const Json& list_of(const Json& value, std::size_t least, const std::string& what) {
  CHECK(value.is_array() && value.size() >= least, "{} is {}; must be a list of at least {}", what,
        printable(value.dump(), 60), least == 1 ? "one name" : fmt::format("{} colours", least));
  return value;
}

std::vector<std::string> names_of(const Json& value, const std::string& what) {
  std::vector<std::string> names;
  for (const Json& name : list_of(value, 1, what)) {
    CHECK(name.is_string(), "{} holds {}; must hold names", what, printable(name.dump(), 60));
    names.push_back(name.get<std::string>());
    CHECK(std::count(names.begin(), names.end(), names.back()) == 1, "{} names {} twice", what,
          printable(names.back(), 60));
  }
  return names;
}

/// A font's name goes into a gnuplot string and an XML attribute: it has to be plain.
void set_font(Style& style, const Json& value, const std::string& what) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' || c == '-';
  };
  CHECK(!text.empty() && text.size() <= 60 && std::all_of(text.begin(), text.end(), allowed),
        "{} is {}; must be the name of a font: letters, digits, spaces and hyphens", what, printable(value.dump(), 60));
  style.font = text;
}

void set_colours(Style& style, const Json& value, const std::string& what) {
  CHECK(value.is_object(), "{} is {}; must be an object of colours", what, printable(value.dump(), 60));
  std::vector<std::string> known;
  known.reserve(named_colours.size());
  for (const auto& [name, colour] : named_colours) known.emplace_back(name);
  for (const auto& [name, colour] : value.items()) {
    CHECK(std::count(known.begin(), known.end(), name) == 1, "{}: '{}' is not a known colour; known are {}{}", what,
          printable(name, 60), fmt::join(known, ", "), did_you_mean(name, known));
    style.colours[name] = colour_of(colour, fmt::format("{}: '{}'", what, name));
  }
}

void set_formats(Style& style, const Json& value, const std::string& what) {
  style.formats = names_of(value, what);
  const std::vector<std::string> known(std::begin(figure_formats), std::end(figure_formats));
  for (const std::string& format : style.formats)
    CHECK(std::count(known.begin(), known.end(), format) == 1, "{}: '{}' is not a format; known are {}", what,
          printable(format, 60), fmt::join(known, ", "));
}

std::vector<Knob<Style>> knobs() {
  const auto unread = [](const Style&) { return Json(); };
  return {
      {"font", "", unread, set_font},
      real_knob<Style>("font_size", "", [](Style& style) -> double& { return style.font_size; }, {5, 12}),
      real_knob<Style>("column_width", "", [](Style& style) -> double& { return style.column_width; }, {2, 20}),
      real_knob<Style>("page_width", "", [](Style& style) -> double& { return style.page_width; }, {4, 20}),
      {"colours", "", unread, set_colours},
      {"map_colours", "", unread,
       [](Style& style, const Json& value, const std::string& what) {
         style.map_colours.clear();
         for (const Json& colour : list_of(value, 2, what)) style.map_colours.push_back(colour_of(colour, what));
       }},
      {"formats", "", unread, set_formats},
      {"figures", "", unread,
       [](Style& style, const Json& value, const std::string& what) { style.figures = names_of(value, what); }},
  };
}

constexpr const char* body_file = "body.gp";
constexpr double png_scale = 3;  // 288 pixels to the inch
constexpr double pixels_to_the_point = 96.0 / 72;

std::string terminal(const Figure& figure, const Style& style) {
  std::string identifier = figure.name;  // gnuplot allows letters, digits and _ in the ids of an SVG
  std::replace(identifier.begin(), identifier.end(), '-', '_');
  return fmt::format(
      "set encoding utf8\n"
      "set terminal svg name '{}' size {},{} fixed enhanced font '{},{:.4g}'\n"
      "load '{}'\nset output\n",  // the last ends the file on standard output
      identifier, pixels(figure.width), pixels(figure.height), style.font, pixels_to_the_point * style.font_size,
      body_file);
}

/// The SVG with its texts' spaces as they are written: rsvg-convert drops those at the ends of differently set parts.
/// Leading ones, which gnuplot pads numbers with, go.
std::string with_kept_spaces(std::string_view svg) {
  constexpr std::string_view open = "<text><tspan";
  std::string text;
  for (std::size_t at = 0; at < svg.size();) {
    const std::size_t start = svg.find(open, at),
                      begin = svg.find('>', std::min(start, svg.size() - open.size()) + open.size());
    if (start == std::string_view::npos || begin == std::string_view::npos) return text.append(svg.substr(at));
    text.append(svg.substr(at, start - at))
        .append("<text xml:space=\"preserve\"><tspan")
        .append(svg.substr(start + open.size(), begin + 1 - start - open.size()));
    at = begin + 1;
    while (at < svg.size() && svg[at] == ' ') ++at;
  }
  return text;
}

/// Whether what a program drew has its end. A program may not notice that it could not write all of it.
bool has_its_end(std::string_view format, std::string_view bytes) {
  if (format == "svg") return bytes.find("</svg>") != bytes.npos;
  const std::string_view last = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 16));
  return last.find(format == "pdf" ? "%%EOF" : "IEND") != last.npos;
}

[[noreturn]] void refuse_part(std::string_view program, std::string_view file, std::size_t bytes) {
  throw_run_failed("{}: wrote {} bytes of {} and not its end; a full disk or a limit may have stopped it", program,
                   bytes, file);
}

}  // namespace

Style read_style(const std::filesystem::path& file) {
  Style style;
  const std::vector<Knob<Style>> known = knobs();
  set_knobs<Style>(known, style, read_json_file(file, 1u << 20), "--style " + printable(file.string()));
  return style;
}

Figure styled(const Figure& figure, const Style& style) {
  Figure result = figure;
  const double factor = figure.width < page_width ? style.column_width / column_width : style.page_width / page_width;
  result.width *= factor;
  result.height *= factor;
  if (style.map_colours.empty()) return result;
  const std::vector<std::string_view> colours(style.map_colours.begin(), style.map_colours.end());
  for (std::size_t steps = 0; steps <= max_layer_colours; ++steps) {
    const std::string usual = palette_command(viridis_colours(), steps), chosen = palette_command(colours, steps);
    for (auto at = result.script.find(usual); at != std::string::npos;
         at = result.script.find(usual, at + chosen.size()))
      result.script.replace(at, usual.size(), chosen);
  }
  return result;
}

std::string with_colours(std::string_view svg, const Style& style) {
  std::string text(svg);
  for (const auto& [name, usual] : named_colours) {
    const auto chosen = style.colours.find(std::string(name));
    if (chosen == style.colours.end()) continue;
    const std::string lower = ascii_lower(usual);
    // As attribute values alone: a name of a run may hold the same characters. The mark keeps a colour that was set
    // from being replaced again by another one.
    for (const std::string& colour : {std::string(usual), lower}) {
      for (const char quote : {'"', '\''}) {
        const std::string from = fmt::format("{0}{1}{0}", quote, colour);
        const std::string to = fmt::format("{0}\x01{1}{0}", quote, chosen->second.substr(1));
        for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
          text.replace(at, from.size(), to);
      }
    }
  }
  std::replace(text.begin(), text.end(), '\x01', '#');
  return text;
}

int pixels(double inches) {
  return static_cast<int>(std::lround(96 * inches));
}

std::vector<std::string> render(const Figure& usual, const std::filesystem::path& folder, const Style& style) {
  const Figure figure = styled(usual, style);
  const std::string main_file = figure.name + ".gp";
  write_file_atomically(folder / body_file, figure.script);
  write_file_atomically(folder / main_file, terminal(figure, style));
  // --default-settings: what a user keeps in ~/.gnuplot must not change our figures
  const std::string drawn = run_program({"gnuplot", "--default-settings", main_file}, folder, {{"LC_ALL", "C.UTF-8"}},
                                        "gnuplot (Debian: gnuplot-nox)");
  if (drawn.empty()) throw_run_failed("gnuplot: drew nothing for {}", figure.name);
  if (!has_its_end("svg", drawn)) refuse_part("gnuplot", figure.name, drawn.size());

  const std::string svg = figure.name + ".svg";
  write_file_atomically(folder / svg, with_colours(with_one_notation(with_kept_spaces(drawn)), style));
  const auto convert = [&](const std::string& format, std::vector<std::string> options) {
    std::vector<std::string> words = {"rsvg-convert", "--format=" + format};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(svg);
    const std::string converted = run_program(words, folder, {{"LC_ALL", "C.UTF-8"}, {"SOURCE_DATE_EPOCH", "0"}},
                                              "rsvg-convert (Debian: librsvg2-bin)");
    if (converted.empty()) throw_run_failed("rsvg-convert: made no {} of {}", format, svg);
    if (!has_its_end(format, converted)) refuse_part("rsvg-convert", figure.name + "." + format, converted.size());
    write_file_atomically(folder / (figure.name + "." + format), converted);
  };
  const auto wanted = [&](std::string_view format) {
    return std::find(style.formats.begin(), style.formats.end(), format) != style.formats.end();
  };
  if (wanted("pdf")) convert("pdf", {});
  if (wanted("png")) convert("png", {fmt::format("--zoom={}", png_scale), "--background-color=white"});
  write_file_atomically(folder / svg, with_schemes(read_text_file(folder / svg)));
  std::filesystem::remove(folder / main_file);
  std::filesystem::remove(folder / body_file);

  std::vector<std::string> files;
  for (const std::string_view format : figure_formats) {
    if (wanted(format)) files.push_back(fmt::format("{}.{}", figure.name, format));
  }
  return files;
}

}  // namespace gainlens::reports
