#include "reports/figure.h"

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "reports/program.h"

#include <algorithm>

namespace gainlens::reports {
namespace {

constexpr const char* body_file = "body.gp";
constexpr int png_scale = 2;

std::string terminals(const Figure& figure) {
  std::string identifier = figure.name;  // gnuplot allows letters, digits and _ in the ids of an SVG
  std::replace(identifier.begin(), identifier.end(), '-', '_');
  return fmt::format(
      "set encoding utf8\n"
      "set terminal svg name '{8}' size {1},{2} fixed enhanced font 'DejaVu Sans,11' background rgb 'white'\n"
      "set output '{0}.svg'\nload '{3}'\nset output\n"
      "set terminal pngcairo size {4},{5} enhanced font 'DejaVu Sans,11' fontscale {6} linewidth {7} pointscale {7} background rgb "
      "'white'\n"
      "set output '{0}.png'\nload '{3}'\nset output\n",
      figure.name, figure.width, figure.height, body_file, png_scale * figure.width, png_scale * figure.height, 0.75 * png_scale, png_scale,
      identifier);
}

}  // namespace

std::vector<std::string> render(const Figure& figure, const std::filesystem::path& folder) {
  const std::string main_file = figure.name + ".gp";
  write_file_atomically(folder / body_file, figure.script);
  write_file_atomically(folder / main_file, terminals(figure));
  // --default-settings: what a user keeps in ~/.gnuplot must not change our figures
  run_program({"gnuplot", "--default-settings", main_file}, folder, {{"LC_ALL", "C.UTF-8"}}, "gnuplot (Debian: gnuplot-nox)");

  const std::string svg = figure.name + ".svg", pdf = figure.name + ".pdf";
  run_program({"rsvg-convert", "--format=pdf", "--output=" + pdf, svg}, folder, {{"LC_ALL", "C.UTF-8"}, {"SOURCE_DATE_EPOCH", "0"}},
              "rsvg-convert (Debian: librsvg2-bin)");
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
