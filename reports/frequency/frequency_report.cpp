#include "reports/frequency/frequency_report.h"

#include "core/counted.h"
#include "core/terminal_text.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ends_as, analyses::fixed, analyses::FrequencyBin, analyses::FrequencyCorrelation,
    analyses::FrequencyQuantity, analyses::FrequencyReading, analyses::Show, analyses::verbatim, analyses::whole,
    analyses::with_sign, analyses::words;

/// Below it a p has underflowed.
constexpr double min_p = 1e-300;

std::string naive_p_digits(double p) {
  return p < min_p ? "<1e-300" : shown_p(p);
}

/// The naive p; of several seeds the largest.
Measured naive_p(const FrequencyQuantity& quantity) {
  double most = 0;
  for (const FrequencyCorrelation& seed : quantity.seeds) {
    if (!seed.naive_p) return seed.naive_p;
    most = std::max(most, *seed.naive_p);
  }
  return most;
}

/// What calls use(layer, "K" or "lambda", quantity) for each quantity.
template <typename Use>
void for_each_quantity(const FrequencyReading& reading, Use use) {
  for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
    use(layer, "K", reading.layers[layer].gain);
    use(layer, "lambda", reading.layers[layer].precision);
  }
}

/// The means of the rarest group of items and of the most frequent one.
std::string ends_of(const FrequencyQuantity& quantity, const std::string& against) {
  if (quantity.bins.size() < 2) return {};
  if (!against.empty())
    return fmt::format(" (items of the lowest {} {}, of the highest {})", terminal_line(against),
                       shown(quantity.bins.front().mean), shown(quantity.bins.back().mean));
  return fmt::format(" (rarest group of items {}, most frequent {})", shown(quantity.bins.front().mean),
                     shown(quantity.bins.back().mean));
}

/// What an interval says of a trend, or of a difference to that of a placebo.
std::string in_words(const Maybe<Interval>& interval, const std::string& rises, const std::string& falls,
                     const std::string& neither) {
  if (!interval) return fmt::format("no interval: {}", interval.reason());
  return interval->low > 0 ? rises : interval->high < 0 ? falls : neither;
}

/// What K and lambda are set against.
std::string counted_quantity(const FrequencyReading& reading) {
  return reading.options.against.empty() ? std::string("training count") : terminal_line(reading.options.against);
}

/// Says in how many seeds a trend has the sign of the mean: seeds can differ in it while their mean has a narrow
/// interval, which is over users and items alone.
std::string seed_signs(const FrequencyQuantity& quantity) {
  const auto& interval = quantity.mean.interval;
  if (quantity.seeds.size() < 2 || !interval || (interval->low <= 0 && interval->high >= 0)) return {};
  const auto alike = std::ranges::count_if(quantity.seeds, [&](const FrequencyCorrelation& seed) {
    return seed.rho && (interval->low > 0 ? *seed.rho > 0 : *seed.rho < 0);
  });
  return fmt::format(" in {} of {} seeds", alike, quantity.seeds.size());
}

/// Where items stand that are in no training item: a logarithmic axis has no 0.
constexpr double min_count = 0.5;

/// count, mean, ends of the interval
/// @param counts  whether the items are ordered by training counts
Rows rows_of(const std::vector<FrequencyBin>& bins, bool counts) {
  Rows rows;
  for (const FrequencyBin& bin : bins)
    rows.push_back(barred_point(counts ? std::max(bin.mean_count, min_count) : bin.mean_count, bin.mean, bin.interval));
  return rows;
}

/// A curve of the figure: an arm, or a placebo of one.
struct Curve {
  const FrequencyReading* reading;
  std::optional<std::size_t> placebo;

  std::string label() const {
    return placebo ? fmt::format("placebo {}", reading->placebos[*placebo]) : fmt::format("arm {}", reading->arm);
  }
  const std::vector<FrequencyBin>& bins(const FrequencyQuantity& quantity) const {
    return placebo ? quantity.placebos[*placebo].bins : quantity.bins;
  }
};

std::vector<Curve> curves_of(std::span<const ReadFrequency> arms) {
  std::vector<Curve> curves;
  for (const ReadFrequency& arm : arms) {
    curves.push_back({arm.reading, std::nullopt});
    for (std::size_t i = 0; i < arm.reading->placebos.size(); ++i) curves.push_back({arm.reading, i});
  }
  return curves;
}

