#include "reports/terminal/error_order_terminal.h"

#include "analyses/crossed_estimate.h"
#include "core/counted.h"
#include "core/terminal_text.h"
#include "reports/words/signed_interval.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gainlens::reports {
namespace {

using analyses::ErrorOrder;
using analyses::ErrorOrderReading;
using analyses::OrderVerdict;
using analyses::SeedEstimate;

std::string shown(const SeedEstimate& estimate) {
  return with_signed_interval(estimate.value, estimate.interval);
}

std::string table_of(const ErrorOrder& order) {
  std::string text = fmt::format("  {:<27} {:<24} {:<9} {:<24} {}\n", "quantity", "rho [95%]", "seeds' sd",
                                 "precision less its size", "precision given it");
  for (std::size_t q = 0; q < analyses::error_quantities; ++q) {
    const SeedEstimate& rho = order.rho[q];
    text += fmt::format("  {:<27} {:<24} {:<9} {:<24} {}\n", analyses::error_quantity_names[q], shown(rho),
                        rho.deviation ? fmt::format("{:.3f}", *rho.deviation) : "–",
                        q == 0 ? "" : shown(order.difference[q]), q == 0 ? "" : shown(order.given[q]));
  }
  text += fmt::format("  precision given the first three rivals {}; given all {}\n", shown(order.given_data),
                      shown(order.given_all));
  while (text.find(" \n") != std::string::npos) text.replace(text.find(" \n"), 2, "\n");
  return text;
}

/// @param beyond  empty, or " beyond ..."
std::string in_words(const SeedEstimate& rho, const std::string& beyond) {
  switch (analyses::verdict_of(rho)) {
    case OrderVerdict::orders:
      return fmt::format("  The precision orders users by error{}.\n", beyond);
    case OrderVerdict::reverses:
      return fmt::format("  The precision orders users the wrong way{}: with a higher one the error is larger.\n",
                         beyond);
    case OrderVerdict::does_not:
      return fmt::format("  The precision does not order users by error{}: rho is below {}.\n", beyond,
                         analyses::least_order);
    case OrderVerdict::undecided:
      break;
  }
  if (!rho.interval)
    return fmt::format("  Not decided whether the precision orders users by error{}: {}.\n", beyond,
                       rho.interval.reason());
  return fmt::format("  Not decided whether the precision orders users by error{}.\n", beyond);
}

std::string against_rivals(const ErrorOrder& order) {
  std::vector<std::string> better, worse, undecided;
  for (std::size_t rival = 1; rival < analyses::error_quantities; ++rival) {
    const auto& interval = order.difference[rival].interval;
    (!interval            ? undecided
     : interval->low > 0  ? better
     : interval->high < 0 ? worse
                          : undecided)
        .emplace_back(analyses::error_quantity_names[rival]);
  }
  const auto sentence = [](const char* what, const std::vector<std::string>& rivals) {
    return rivals.empty() ? std::string() : fmt::format("  {}: {}.\n", what, fmt::join(rivals, ", "));
  };
  return sentence("It orders them better than", better) + sentence("It orders them worse than", worse) +
         sentence("No difference is shown to", undecided);
}

}  // namespace

std::string print_error_order(const ErrorOrderReading& reading) {
  const bool crossed = reading.seeds.size() >= analyses::fewest_crossed_seeds;
  std::string text = fmt::format(
      "arm {}, {} {}: {} with {}\nprecision: {:.1f}% of users are at the bound of {:g} in every dimension\n\n",
      terminal_line(reading.arm), reading.seeds.size() == 1 ? "seed" : "seeds", fmt::join(reading.seeds, ", "),
      counted(reading.users, "user"), counted(reading.targets, "different test item"), 100 * reading.at_bound,
      reading.most_precision);
  text += "success: the rank of the test item (a smaller one is better)\n" + table_of(reading.by_rank);
  text += "success: a rank of at most 10\n" + table_of(reading.by_hit) + "\nby rank:\n";
  const ErrorOrder& order = reading.by_rank;
  text += in_words(order.rho[0], "");
  if (analyses::verdict_of(order.rho[0]) == OrderVerdict::orders) {
    text += in_words(order.given[1], " beyond history length");
    text += in_words(order.given_data, " beyond history length and popularity");
    text += in_words(order.given_all, " beyond history length, popularity and the confidence of the model");
  }
  text += against_rivals(order);
  text += fmt::format(
      "\nrho: Spearman over users, of the quantity with the success; above 0: a larger quantity has a smaller error; "
      "mean "
      "over seeds\n95%: over {}; users with one test item are left out together. Precision given a rival: partial rho\n"
      "docs/analyses/error-by-precision.md says what this can show and what it cannot.\n",
      crossed ? "other trainings and other users" : "other users, with these models");
  return text;
}

}  // namespace gainlens::reports
