#include "reports/figure.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "reports/palette.h"
#include "reports/program.h"

#include <algorithm>
#include <cmath>

namespace gainlens::reports {
namespace {

constexpr const char* body_file = "body.gp";
constexpr double png_scale = 3;    // 288 pixels to the inch
constexpr double font_size = 9.4;  // pixels: 7 pt and a little

std::string terminal(const Figure& figure) {
  std::string identifier = figure.name;  // gnuplot allows letters, digits and _ in the ids of an SVG
  std::replace(identifier.begin(), identifier.end(), '-', '_');
  return fmt::format(
      "set encoding utf8\n"
      "set terminal svg name '{}' size {},{} fixed enhanced font 'DejaVu Sans,{}'\n"
      "set output '{}.svg'\nload '{}'\nset output\n",
      identifier, pixels(figure.width), pixels(figure.height), font_size, figure.name, body_file);
}

}  // namespace

int pixels(double inches) {
  return static_cast<int>(std::lround(96 * inches));
}

std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder) {
  const std::string main_file = figure.name + ".gp";
  write_file_atomically(folder / body_file, figure.script);
  write_file_atomically(folder / main_file, terminal(figure));
  // --default-settings: what a user keeps in ~/.gnuplot must not change our figures
  run_program({"gnuplot", "--default-settings", main_file}, folder, {{"LC_ALL", "C.UTF-8"}}, "gnuplot (Debian: gnuplot-nox)");

  const std::string svg = figure.name + ".svg", pdf = figure.name + ".pdf", png = figure.name + ".png";
  const auto convert = [&](const std::vector<std::string>& options, const std::string& output) {
    std::vector<std::string> words = {"rsvg-convert", "--output=" + output};
    words.insert(words.end(), options.begin(), options.end());
    words.push_back(svg);
    run_program(words, folder, {{"LC_ALL", "C.UTF-8"}, {"SOURCE_DATE_EPOCH", "0"}}, "rsvg-convert (Debian: librsvg2-bin)");
  };
  convert({"--format=pdf"}, pdf);
  convert({"--format=png", fmt::format("--zoom={}", png_scale), "--background-color=white"}, png);
  write_file_atomically(folder / svg, with_schemes(read_text_file(folder / svg)));
  std::filesystem::remove(folder / main_file);
  std::filesystem::remove(folder / body_file);

  std::vector<std::string> files;
  for (const std::string_view format : figure_formats) {
    files.push_back(fmt::format("{}.{}", figure.name, format));
    if (!std::filesystem::exists(folder / files.back())) throw_run_failed("gnuplot: wrote no {}", files.back());
  }
  return files;
}

}  // namespace gainlens::reports
