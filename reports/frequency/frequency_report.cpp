#include "reports/frequency/frequency_report.h"

#include "core/counted.h"
#include "reports/page/page_style.h"
#include "reports/page/typography.h"
#include "reports/section.h"
#include "reports/terminal/frequency_terminal.h"

#include <fmt/ranges.h>

#include <vector>

namespace gainlens::reports {
namespace {

using analyses::FrequencyBin;
using analyses::FrequencyQuantity;
using analyses::FrequencyReading;
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
