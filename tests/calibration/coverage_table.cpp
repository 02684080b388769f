#include "calibration/coverage.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <tuple>

namespace gainlens::testing {

std::vector<Coverage> coverage_table(std::int64_t simulations) {
  std::vector<Coverage> table;
  std::uint64_t seed = 3000;
  const auto add = [&](const std::vector<Coverage>& rows) { table.insert(table.end(), rows.begin(), rows.end()); };
  for (const double neighbours : {0.0, neighbour_correlation}) {
    for (const std::size_t chunks : chunk_counts) {
      add(cover_means(chunks, neighbours, simulations, ++seed));
      add(cover_changes(chunks, neighbours, simulations, ++seed));
      for (const double noise : {0.1, 0.5, 1.0, 2.0})
        add(cover_correlations(chunks, false, noise, neighbours, simulations, ++seed));
      add(cover_correlations(chunks, true, 0.5, neighbours, simulations, ++seed));
    }
  }
  for (const double neighbours : alike_correlations) {
    for (const std::size_t chunks : alike_counts) add(cover_alike_chunks(chunks, neighbours, simulations, ++seed));
  }
  for (const double neighbours : {0.0, layer_correlation}) {
    for (const double sizes : layer_sizes) {
      for (const std::size_t layers : layer_counts) add(cover_layers(layers, sizes, neighbours, simulations, ++seed));
    }
  }
  for (const double sigma : {0.0, 0.5, 1.0, 1.5}) add(cover_rulings(30, sigma, 10 * simulations, ++seed));
  for (const std::size_t draws : {5u, 20u, 39u, 99u}) {
    for (const double hits : {0.0, 0.25, 0.1}) add(cover_random_heads(draws, hits, 2 * simulations, ++seed));
  }
  return table;
}

std::string coverage_csv(const std::vector<Coverage>& rows) {
  std::string text = "method,number,noise,units,neighbour_correlation,nominal,stated,covered\n";
  for (const Coverage& row : rows) {
    text += fmt::format("\"{}\",\"{}\",{},{},{},{},{:.4f},{}\n", row.method, row.number, row.noise, row.units,
                        row.neighbours, row.nominal, row.stated,
                        std::isfinite(row.covered) ? fmt::format("{:.4f}", row.covered) : "");
  }
  return text;
}

std::string coverage_markdown(const std::vector<Coverage>& rows) {
  const auto cell = [](const Coverage& row) {
    if (!std::isfinite(row.covered)) return std::string("–");
    return fmt::format("{:.1f}{}", 100 * row.covered,
                       row.stated < 1 ? fmt::format(" ({:.0f}% stated)", 100 * row.stated) : "");
  };
  const auto line = [&](const std::vector<double>& correlations, const std::vector<std::size_t>& units,
                        const Coverage& of) {
    std::string text =
        fmt::format("| {} | {} | {} |", of.method, of.number, of.noise > 0 ? fmt::format("{:g}", of.noise) : "");
    for (const double neighbours : correlations) {
      for (const std::size_t count : units) {
        for (const Coverage& row : rows) {
          if (row.units != count || row.neighbours != neighbours) continue;
          if (std::tie(row.method, row.number, row.noise) == std::tie(of.method, of.number, of.noise))
            text += fmt::format(" {} |", cell(row));
        }
      }
    }
    return text + "\n";
  };
  const auto holds = [](const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  };
  std::string chunks, alike, layers;
  for (const Coverage& row : rows) {  // the first row of each method names it
    if (row.neighbours != 0) continue;
    if (holds(row.method, "layers")) {
      if (row.units == layer_counts.front()) layers += line({0.0, layer_correlation}, layer_counts, row);
    } else if (holds(row.method, "self-normalised") || holds(row.method, "inflated") ||
               holds(row.method, "as independent")) {
      if (row.units == alike_counts.front()) alike += line(alike_correlations, alike_counts, row);
    } else if (row.units == chunk_counts.front()) {
      chunks += line({0.0, neighbour_correlation}, chunk_counts, row);
    }
  }
  return chunks + "\n" + alike + "\n" + layers + "\n" + claims_markdown(rows);
}

}  // namespace gainlens::testing
