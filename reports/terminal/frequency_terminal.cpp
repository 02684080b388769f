#include "reports/terminal/frequency_terminal.h"

#include "core/counted.h"
#include "core/terminal_text.h"
#include "reports/words/numbers.h"
#include "reports/words/signed_interval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::FrequencyCorrelation;
using analyses::FrequencyQuantity;
using analyses::FrequencyReading;
using analyses::Interval;
using analyses::Maybe;

/// Below it a p has underflowed.
constexpr double least_p = 1e-300;

/// Of several seeds the largest.
std::string naive_p(const FrequencyQuantity& quantity) {
  double most = 0;
  for (const FrequencyCorrelation& seed : quantity.seeds) {
    if (!seed.naive_p) return "–";
    most = std::max(most, *seed.naive_p);
  }
  return most < least_p ? "<1e-300" : shown_p(most);
}

std::string row(std::size_t layer, std::string_view name, const FrequencyQuantity& quantity, const std::string& paper) {
  return fmt::format("{:<6} {:<7} {:<24} {:<8} {:<24} {:<8} {}\n", layer, name,
                     with_signed_interval(quantity.mean.rho, quantity.mean.interval),
                     quantity.mean.deviation ? fmt::format("{:.3f}", *quantity.mean.deviation) : "–",
                     with_signed_interval(quantity.mean.partial, quantity.mean.partial_interval), naive_p(quantity),
                     paper);
}

std::string placebo_row(std::size_t layer, std::string_view name, const FrequencyQuantity::Placebo& placebo) {
  return fmt::format("{:<6} {:<7} {:<24} {}\n", layer, name,
                     with_signed_interval(placebo.mean.rho, placebo.mean.interval),
                     with_signed_interval(placebo.difference.value, placebo.difference.interval));
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

/// In how many seeds a trend has the sign of the mean: seeds can differ in it while their mean has a narrow interval,
/// which is over users and items alone.
std::string of_seeds(const FrequencyQuantity& quantity) {
  const auto& interval = quantity.mean.interval;
  if (quantity.seeds.size() < 2 || !interval || (interval->low <= 0 && interval->high >= 0)) return {};
  const auto alike = std::ranges::count_if(quantity.seeds, [&](const FrequencyCorrelation& seed) {
    return seed.rho && (interval->low > 0 ? *seed.rho > 0 : *seed.rho < 0);
  });
  return fmt::format(" in {} of {} seeds", alike, quantity.seeds.size());
}

/// Sentences on a quantity: its trend, and that beside each placebo; and why something is missing.
std::string sentences_on(std::size_t layer, std::string_view name, const FrequencyQuantity& quantity,
                         const FrequencyReading& reading) {
  const std::string& against = reading.options.against;
  const std::string what = against.empty() ? std::string("frequency") : terminal_line(against);
  const std::string subject = fmt::format("layer {}, {}: ", layer, name);
  if (!quantity.mean.rho) return fmt::format("  {}no rho: {}\n", subject, quantity.mean.rho.reason());
  std::string text = fmt::format("  {}{}{}{}\n", subject,
                                 in_words(quantity.mean.interval, "rises with " + what, "falls with " + what,
                                          fmt::format("no trend with {} is shown", what)),
                                 of_seeds(quantity), ends_of(quantity, against));
  for (std::size_t i = 0; i < reading.placebos.size(); ++i)
    text += fmt::format("    {} placebo {}\n",
                        in_words(quantity.placebos[i].difference.interval, "rises more, or falls less, than in",
                                 "rises less, or falls more, than in", "no difference is shown to"),
                        terminal_line(reading.placebos[i]));
  return text;
}

}  // namespace

std::string print_frequency(const FrequencyReading& reading) {
  const std::string& against = reading.options.against;
  std::string text = fmt::format(
      "arm {}, {} {}: {}, {}\n{} of {} have a position in the test inputs\n\n", terminal_line(reading.arm),
      reading.seeds.size() == 1 ? "seed" : "seeds", fmt::join(reading.seeds, ", "), counted(reading.users, "user"),
      counted(reading.positions, "position"), reading.items, counted(reading.items_of_catalogue, "item"));
  text += fmt::format("{:<6} {:<7} {:<24} {:<8} {:<24} {:<8} {}\n", "layer", "of", "rho [95%]", "seeds' sd",
                      "partial rho [95%]", "naive p", against.empty() ? "paper's rho" : "");
  for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
    const bool last = layer + 1 == reading.layers.size() && against.empty();
    const auto paper = [&](double rho) { return last ? fmt::format("{:+.3f}", rho) : std::string(); };
    text += row(layer, "K", reading.layers[layer].gain, paper(analyses::paper_frequency.gain));
    text += row(layer, "lambda", reading.layers[layer].precision, paper(analyses::paper_frequency.precision));
  }
  for (std::size_t i = 0; i < reading.placebos.size(); ++i) {
    text += fmt::format("\nplacebo {}\n{:<6} {:<7} {:<24} {}\n", terminal_line(reading.placebos[i]), "layer", "of",
                        "rho [95%]", "rho less that of the placebo [95%]");
    for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
      text += placebo_row(layer, "K", reading.layers[layer].gain.placebos[i]);
      text += placebo_row(layer, "lambda", reading.layers[layer].precision.placebos[i]);
    }
  }
  text += "\n";
  for (std::size_t layer = 0; layer < reading.layers.size(); ++layer) {
    text += sentences_on(layer, "K", reading.layers[layer].gain, reading);
    text += sentences_on(layer, "lambda", reading.layers[layer].precision, reading);
  }
  text += fmt::format(
      "\nrho: Spearman over items, an item's mean over its positions against its {}; mean over seeds\n"
      "95%: over users and items, with these models (jackknife). partial: given the items' mean place and length of "
      "history\n"
      "naive p: as if items were independent, which those of one history are not; the largest of the seeds\n"
      "{}layers count from 0 here\n",
      against.empty() ? "training count" : terminal_line(against),
      against.empty() ? fmt::format("paper: {}; ", analyses::paper_frequency.where) : std::string());
  if (reading.placebos.empty() && against.empty())
    text +=
        "Frequency is an input of the filter, through tau_base: a trend alone does not show that it was learned. Set "
        "a\n"
        "placebo beside it (--placebo): docs/analyses/k-by-frequency.md\n";
  return text;
}

}  // namespace gainlens::reports