void draw_panel(PlotScript& script, const std::vector<Curve>& curves, std::size_t layer,
                FrequencyQuantity FrequencyReading::Layer::*which, std::string_view name) {
  std::string plot;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const FrequencyReading& reading = *curves[i].reading;
    if (layer >= reading.layers.size()) continue;
    const Rows rows = rows_of(curves[i].bins(reading.layers[layer].*which), reading.options.against.empty());
    const std::string block = fmt::format("{}_{}_{}", name, layer, i);
    script.data(block, rows);
    plot += barred_curve(block, rows, run_style(i), {1.0, 0.4, 1.2});
  }
  plot.resize(plot.size() - 2);
  script.line("plot {}", plot);
}

using Arms = std::span<const ReadFrequency>;

Caption caption_of(const FrequencyReading& reading) {
  if (!reading.options.against.empty())
    return {
        fmt::format("Items in groups of similar {}, from low to high; the mean of the items' means, and of {}. Bars "
                    "are 95% intervals over users and items.",
                    reading.options.against, counted(reading.seeds.size(), "seed")),
        "It shows whether the filter treats items otherwise that differ in it.",
        "A trend does not show that the filter needs to treat them so."};
  return {
      fmt::format(
          "Items in groups of similar training count, from rare to frequent; the mean of the items' means, "
          "and of {}. Bars are 95% intervals over users and items. Items that no user has in training stand at 0.5.",
          counted(reading.seeds.size(), "seed")),
      "It shows whether the filter treats rare items otherwise than frequent ones.",
      "Frequency is an input of the filter, through tau_base: a trend alone does not show that it was learned."};
}

std::vector<Block> blocks(Arms arms) {
  std::vector<Block> all = {CaptionedFigure{"k-by-frequency", "K and λ by item frequency",
                                            caption_of(*arms.front().reading), frequency_figure(arms)}};
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const FrequencyReading& reading = *arms[i].reading;
    all.push_back(list(frequency_lead(reading)));
    for (Table table : {frequency_table(reading), frequency_placebo_table(reading)}) {
      if (arms.size() > 1) table.name += fmt::format("-{}", i + 1);
      all.emplace_back(paper_table(table));
    }
    all.push_back(list(frequency_sentences(reading)));
  }
  all.push_back(list(frequency_notes(*arms.front().reading)));
  return all;
}

void add_json(const ReadFrequency& arm, OrderedJson& summary) {
  summary["k_by_frequency"] = analyses::to_json(*arm.reading);
}

/// @param placebo  its name; empty: the model
void add_rows(CsvTable& table, std::size_t layer, const char* name, const std::string& placebo,
              const std::vector<FrequencyBin>& bins) {
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const FrequencyBin& bin = bins[i];
    table.rows.push_back({cell(layer), std::string(name), placebo, cell(i + 1), cell(bin.items), bin.fewest, bin.most,
                          bin.mean_count, bin.mean});
    append(table.rows.back(), bin.interval);
  }
}

std::vector<CsvTable> tables(const ReadFrequency& arm) {
  CsvTable table{
      "k-by-frequency",
      {"layer", "quantity", "placebo", "bin", "items", "fewest", "most", "mean_count", "mean", "low", "high"},
      {}};
  const auto add = [&](std::size_t layer, const char* name, const FrequencyQuantity& quantity) {
    add_rows(table, layer, name, "", quantity.bins);
    for (std::size_t i = 0; i < quantity.placebos.size(); ++i)
      add_rows(table, layer, name, arm.reading->placebos[i], quantity.placebos[i].bins);
  };
  for (std::size_t layer = 0; layer < arm.reading->layers.size(); ++layer) {
    add(layer, "gain", arm.reading->layers[layer].gain);
    add(layer, "precision", arm.reading->layers[layer].precision);
  }
  std::vector<CsvTable> all = {table, csv_table(frequency_table(*arm.reading))};
  if (!arm.reading->placebos.empty()) all.push_back(csv_table(frequency_placebo_table(*arm.reading)));
  return all;
}

const Section<ReadFrequency> frequency_section = {
    .name = "frequency",
    .title = "K by item frequency",
    .question = "Does the filter treat rare items otherwise?",
    .files = {"k-by-frequency", "k-by-frequency-trends", "k-by-frequency-placebos"},
    .keys = {"k_by_frequency"},
    .blocks = blocks,
    .add_json = add_json,
    .tables = tables};

}  // namespace

