// One number, the sink mass of a head, in every place that shows it.

#include "analyses/comparison.h"
#include "analyses/sink_keys.h"
#include "analyses/synthetic_run.h"
#include "core/atomic_file.h"
#include "core/json.h"
#include "reports/sweep/sweep_report.h"
#include "reports/terminal/sinks_terminal.h"
#include "support/browser.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace sink_mass_test {

using gainlens::testing::CellKey;
using gainlens::testing::in_browser;
using gainlens::testing::report_run;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Layer 1, head 1 has a sink of 0.35 and two weaker keys of the same text, head 0 one key below the threshold of a
/// sink. In layer 2 early queries alone see the sink of head 0. No other head has a key.
SyntheticRun run_with_weak_keys() {
  SyntheticRun run = report_run(2);
  run.text = [](const runfile::ShardKey&, std::int64_t position) {
    return std::string(position == 0 ? "<s>" : "\u2581");
  };
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("sinks/")) return std::nullopt;
    struct Key {
      double position, column_mean, second_half_mean;
    };
    const std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Key>> keys = {
        {{1, 0}, {{20, 0.25, 0.18}}},
        {{1, 1}, {{20, 0.35, 0.25}, {30, 0.2, 0.2}, {40, 0.15, 0.162}}},
        {{2, 0}, {{0, 0.5, 0}}}};
    const auto found = keys.find({key.layer, key.head});
    const std::string_view name = key.name.substr(6);
    if (found == keys.end() || key.last >= std::ssize(found->second))
      return name == "position" || name == "token" || name == "queries" || name == "stream_dimension" ? -1
                                                                                                      : std::nan("");
    const Key& one = found->second[static_cast<std::size_t>(key.last)];
    if (name == "position") return one.position;
    if (name == "token") return one.position == 0 ? 1 : 30;
    if (name == "queries") return 24;
    if (name == "stream_dimension") return 5;
    if (name == "column_mean") return one.column_mean;
    if (name == "second_half_mean") return one.second_half_mean;
    return 0.5;
  };
  return run;
}

/// The fields of a CSV file's row that begins with these, by their columns. No field here has a comma.
std::map<std::string, std::string> row_of(const std::string& csv, const std::string& begin) {
  const auto fields = [](const std::string& line) {
    std::vector<std::string> all;
    std::stringstream stream(line);
    for (std::string field; std::getline(stream, field, ',');) all.push_back(field);
    return all;
  };
  std::stringstream stream(csv);
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> header = fields(line);
  while (std::getline(stream, line)) {
    if (!line.starts_with(begin)) continue;
    std::map<std::string, std::string> row;
    const std::vector<std::string> values = fields(line);
    for (std::size_t i = 0; i < std::min(header.size(), values.size()); ++i) row[header[i]] = values[i];
    return row;
  }
  ADD_FAILURE() << "no row begins with " << begin;
  return {};
}

