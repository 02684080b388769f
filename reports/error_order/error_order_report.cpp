#include "reports/error_order/error_order_report.h"

#include "analyses/crossed_estimate.h"
#include "core/counted.h"
#include "core/terminal_text.h"
#include "reports/figures/figure_parts.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace {

using analyses::ends_as, analyses::ErrorBin, analyses::ErrorOrder, analyses::ErrorOrderReading, analyses::OrderVerdict,
    analyses::SeedEstimate, analyses::with_sign;

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

constexpr std::size_t max_arms = 4;

/// A metric of a bin.
struct Metric {
  const char* name;  ///< of its data
  const char* title;
  double ErrorBin::*mean;
  Maybe<Interval> ErrorBin::*interval;
};
constexpr Metric metrics[] = {{"hit", "HR@10", &ErrorBin::hit, &ErrorBin::hit_interval},
                              {"gain", "NDCG@10", &ErrorBin::gain, &ErrorBin::gain_interval}};

/// percentile, mean, ends of the interval
Rows rows_of(const std::vector<ErrorBin>& bins, const Metric& metric, bool with_interval) {
  Rows rows;
  for (const ErrorBin& bin : bins) {
    rows.push_back(barred_point(100 * bin.percentile, bin.*metric.mean,
                                with_interval ? bin.*metric.interval : Maybe<Interval>::none("not drawn")));
  }
  return rows;
}

/// The precision is drawn last, above its rivals.
std::string curves(PlotScript& script, const ErrorOrderReading& reading, std::size_t arm, const Metric& metric) {
  std::string plot;
  for (std::size_t i = analyses::error_quantities; i-- > 0;) {
    const bool own = i == 0;
    const Rows rows = rows_of(reading.bins[i], metric, own);
    const std::string block = fmt::format("{}_{}_{}", metric.name, arm, i);
    script.data(block, rows);
    plot += barred_curve(block, rows, run_style(i), own ? BarredCurve{1.2, 0.6, 2.2} : BarredCurve{1.0, 0.35, 0.9});
  }
  plot.resize(plot.size() - 2);
  return plot;
}

using Arms = std::span<const ReadErrorOrder>;

Caption caption_of(const ErrorOrderReading& reading) {
  return {fmt::format("Users in {} of equal width by their place by the precision of their state, and by each rival, "
                      "which needs no filter; the users of {} together. Bars are 95% intervals over users, with these "
                      "models. Users with equal values share a group.",
                      counted(static_cast<std::size_t>(reading.options.bins), "group"),
                      counted(reading.seeds.size(), "seed")),
          "It shows whether users with a high precision get better recommendations, and whether something simpler "
          "tells this as well.",
          "How often the test item stands in the training is no rival: it is not known when the item is to be found."};
}

std::vector<Block> blocks(Arms arms) {
  std::vector<Block> all = {CaptionedFigure{"error-by-precision", "Success by precision and by its rivals",
                                            caption_of(*arms.front().reading), error_order_figure(arms)}};
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const ErrorOrderReading& reading = *arms[i].reading;
    all.push_back(list(error_order_lead(reading)));
    for (Table& table : error_order_tables(reading)) {
      if (arms.size() > 1) table.name += fmt::format("-{}", i + 1);
      all.emplace_back(paper_table(table));
    }
    all.push_back(paragraph("By rank:"));
    all.push_back(list(error_order_sentences(reading)));
  }
  all.push_back(list(error_order_notes(*arms.front().reading)));
  return all;
}

void add_json(const ReadErrorOrder& arm, OrderedJson& summary) {
  summary["error_by_precision"] = analyses::to_json(*arm.reading);
}

std::vector<CsvTable> tables(const ReadErrorOrder& arm) {
  CsvTable table{"error-by-precision",
                 {"quantity", "bin", "users_of_all_seeds", "percentile", "mean", "hr@10", "hr@10_low", "hr@10_high",
                  "ndcg@10", "ndcg@10_low", "ndcg@10_high"},
                 {}};
  for (std::size_t q = 0; q < analyses::error_quantities; ++q) {
    const std::vector<ErrorBin>& bins = arm.reading->bins[q];
    for (std::size_t i = 0; i < bins.size(); ++i) {
      std::vector<Cell>& row = table.rows.emplace_back();
      row.emplace_back(std::string(analyses::error_quantity_keys[q]));
      row.push_back(cell(i + 1));
      row.push_back(cell(bins[i].users));
      for (const double number : {bins[i].percentile, bins[i].value, bins[i].hit}) row.emplace_back(number);
      append(row, bins[i].hit_interval);
      row.emplace_back(bins[i].gain);
      append(row, bins[i].gain_interval);
    }
  }
  std::vector<CsvTable> all = {table};
  for (const Table& order : error_order_tables(*arm.reading)) all.push_back(csv_table(order));
  return all;
}

const Section<ReadErrorOrder> error_order_section = {
    .name = "error-order",
    .title = "Error by precision",
    .question = "Does the precision order users by error?",
    .files = {"error-by-precision", "error-order-by-rank", "error-order-by-hit"},
    .keys = {"error_by_precision"},
    .blocks = blocks,
    .add_json = add_json,
    .tables = tables};

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

Maybe<Figure> error_order_figure(std::span<const ReadErrorOrder> arms) {
  if (arms.size() > max_arms)
    return Maybe<Figure>::none(fmt::format("{} arms; {} fit one figure", arms.size(), max_arms));
  std::vector<std::string> names;
  for (const std::string_view name : analyses::error_quantity_names) names.emplace_back(name);
  const auto rows = static_cast<double>(arms.size());
  PanelGrid grid{page_width, 0.3 + 2.05 * rows};
  grid.rows = static_cast<int>(arms.size());
  grid.columns = 2;
  grid.left = 0.6;
  grid.right = 0.16;
  grid.across = 0.7;
  grid.bottom = 0.42;
  PanelFigure script(grid, name_runs(names));
  script.line("set xlabel 'place of the users by the quantity, %' offset 0,0.5");
  script.line("set xrange [0:100]").line("set yrange [0:*]");
  for (std::size_t arm = 0; arm < arms.size(); ++arm) {
    for (std::size_t i = 0; i < std::size(metrics); ++i) {
      const std::string arm_label = arms.size() > 1 ? ", " + plain(arms[arm].label()) : std::string();
      script.panel(std::size(metrics) * arm + i, plain(metrics[i].title) + arm_label);
      script.line("plot {}", curves(script, *arms[arm].reading, arm, metrics[i]));
    }
  }
  return script.figure("error-by-precision");
}

WrittenReport write_error_order_report(std::span<const ErrorOrderReading> readings, const std::filesystem::path& out) {
  std::vector<ReadErrorOrder> arms;
  for (const ErrorOrderReading& reading : readings) arms.push_back({&reading});
  const Section<ReadErrorOrder>* const sections[] = {&error_order_section};
  MadeReport report = make_report<ReadErrorOrder>(sections, arms);
  report.title = page_title("error by precision");
  report.header =
      "<header>\n<h1>Does the precision order users by error?</h1>\n<p class=\"lead\">The precision λ′ of the state "
      "from "
      "which the test item of each user is ranked, against the rank, beside rivals that need no filter.</p>\n"
      "</header>\n";
  return write_files(report, out);
}

}  // namespace gainlens::reports
