// Calibration of the inference on simulated heads: how often each test rejects without an effect and with an effect.
//
//   gainlens_calibration [OUT = .] [SIMULATIONS = 1000]
//
// writes OUT/calibration.csv, .json, .svg, .pdf and .png, and calibration-slots.csv, calibration-theory.csv and
// calibration-drift.csv. Every run gives the same numbers. 1,000 simulations take about a minute and a half.

#include "calibration/made_up_runs.h"
#include "calibration/simulation.h"
#include "calibration/theory_simulation.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "core/quantity.h"
#include "reports/figures/figure.h"
#include "reports/figures/figure_parts.h"
#include "reports/figures/plot_script.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::testing {
namespace {

using reports::Rows;

constexpr std::int64_t permutations = 999;  // more permutations take longer and do not change the rates
constexpr double clustered = 0.8;           // share of the variance that the clusters have if the effect varies
constexpr std::size_t chunks = 5;           // the default number of chunks of a sweep

/// 28 layers of 16 heads in 4 KV groups. The fraction `share` of the variance is shared: three fifths of it within
/// layers and two fifths within KV groups.
ClusteredModel model_of(double share, double effect) {
  return {.group_size = 4, .layer_share = 0.6 * share, .group_share = 0.4 * share, .effect = effect};
}

Rows rejections(const std::vector<double>& places, std::int64_t simulations, bool effects) {
  Rows rows;
  for (const double place : places) {
    const ClusteredModel model = effects ? model_of(clustered, place) : model_of(place, 0);
    const auto seed = static_cast<std::uint64_t>(1000 + rows.size() + (effects ? 100 : 0));
    const RejectionRates rates = rejection_rates(model, simulations, permutations, seed);
    rows.push_back({place, rates.naive_pooled, rates.naive_within, rates.block_permutation, rates.circular_shift});
    fmt::print(
        "{} {:.2f}: naive pooled {:.3f}, naive within layers {:.3f}, block permutation {:.3f}, circular shift {:.3f}\n",
        effects ? "effect" : "shared variance", place, rates.naive_pooled, rates.naive_within, rates.block_permutation,
        rates.circular_shift);
  }
  return rows;
}

/// 20 layers of 8 heads in 4 KV groups of 2. The slots have the same effect in x and y, with the fraction `slots` of
/// the variance. Clusters share four fifths of the rest. Rows: slots, effect, rejections of the naive test within
/// layers; then for each permutation test its rejections and the rejections with the right sign.
Rows slot_rejections(std::int64_t simulations) {
  Rows rows;
  for (const auto& [slots, effect] :
       {std::pair{0.3, 0.0}, {0.6, 0.0}, {0.6, -0.6}, {0.6, -0.3}, {0.6, 0.3}, {0.6, 0.6}}) {
    const double shared = clustered * (1 - slots);
    const ClusteredModel model{.layers = 20,
                               .heads = 8,
                               .group_size = 2,
                               .layer_share = 0.6 * shared,
                               .group_share = 0.4 * shared,
                               .slot_share = slots,
                               .effect = effect};
    const RejectionRates rates = rejection_rates(model, simulations, permutations, 1200 + rows.size());
    rows.push_back({slots, effect, rates.naive_within, rates.block_permutation, rates.block_sign, rates.circular_shift,
                    rates.shift_sign});
    fmt::print(
        "slots {:.1f}, effect {:+.1f}: naive within layers {:.3f}, block permutation {:.3f} (right sign {:.3f}), "
        "circular shift {:.3f} "
        "({:.3f})\n",
        slots, effect, rates.naive_within, rates.block_permutation, rates.block_sign, rates.circular_shift,
        rates.shift_sign);
  }
  return rows;
}

/// 32 layers of 4 heads on one KV head, without any relation but a drift with depth in both x and y. Rows: drift,
/// whether it is bent, rejections of the circular shift, and of the shift with a straight line taken off.
Rows drift_rejections(std::int64_t simulations) {
  Rows rows;
  for (const bool bent : {false, true}) {
    for (const double drift : {0.0, 1.4, 2.9, 4.3, 5.7}) {
      const ClusteredModel model{.layers = 32,
                                 .heads = 4,
                                 .group_size = 4,
                                 .layer_share = clustered,
                                 .autocorrelation = 0,
                                 .drift = drift,
                                 .bent = bent};
      const RejectionRates rates = rejection_rates(model, simulations, permutations, 1300 + rows.size());
      rows.push_back({drift, bent ? 1.0 : 0.0, rates.circular_shift, rates.shift_without_line});
      fmt::print("{} drift of {:.1f}: circular shift {:.3f}, without a line {:.3f}\n", bent ? "bent" : "straight",
                 drift, rates.circular_shift, rates.shift_without_line);
    }
  }
  return rows;
}

/// Rulings on prediction 1 of 25 made-up unrelated runs each. Rows: KV heads, drift, number of each ruling in the order
/// of Ruling.
Rows made_up_rulings() {
  Rows rows;
  for (const std::int64_t kv_heads : {1, 4}) {
    for (const double drift : {0.0, 5.7}) {
      auto counts = rule_on_made_up_runs({.kv_heads = kv_heads, .drift = drift});
      rows.push_back({static_cast<double>(kv_heads), drift});
      std::string text;
      for (const auto ruling : {analyses::Ruling::supported, analyses::Ruling::contradicted,
                                analyses::Ruling::not_shown, analyses::Ruling::not_decidable}) {
        rows.back().push_back(static_cast<double>(counts[ruling]));
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", counts[ruling], in_words(ruling));
      }
      fmt::print("made-up runs with {} KV heads, drift {:.1f}: {}\n", kv_heads, drift, text);
    }
  }
  return rows;
}

/// Decisions about the gain theory. Rows: chunks, correlation of neighbours, level and power of "within the margin",
/// level and power of "beyond the margin".
Rows theory_rulings(std::int64_t simulations) {
  Rows rows;
  for (const double correlation : {0.0, 0.3}) {
    for (const std::size_t number : {std::size_t{3}, std::size_t{5}, std::size_t{10}, std::size_t{20}}) {
      const auto rates = [&](double margins, bool every_length) {
        return theory_rates({number, correlation, margins * simulated_margin, every_length}, simulations,
                            3000 + rows.size());
      };
      // The hardest cases. For "within": one length at the margin, the others right. For "beyond": every length at the
      // margin.
      rows.push_back({static_cast<double>(number), correlation, rates(1, false).within, rates(0, false).within,
                      rates(1, true).beyond, rates(3, false).beyond});
      fmt::print(
          "theory, {} chunks, correlation {:.1f}: within: level {:.3f}, power {:.3f}; beyond: level {:.3f}, power "
          "{:.3f}\n",
          number, correlation, rows.back()[2], rows.back()[3], rows.back()[4], rows.back()[5]);
    }
  }
  return rows;
}

/// Rows: change in units of the margin, then for each deviation of a chunk's difference the share of tests that find
/// equivalence.
Rows equivalences(const std::vector<double>& deviations, std::int64_t simulations) {
  Rows rows;
  for (const double change : {0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5}) {
    rows.push_back({change});
    for (const double deviation : deviations) {
      rows.back().push_back(
          equivalence_rates(change, deviation, chunks, simulations, 2000 + rows.size() * 10 + rows.back().size())
              .equivalent);
    }
    fmt::print("change of {:.2f} margins: called equivalent {:.3f}\n", change,
               fmt::join(rows.back().begin() + 1, rows.back().end(), ", "));
  }
  return rows;
}

std::string csv(const std::string& header, const Rows& rows) {
  std::string text = header + "\n";
  for (const auto& row : rows) text += fmt::format("{}\n", fmt::join(row, ","));
  return text;
}

std::string series(std::string_view block, int column, int marker, int dash, std::string_view colour,
                   std::string_view title) {
  return fmt::format(
      "${} using 1:{} with linespoints pointtype {} pointsize 0.55 linewidth 1.3 dashtype {} linecolor rgb '{}' title "
      "'{}'",
      block, column, marker, dash, colour, title);
}

std::string tests_of(std::string_view block) {
  namespace colour = reports::colour;
  return series(block, 2, 7, 1, colour::vermillion, "naive, pooled") + ", " +
         series(block, 3, 6, 2, colour::orange, "naive, within") + ", " +
         series(block, 4, 5, 1, colour::blue, "KV groups permuted") + ", " +
         series(block, 5, 4, 3, colour::green, "layers shifted");
}

reports::Figure figure_of(const Rows& nothing, const Rows& something, const Rows& equivalent,
                          const std::vector<double>& deviations) {
  namespace colour = reports::colour;
  reports::PanelGrid grid{reports::page_width, 2.35};
  grid.columns = 3;
  reports::PanelFigure script(grid);
  script.data("nothing", nothing).data("something", something).data("equivalent", equivalent);
  const std::string level =
      fmt::format("0.05 with lines linewidth 1 dashtype 3 linecolor rgb '{}' notitle", colour::grey);
  script.line("set yrange [0:1.02]").line("set ytics 0.2").line("set ylabel 'share of simulations' offset 1.6,0");
  script.panel(0, "rejects, and nothing is there").line("set xrange [-0.03:0.93]").line("set xtics 0.2");
  script.line("set key top left Left reverse").line("set xlabel 'variance that clusters share' offset 0,0.5");
  script.line("plot {}, {}", level, tests_of("nothing"));
  script.panel(1, "rejects a real effect")
      .line("set xrange [-0.02:0.52]")
      .line("set xtics 0.1")
      .line("unset ylabel")
      .line("set key off");
  script.line("set xlabel 'effect within layers' offset 0,0.5").line("plot {}, {}", level, tests_of("something"));
  script.panel(2, "called equivalent to flat")
      .line("set xrange [-0.05:1.55]")
      .line("set xtics 0.5")
      .line("set key on top right title 'spread'");
  script.line("set xlabel 'true change (margins)' offset 0,0.5");
  script.line("set arrow 1 from 1,0 to 1,1.02 nohead linewidth 0.8 linecolor rgb '{}'", colour::grey);
  const int markers[] = {7, 5, 9}, dashes[] = {1, 2, 3};
  const std::string_view colours[] = {colour::blue, colour::orange, colour::purple};
  std::string plot = level;
  for (std::size_t i = 0; i < deviations.size(); ++i) {
    plot += ", " + series("equivalent", static_cast<int>(i) + 2, markers[i], dashes[i], colours[i],
                          fmt::format("{:g}", deviations[i]));
  }
  script.line("plot {}", plot);
  return script.figure("calibration");
}

void calibrate(const std::filesystem::path& out, std::int64_t simulations) {
  const std::vector<double> deviations = {0.3, 0.6, 1.2};
  const Rows nothing = rejections({0, 0.2, 0.4, 0.6, 0.8, 0.9}, simulations, false);
  const Rows something = rejections({0, 0.1, 0.2, 0.3, 0.4, 0.5}, simulations, true);
  const Rows equivalent = equivalences(deviations, simulations);
  const Rows slots = slot_rejections(simulations), theory = theory_rulings(10 * simulations);
  const Rows drift = drift_rejections(simulations), made_up = made_up_rulings();
  const std::string tests = ",naive_pooled,naive_within_layers,block_permutation,circular_shift";
  std::filesystem::create_directories(out);
  write_file_atomically(out / "calibration.csv",
                        csv("shared_variance" + tests, nothing) + "\n" + csv("effect" + tests, something) + "\n" +
                            csv("change_in_margins,deviation_0.3,deviation_0.6,deviation_1.2", equivalent));
  write_file_atomically(
      out / "calibration-slots.csv",
      csv("slot_share,effect,naive_within_layers,block_permutation,block_right_sign,circular_shift,shift_right_sign",
          slots));
  write_file_atomically(out / "calibration-theory.csv",
                        csv("chunks,correlation,within_at_one_length_at_margin,within_without_error,beyond_at_all_"
                            "lengths_at_margin,beyond_at_3_margins",
                            theory));
  write_file_atomically(out / "calibration-drift.csv",
                        csv("drift,bent,circular_shift,circular_shift_without_a_line", drift) + "\n" +
                            csv("kv_heads,drift,supported,contradicted,not_shown,not_decidable", made_up));
  const OrderedJson json = {{"simulations", simulations},
                            {"layers", 28},
                            {"heads", 16},
                            {"kv_heads", 4},
                            {"autocorrelation", 0.7},
                            {"permutations", permutations},
                            {"level", 0.05},
                            {"chunks", chunks},
                            {"no_effect", nothing},
                            {"effect_at_shared_0.8", something},
                            {"equivalent", equivalent},
                            {"slots", slots},
                            {"theory", theory},
                            {"drift", drift},
                            {"made_up_runs", made_up}};
  write_file_atomically(out / "calibration.json", json.dump(1) + "\n");
  reports::render(figure_of(nothing, something, equivalent, deviations), out);
}

}  // namespace
}  // namespace gainlens::testing

int main(int argc, char** argv) {
  try {
    gainlens::testing::calibrate(argc > 1 ? argv[1] : ".",
                                 argc > 2 ? gainlens::parse_count(argv[2], "simulations") : 1000);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gainlens_calibration: error: {}\n", error.what());
    return 1;
  }
  return 0;
}
