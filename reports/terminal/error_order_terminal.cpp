#include "reports/terminal/error_order_terminal.h"

#include "analyses/crossed_estimate.h"
#include "core/counted.h"
#include "core/terminal_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gainlens::reports {
namespace {

using analyses::ends_as;
using analyses::ErrorOrder;
using analyses::ErrorOrderReading;
using analyses::OrderVerdict;
using analyses::SeedEstimate;
using analyses::with_sign;

/// @param success  what is ordered
Table table_of(const char* name, const std::string& success, const ErrorOrder& order) {
  Table table{name, success, {{.key = "quantity", .heading = "quantity", .show = analyses::words}}};
  const auto add = [&](const std::string& key, const std::string& heading) {
    table.columns.push_back({.key = key, .heading = heading + " [95%]", .show = with_sign<3>});
    table.columns.push_back({.key = key + "_interval",
                             .heading = "interval of " + heading,
                             .show = ends_as(with_sign<3>),
                             .csv = key,
                             .behind = true});
  };
  add("rho", "rho");
  table.columns.push_back({.key = "seed_deviation", .heading = "seeds' sd", .show = analyses::fixed<3>});
  add("precision_less_size", "precision less its size");
  add("partial_rho_of_precision", "precision given it");
  for (std::size_t q = 0; q < analyses::error_quantities; ++q) {
    const SeedEstimate &rho = order.rho[q], &less = order.difference[q], &given = order.given[q];
    auto& row = table.rows.emplace_back();
    row = {analyses::error_quantity_names[q], rho.value, rho.interval, rho.deviation, {}, {}, {}, {}};
    if (q == 0) continue;  // the precision has no size but its own
    row = {analyses::error_quantity_names[q],
           rho.value,
           rho.interval,
           rho.deviation,
           less.value,
           less.interval,
           given.value,
           given.interval};
  }
  table.rows.push_back(
      {"the first three rivals", {}, {}, {}, {}, {}, order.given_data.value, order.given_data.interval});
  table.rows.push_back({"all rivals", {}, {}, {}, {}, {}, order.given_all.value, order.given_all.interval});
  return table;
}

/// @param beyond  empty, or " beyond ..."
std::string in_words(const SeedEstimate& rho, const std::string& beyond) {
  switch (analyses::verdict_of(rho)) {
    case OrderVerdict::orders:
      return fmt::format("The precision orders users by error{}.", beyond);
    case OrderVerdict::reverses:
      return fmt::format("The precision orders users the wrong way{}: with a higher one the error is larger.", beyond);
    case OrderVerdict::does_not:
      return fmt::format("The precision does not order users by error{}: rho is below {}.", beyond,
                         analyses::min_order);
    case OrderVerdict::undecided:
      break;
  }
  if (!rho.interval)
    return fmt::format("Not decided whether the precision orders users by error{}: {}.", beyond, rho.interval.reason());
  return fmt::format("Not decided whether the precision orders users by error{}.", beyond);
}

void add_rivals(const ErrorOrder& order, std::vector<std::string>& sentences) {
  std::vector<std::string> better, worse, undecided;
  for (std::size_t rival = 1; rival < analyses::error_quantities; ++rival) {
    const auto& interval = order.difference[rival].interval;
    (!interval            ? undecided
     : interval->low > 0  ? better
     : interval->high < 0 ? worse
                          : undecided)
        .emplace_back(analyses::error_quantity_names[rival]);
  }
  const auto add = [&](const char* what, const std::vector<std::string>& rivals) {
    if (!rivals.empty()) sentences.push_back(fmt::format("{}: {}.", what, fmt::join(rivals, ", ")));
  };
  add("It orders them better than", better);
  add("It orders them worse than", worse);
  add("No difference is shown to", undecided);
}

}  // namespace

std::vector<Table> error_order_tables(const ErrorOrderReading& reading) {
  return {
      table_of("error-order-by-rank", "success: the rank of the test item (a smaller one is better)", reading.by_rank),
      table_of("error-order-by-hit", "success: a rank of at most 10", reading.by_hit)};
}

std::vector<std::string> error_order_lead(const ErrorOrderReading& reading) {
  return {fmt::format("arm {}, {} {}: {} with {}", terminal_line(reading.arm),
                      reading.seeds.size() == 1 ? "seed" : "seeds", fmt::join(reading.seeds, ", "),
                      counted(reading.users, "user"), counted(reading.targets, "different test item")),
          fmt::format("precision: {:.1f}% of users are at the bound of {:g} in every dimension", 100 * reading.at_bound,
                      reading.most_precision)};
}

std::vector<std::string> error_order_sentences(const ErrorOrderReading& reading) {
  const ErrorOrder& order = reading.by_rank;
  std::vector<std::string> sentences = {in_words(order.rho[0], "")};
  if (analyses::verdict_of(order.rho[0]) == OrderVerdict::orders) {
    sentences.push_back(in_words(order.given[1], " beyond history length"));
    sentences.push_back(in_words(order.given_data, " beyond history length and popularity"));
    sentences.push_back(
        in_words(order.given_all, " beyond history length, popularity and the confidence of the model"));
  }
  add_rivals(order, sentences);
  return sentences;
}

std::vector<std::string> error_order_notes(const ErrorOrderReading& reading) {
  const bool crossed = reading.seeds.size() >= analyses::fewest_crossed_seeds;
  return {
      "rho: Spearman over users, of the quantity with the success; above 0: a larger quantity has a smaller error; "
      "mean "
      "over seeds",
      fmt::format("95%: over {}; users with one test item are left out together. Precision given a rival: partial rho",
                  crossed ? "other trainings and other users" : "other users, with these models"),
      "docs/analyses/error-by-precision.md says what this can show and what it cannot."};
}

std::string print_error_order(const ErrorOrderReading& reading) {
  std::string text = fmt::format("{}\n\n", fmt::join(error_order_lead(reading), "\n"));
  for (const Table& table : error_order_tables(reading)) text += text_table(table);
  text += "\nby rank:\n";
  for (const std::string& sentence : error_order_sentences(reading)) text += "  " + sentence + "\n";
  text += "\n";
  for (const std::string& note : error_order_notes(reading)) text += wrapped(note);
  return text;
}

}  // namespace gainlens::reports
