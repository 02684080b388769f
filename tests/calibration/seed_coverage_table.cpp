#include "calibration/seed_coverage.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace gainlens::testing {
namespace {

constexpr std::size_t seed_counts[] = {1, 2, 3, 4, 5, 10, 20};
constexpr double small_effect = 0.1, large_effect = 0.3;  // 5% and 15% of the hit rate

std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}

/// Rejections and coverage of a cell; the coverage in brackets if no level is stated.
std::string cell_text(const SeedCoverage& row) {
  std::string rejected = row.tested == 0 ? "–" : percent(row.rejected);
  if (row.question == "levels" && row.tested > 0)
    rejected += fmt::format(" · {:.2f} · {:.2f}", 100 * row.rejected_at_1, 100 * row.rejected_at_0_1);
  if (!std::isfinite(row.covered)) return rejected;
  return rejected + (row.stated ? " / " + percent(row.covered) : " / (" + percent(row.covered) + ")");
}

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

/// The log ratio of a gain behaves as its difference: the tables leave it to the CSV file.
bool left_out(const SeedCoverage& row) {
  return row.question == "gain" && row.method.ends_with("log ratio");
}

auto line_of(const SeedCoverage& row) {
  return std::tie(row.question, row.method, row.runs, row.users, row.effect);
}

}  // namespace

std::vector<SeedCoverage> seed_coverage_table(std::int64_t most_simulations, std::string_view only) {
  std::vector<SeedCoverage> table;
  std::uint64_t seed = 7000;
  // Each cell has a seed of its own, which does not depend on the cells that are left out.
  const auto add = [&](std::string_view question, const auto& cover, const auto&... what) {
    ++seed;
    if (!only.empty() && question != only) return;
    const std::vector<SeedCoverage> rows = cover(what..., seed);
    table.insert(table.end(), rows.begin(), rows.end());
  };
  const auto& cases = recommender_cases();
  const RecommenderCase &equal = cases[0], &own = cases[1], &strong = cases[2], &items = cases[3];
  for (const std::size_t seeds : seed_counts) {
    for (const LevelCase& what : level_cases())
      add("levels", cover_levels, what, seeds, most_simulations * (seeds < 10 ? 40 : 20));
  }
  for (const std::size_t seeds : {2u, 4u}) {
    for (const RecommenderCase& what : {equal, own, strong, items})
      add("gain", cover_gains, what, seeds, 2000u, 0.0, most_simulations);
  }
  for (const std::size_t seeds : {3u, 5u, 10u, 20u}) {
    const std::int64_t simulations = seeds < 10 ? most_simulations : most_simulations / 2;
    const auto gains = [&](const RecommenderCase& what, std::size_t users, double effect, std::int64_t count) {
      add("gain", cover_gains, what, seeds, users, effect, count);
    };
    for (const RecommenderCase& what : {equal, own, strong, items}) gains(what, 2000, 0, simulations);
    for (const double effect : {small_effect, large_effect}) gains(own, 2000, effect, simulations);
    for (const RecommenderCase& what : {equal, own}) gains(what, 500, 0, simulations);
    for (const RecommenderCase& what : {own, strong}) gains(what, 20'000, 0, simulations / 2);
    gains(own, 20'000, small_effect, simulations / 2);
    const auto interaction = [&](const RecommenderCase& what, std::size_t users, double effect) {
      add("rare minus popular", cover_interaction, what, seeds, users, effect, simulations);
    };
    for (const RecommenderCase& what : {equal, own, strong}) interaction(what, 2000, 0);
    interaction(own, 2000, large_effect);
    interaction(own, 500, 0);
    const auto data_sets = [&](const RecommenderCase& what, double effect, double spread) {
      add("data sets", cover_data_sets, what, seeds, 1000u, effect, spread, simulations);
    };
    for (const RecommenderCase& what : {equal, own, strong}) data_sets(what, 0, 0);
    data_sets(own, 0, 0.2);
    data_sets(own, small_effect, 0.2);
    data_sets(own, small_effect, 0);
    for (const double effect : {0.0, small_effect, large_effect})
      add("slope", cover_slopes, items, seeds, 2000u, effect, simulations);
  }
  seed = 9000;  // apart, so that the rows above do not change with those below
  for (const std::size_t seeds : {3u, 4u, 5u, 10u, 20u}) {
    for (const LevelCase& what : other_seed_cases())
      add("levels", cover_levels, what, seeds, most_simulations * (seeds < 10 ? 40 : 20));
  }
  for (const std::size_t seeds : {3u, 5u, 20u}) {
    for (const ItemGains gains : {ItemGains::normal, ItemGains::uniform, ItemGains::two_values}) {
      for (const double effective : {5.0, 16.0, 29.0, 46.0, 75.0})
        add("few items", cover_items, effective, gains, seeds, 4 * most_simulations);
    }
  }
  return table;
}

std::string seed_coverage_csv(const std::vector<SeedCoverage>& rows) {
  std::string text =
      "question,method,runs,seeds,users,effect,stated,simulations,tested,rejected,covered,rejected_at_1,rejected_at_0."
      "1\n";
  for (const SeedCoverage& row : rows) {
    text += fmt::format(
        "\"{}\",\"{}\",\"{}\",{},{},{},{},{},{:.4f},{:.4f},{},{:.4f},{:.4f}\n", row.question, row.method, row.runs,
        row.seeds, row.users, row.effect, row.stated ? "yes" : "no", row.simulations, row.tested, row.rejected,
        std::isfinite(row.covered) ? fmt::format("{:.4f}", row.covered) : "", row.rejected_at_1, row.rejected_at_0_1);
  }
  return text;
}

std::string seed_coverage_markdown(const std::vector<SeedCoverage>& rows) {
  std::string text;
  for (const char* question : {"levels", "few items", "gain", "rare minus popular", "data sets", "slope"}) {
    std::vector<std::size_t> columns;
    for (const std::size_t seeds : seed_counts) {
      if (std::any_of(rows.begin(), rows.end(),
                      [&](const SeedCoverage& row) { return row.question == question && row.seeds == seeds; }))
        columns.push_back(seeds);
    }
    text += fmt::format("\n### {}\n| runs | users | effect | method | {} |\n", question, fmt::join(columns, " | "));
    text += fmt::format("| --- | --- | --- | --- |{}\n", repeated(" --- |", columns.size()));
    std::vector<const SeedCoverage*> lines;  // the first row of each line
    for (const SeedCoverage& row : rows) {
      bool known = row.question != question || left_out(row);
      for (const SeedCoverage* line : lines) known = known || line_of(*line) == line_of(row);
      if (!known) lines.push_back(&row);
    }
    for (const SeedCoverage* line : lines) {
      text += fmt::format("| {} | {} | {} | {} |", line->runs, line->users, line->effect, line->method);
      for (const std::size_t seeds : columns) {
        std::string cell = "";
        for (const SeedCoverage& row : rows) {
          if (row.seeds == seeds && line_of(row) == line_of(*line)) cell = cell_text(row);
        }
        text += fmt::format(" {} |", cell);
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace gainlens::testing
