#include "reports/figures/figure.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "reports/figures/palette.h"
#include "reports/figures/program.h"
#include "reports/figures/style.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

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

std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder) {
  return render(figure, folder, Style{});
}

}  // namespace gainlens::reports