TEST(SinkMass, IsOneNumberEverywhere) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", run_with_weak_keys());
  const auto out = folder.path() / "out";
  write_report(reader, out, {}, {.style = {.formats = {"svg"}}});
  // 0.25 + 0.2 + 0.162, of every chunk
  const analyses::SinkKeys sinks = analyses::sink_keys(reader);
  EXPECT_NEAR(sinks.mass_of(sinks.lengths.back(), 1, 1).value, 0.612, 1e-12);

  // gainlens sinks
  const std::string printed = print_sinks(sinks, reader, false);
  EXPECT_THAT(printed, HasSubstr("  mass 0.18 0.61  |v|"));
  EXPECT_THAT(printed, HasSubstr("2 of 6 heads have a sink, 1 of them for early queries only"));

  // the headline, the map, the table of the strongest heads
  const Json summary = Json::parse(read_text_file(out / "summary.json"));
  EXPECT_EQ(summary.at("overview").at("sentence"),
            "2 heads of layer 1 put 18 to 61% of their attention on \u2581 (value norm 0.5 of the median, largest "
            "entry of the hidden "
            "state 0.5 times the median); BOS is a sink for early queries only in layer 2. 2 of 6 heads have a sink, 1 "
            "of them for early queries only.");
  const Json& strongest = summary.at("overview").at("sinks").at("strongest");
  ASSERT_EQ(strongest.size(), 2u);  // a head without a sink stands there by its mass too
  EXPECT_NEAR(strongest.at(0).at("mass").get<double>(), 0.612, 1e-12);
  EXPECT_NEAR(strongest.at(1).at("mass").get<double>(), 0.18, 1e-12);
  const std::string page = read_text_file(out / "report.html");
  EXPECT_THAT(page, HasSubstr(">1.1</th><td class=\"text\">global</td><td class=\"text\">\u2581</td><td>0.612</td>"));
  const std::string map = read_text_file(out / "tables" / "sink-map.csv");
  EXPECT_NEAR(std::stod(row_of(map, "1,1,")["mass"]), 0.612, 1e-12);
  EXPECT_EQ(row_of(map, "1,1,")["is_sink"], "1");
  EXPECT_NEAR(std::stod(row_of(map, "1,0,")["mass"]), 0.18, 1e-12);
  EXPECT_EQ(row_of(map, "1,0,")["is_sink"], "0");
  EXPECT_EQ(row_of(map, "2,0,")["early_queries_only"], "1");
  EXPECT_EQ(row_of(map, "2,0,")["token"], "BOS");

  // heads.csv: tokens, chunks, layer, head
  const std::string heads = read_text_file(out / "tables" / "heads.csv");
  EXPECT_NEAR(std::stod(row_of(heads, "128,2,1,1,")["sink_mass"]), 0.612, 1e-12);
  EXPECT_EQ(row_of(heads, "128,2,1,1,")["sink_mass_at_least"], "0");

  // a comparison of runs
  SyntheticRun other = run_with_weak_keys();
  other.weights = 'e';
  const analyses::Comparison compared = analyses::compare(reader, write_run(folder.path() / "other", other));
  const auto head = std::ranges::find_if(compared.heads, [](const analyses::HeadDifference& one) {
    return one.tokens == 128 && one.layer == 1 && one.head == 1;
  });
  ASSERT_NE(head, compared.heads.end());
  const auto mass = std::ranges::find(head->quantities, "sink_mass", [](const auto& one) { return one.quantity.name; });
  EXPECT_NEAR(*mass->first, 0.612, 1e-12);

  // Explore, and the page of the head
  const Json results = in_browser(page, R"js(
    const section = document.getElementById('explore-section');
    location.hash = '#head-1.1';
    await until(() => section.querySelector('h3').textContent.startsWith('Layer 1, head 1'));
    const tables = [...section.querySelectorAll('.head table')];
    const rows = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const own = tables.find((table) => table.caption.textContent.includes('sink mass'));
    results.caption = own.caption.textContent;
    results.own = rows(own)[1];
    results.statistic = rows(tables.find((table) => table.caption.textContent.includes('Every statistic')))
      .find((row) => row[0] === 'sink mass');
    const select = [...section.querySelectorAll('label')].find((label) => label.textContent.startsWith('Quantity '))
      .querySelector('select');
    select.value = [...select.options].find((option) => option.text === 'sink mass').value;
    select.dispatchEvent(new Event('change'));
    const canvas = section.querySelector('canvas');
    for (const key of ['Home', 'ArrowUp', 'ArrowRight'])
      canvas.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    results.map = canvas.nextElementSibling.textContent;
  )js");
  EXPECT_TRUE(results.at("failure").is_null()) << results.at("failure");
  EXPECT_THAT(results.at("caption").get<std::string>(), HasSubstr("Its sink mass 0.612 at 128. By token:"));
  EXPECT_EQ(results.at("own").at(2), "0.612");
  EXPECT_EQ(results.at("statistic").at(2), "0.612");
  EXPECT_EQ(results.at("map"), "Layer 1, head 1 (global): sink mass 0.612 at 128.");
}

/// What docs/gemma3-270m.md says of the shipped run is what the program prints.
TEST(SinkMass, OfTheShippedRunStandsInItsPage) {
  const std::filesystem::path root = GAINLENS_SOURCE_DIR;
  const runfile::RunReader reader = runfile::RunReader::open(root / "data" / "runs" / "gemma3-270m" / "run.h5");
  const std::string printed =
      print_sinks(analyses::sink_keys(reader, analyses::column_mean_threshold, {4096}), reader, false);
  const auto begin = printed.find("L13  \"\u2581\"");
  ASSERT_NE(begin, std::string::npos) << printed;
  const std::string line = printed.substr(begin, printed.find('\n', begin) - begin);
  EXPECT_THAT(read_text_file(root / "docs" / "gemma3-270m.md"), HasSubstr(line));
}

}  // namespace sink_mass_test
}  // namespace gainlens::reports