Table frequency_table(const FrequencyReading& reading) {
  Table table{"k-by-frequency-trends",
              fmt::format("Arm {}: Spearman's rho over items with their {}. Layers count from 0.",
                          terminal_line(reading.arm), counted_quantity(reading)),
              {{.key = "layer", .heading = "layer", .show = whole},
               {.key = "of", .heading = "of", .show = words},
               {.key = "rho", .heading = "rho [95%]", .show = with_sign<3>},
               {.key = "interval", .heading = "interval", .show = ends_as(with_sign<3>), .csv = "rho", .behind = true},
               {.key = "seed_deviation", .heading = "seeds' sd", .show = fixed<3>},
               {.key = "partial_rho", .heading = "partial rho [95%]", .show = with_sign<3>},
               {.key = "partial_interval",
                .heading = "partial interval",
                .show = ends_as(with_sign<3>),
                .csv = "partial_rho",
                .behind = true},
               {.key = "naive_p", .heading = "naive p", .show = {Show::Kind::number, naive_p_digits}}}};
  const bool against_counts = reading.options.against.empty();
  if (against_counts) table.columns.push_back({.key = "paper_rho", .heading = "paper's rho", .show = with_sign<3>});
  for_each_quantity(reading, [&](std::size_t layer, const char* name, const FrequencyQuantity& quantity) {
    const analyses::SeedFrequency& mean = quantity.mean;
    auto& row = table.rows.emplace_back();
    row = {
        layer, name, mean.rho, mean.interval, mean.deviation, mean.partial, mean.partial_interval, naive_p(quantity)};
    if (!against_counts) return;
    row.emplace_back();
    const bool last = layer + 1 == reading.layers.size();  // the paper has one layer
    if (last) row.back() = name[0] == 'K' ? analyses::paper_frequency.gain : analyses::paper_frequency.precision;
  });
  return table;
}

Table frequency_placebo_table(const FrequencyReading& reading) {
  Table table{"k-by-frequency-placebos",
              fmt::format("Arm {}: the same of placebos, and the arm's rho less theirs.", terminal_line(reading.arm)),
              {{.key = "placebo", .heading = "placebo", .show = verbatim},
               {.key = "layer", .heading = "layer", .show = whole},
               {.key = "of", .heading = "of", .show = words},
               {.key = "rho", .heading = "rho [95%]", .show = with_sign<3>},
               {.key = "interval", .heading = "interval", .show = ends_as(with_sign<3>), .csv = "rho", .behind = true},
               {.key = "difference", .heading = "rho less that of the placebo [95%]", .show = with_sign<3>},
               {.key = "difference_interval",
                .heading = "interval of the difference",
                .show = ends_as(with_sign<3>),
                .csv = "difference",
                .behind = true}}};
  for (std::size_t i = 0; i < reading.placebos.size(); ++i) {
    for_each_quantity(reading, [&](std::size_t layer, const char* name, const FrequencyQuantity& quantity) {
      const FrequencyQuantity::Placebo& placebo = quantity.placebos[i];
      table.rows.push_back({reading.placebos[i], layer, name, placebo.mean.rho, placebo.mean.interval,
                            placebo.difference.value, placebo.difference.interval});
    });
  }
  return table;
}

std::vector<std::string> frequency_lead(const FrequencyReading& reading) {
  return {fmt::format("arm {}, {} {}: {}, {}", terminal_line(reading.arm), reading.seeds.size() == 1 ? "seed" : "seeds",
                      fmt::join(reading.seeds, ", "), counted(reading.users, "user"),
                      counted(reading.positions, "position")),
          fmt::format("{} of {} have a position in the test inputs", reading.items,
                      counted(reading.items_of_catalogue, "item"))};
}

std::vector<std::string> frequency_sentences(const FrequencyReading& reading) {
  std::vector<std::string> sentences;
  const std::string& against = reading.options.against;
  const std::string what = against.empty() ? std::string("frequency") : terminal_line(against);
  for_each_quantity(reading, [&](std::size_t layer, const char* name, const FrequencyQuantity& quantity) {
    const std::string subject = fmt::format("layer {}, {}: ", layer, name);
    if (!quantity.mean.rho) {
      sentences.push_back(fmt::format("{}no rho: {}", subject, quantity.mean.rho.reason()));
      return;
    }
    sentences.push_back(fmt::format("{}{}{}{}", subject,
                                    in_words(quantity.mean.interval, "rises with " + what, "falls with " + what,
                                             fmt::format("no trend with {} is shown", what)),
                                    seed_signs(quantity), ends_of(quantity, against)));
    for (std::size_t i = 0; i < reading.placebos.size(); ++i)
      sentences.push_back(
          fmt::format("  {} placebo {}",
                      in_words(quantity.placebos[i].difference.interval, "rises more, or falls less, than in",
                               "rises less, or falls more, than in", "no difference is shown to"),
                      terminal_line(reading.placebos[i])));
  });
  return sentences;
}

