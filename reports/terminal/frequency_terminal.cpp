#include "reports/terminal/frequency_terminal.h"

#include "core/counted.h"
#include "core/terminal_text.h"
#include "reports/words/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ends_as;
using analyses::fixed;
using analyses::FrequencyCorrelation;
using analyses::FrequencyQuantity;
using analyses::FrequencyReading;
using analyses::Show;
using analyses::verbatim;
using analyses::whole;
using analyses::with_sign;
using analyses::words;

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

}  // namespace gainlens::reports