std::vector<std::string> frequency_notes(const FrequencyReading& reading) {
  const bool counts = reading.options.against.empty();
  std::vector<std::string> notes = {
      fmt::format("rho: Spearman over items, an item's mean over its positions against its {}; mean over seeds",
                  counted_quantity(reading)),
      "95%: over users and items, with these models (jackknife). partial: given the items' mean place and length of "
      "history",
      "naive p: as if items were independent, which those of one history are not; the largest of the seeds",
      fmt::format("{}layers count from 0 here",
                  counts ? fmt::format("paper: {}; ", analyses::paper_frequency.where) : std::string())};
  if (reading.placebos.empty() && counts)
    notes.emplace_back(
        "Frequency is an input of the filter, through tau_base: a trend alone does not show that it was learned. Set a "
        "placebo beside it (--placebo): docs/analyses/k-by-frequency.md");
  return notes;
}

std::string print_frequency(const FrequencyReading& reading) {
  std::string text =
      fmt::format("{}\n\n", fmt::join(frequency_lead(reading), "\n")) + text_table(frequency_table(reading));
  if (!reading.placebos.empty()) text += "\n" + text_table(frequency_placebo_table(reading));
  text += "\n";
  for (const std::string& sentence : frequency_sentences(reading)) text += "  " + sentence + "\n";
  text += "\n";
  for (const std::string& note : frequency_notes(reading)) text += wrapped(note);
  return text;
}

Maybe<Figure> frequency_figure(std::span<const ReadFrequency> arms) {
  using Missing = Maybe<Figure>;
  const std::vector<Curve> curves = curves_of(arms);
  if (curves.size() > max_runs) return too_many(curves.size(), "curves of arms and placebos");
  std::size_t layers = 0;
  for (const ReadFrequency& arm : arms) layers = std::max(layers, arm.reading->layers.size());
  std::vector<std::string> labels;
  for (const Curve& curve : curves) labels.push_back(curve.label());
  if (2 * layers > max_panels)
    return Missing::none(fmt::format("{} layers; {} panels fit one figure", layers, max_panels));
  const std::vector<LegendEntry> legend = curves.size() > 1 ? name_runs(labels) : std::vector<LegendEntry>();
  PanelGrid grid{page_width, 0.3 + 1.75 * static_cast<double>(layers)};
  grid.rows = static_cast<int>(layers);
  grid.columns = 2;
  grid.left = 0.6;
  grid.right = 0.16;  // half of the last label
  grid.across = 0.7;
  grid.bottom = 0.42;
  PanelFigure script(grid, legend);
  const std::string& against = arms.front().reading->options.against;
  if (against.empty()) script.line("set logscale x");
  script.line("set xlabel \"{} of the items\" offset 0,0.5", against.empty() ? "training count" : plain(against));
  for (std::size_t layer = 0; layer < layers; ++layer) {
    script.panel(2 * layer, fmt::format("layer {}: gain K", layer));
    draw_panel(script, curves, layer, &FrequencyReading::Layer::gain, "gain");
    script.panel(2 * layer + 1, fmt::format("layer {}: prior precision λ", layer));
    draw_panel(script, curves, layer, &FrequencyReading::Layer::precision, "precision");
  }
  return script.figure("k-by-frequency");
}

WrittenReport write_frequency_report(std::span<const FrequencyReading> readings, const std::filesystem::path& out) {
  std::vector<ReadFrequency> arms;
  for (const FrequencyReading& reading : readings) arms.push_back({&reading});
  const Section<ReadFrequency>* const sections[] = {&frequency_section};
  MadeReport report = make_report<ReadFrequency>(sections, arms);
  const std::string& against = readings.front().options.against;
  report.title = page_title("K by " + (against.empty() ? "item frequency" : printable(against, 60)));
  report.header = fmt::format(
      "<header>\n<h1>{}</h1>\n<p class=\"lead\">K and the prior precision λ of every layer at the positions that a "
      "ranking reads, by the {} of their item.</p>\n</header>\n",
      against.empty() ? "Does the filter treat rare items otherwise than frequent ones?"
                      : "Which items does the filter treat otherwise?",
      against.empty() ? "training count" : escape_html(against));
  return write_files(report, out);
}

}  // namespace gainlens::reports
