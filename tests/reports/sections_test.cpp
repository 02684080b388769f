#include "reports/sweep/sections.h"

#include "analyses/synthetic_run.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "reports/made_report.h"
#include "reports/sweep/sink_map.h"
#include "reports/sweep/sweep_report.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace sections_test {

namespace fs = std::filesystem;
using gainlens::testing::report_run;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// The same run several times, under different names.
class Overlaid {
 public:
  Overlaid(const SyntheticRun& run, std::size_t count) : reader_(write_run(folder_.path() / "run", run)) {
    for (std::size_t i = 0; i < count; ++i)
      runs_.emplace_back(RunInput{std::string(1, static_cast<char>('a' + i)), reader_}, analyses::Options{});
  }
  Runs runs() const { return runs_; }

 private:
  TemporaryFolder folder_;
  runfile::RunReader reader_;
  std::vector<SweepRun> runs_;
};

/// The first figure of a section, with its words.
CaptionedFigure figure_of(const Section<SweepRun>& section, const Overlaid& overlaid) {
  for (const Block& block : section.blocks(overlaid.runs())) {
    if (const auto* figure = std::get_if<CaptionedFigure>(&block)) return *figure;
  }
  ADD_FAILURE() << "no figure in " << section.name;
  return {"", "", {}, analyses::Maybe<Figure>::none("no figure")};
}

std::string whole(const Caption& caption) {
  return caption.shows + " " + caption.can + " " + caption.cannot;
}

TEST(ContextCaption, ExplainsTheMarksThatAreDrawn) {
  struct Case {
    std::size_t runs;
    std::int64_t chunks;
  };
  for (const auto& [runs, chunks] : {Case{1, 3}, Case{1, 1}, Case{2, 3}, Case{2, 1}}) {
    const CaptionedFigure figure = figure_of(context_section, {report_run(chunks), runs});
    const std::string script = figure.figure->script, caption = whole(figure.caption);
    const bool bands = script.find("filledcurves") != std::string::npos,
               intervals = script.find("using 1:5:(0):($6-$5)") != std::string::npos;
    EXPECT_EQ(bands, runs == 1);
    EXPECT_EQ(intervals, chunks > 1);
    const auto says = [&](const char* words) { return caption.find(words) != std::string::npos; };
    EXPECT_EQ(says("bands are one standard deviation"), bands) << runs << " " << chunks;
    EXPECT_EQ(says("Bands are spreads"), bands) << runs << " " << chunks;
    EXPECT_EQ(says("bars are 95% intervals"), intervals) << runs << " " << chunks;
    EXPECT_EQ(says("that takes at least two chunks of a length"), !intervals) << runs << " " << chunks;
  }
}

TEST(ContextCaption, WithoutAGateSaysNothingOfOne) {
  SyntheticRun run = report_run(2);
  run.gated = false;
  const Caption caption = figure_of(context_section, {run, 2}).caption;
  EXPECT_THAT(caption.shows, Not(HasSubstr("logit(gate)")));
  EXPECT_THAT(caption.cannot, Not(HasSubstr("gate")));
  EXPECT_THAT(figure_of(context_section, {report_run(2), 2}).caption.shows, HasSubstr("hollow ones logit(gate)"));
}

/// Three layers at 64 and 128 tokens. A window of 60 keys is full for the last quarter of 128, and not of 64.
SyntheticRun windowed(std::vector<std::string> attention) {
  SyntheticRun run = report_run(3);
  run.attention = std::move(attention);
  return run;
}

TEST(ContextCaption, NamesTheLengthsAtWhichGrowthIsNotJudged) {
  const Overlaid one(windowed({"window:60", "window:60", "window:60"}), 1);
  const Caption caption = figure_of(context_section, one).caption;
  EXPECT_THAT(caption.shows, HasSubstr("Growth is not judged: growth can be judged at 1 of 2 lengths, and takes two"));
  EXPECT_THAT(caption.shows, HasSubstr("Points where growth is not judged: 64 (the window of 60 keys is not full)"));
  EXPECT_THAT(figure_of(context_section, {report_run(3), 1}).caption.shows, Not(HasSubstr("not judged")));
  for (const Block& block : context_section.blocks(one.runs())) {
    const auto* table = std::get_if<PaperTable>(&block);
    if (table == nullptr || table->name != "context") continue;
    EXPECT_THAT(table->caption, HasSubstr("* Growth is not judged at this length: 64 (the window"));
    EXPECT_EQ(table->rows.front().front(), "64*");
    EXPECT_EQ(table->rows.back().front(), "128");
  }
}

TEST(Summary, KindsOfAttentionStandApart) {
  const Overlaid mixed(windowed({"window:60", "global", "global"}), 1);
  const std::string html = std::get<Html>(summary_section.blocks(mixed.runs()).front()).text;
  EXPECT_THAT(html, HasSubstr("In global layers a query averages over "));
  EXPECT_THAT(html, HasSubstr(" at 64 tokens and over "));
  EXPECT_THAT(html, HasSubstr("; in window:60 layers a query averages over "));  // at 128 alone: 64 does not fill it
  for (const Block& block : summary_section.blocks(mixed.runs())) {
    const auto* table = std::get_if<PaperTable>(&block);
    if (table == nullptr || table->name != "n_eff-by-attention") continue;
    ASSERT_EQ(table->rows.size(), 2u);
    EXPECT_THAT(table->rows[0][0], HasSubstr("global, layers 1, 2"));
    EXPECT_THAT(table->rows[0][1], Not(HasSubstr("*")));
    EXPECT_THAT(table->rows[1][1], HasSubstr("*"));
  }
}

/// A sink of a head at 128 tokens.
analyses::SinkKey sink_key(std::int64_t layer, std::int64_t head, std::int64_t position, std::string text, double mass,
                           analyses::TokenClass token_class = analyses::TokenClass::common) {
  analyses::SinkKey key{};
  key.length = 128;
  key.layer = layer;
  key.head = head;
  key.position = position;
  key.token = 7;
  key.text = std::move(text);
  key.token_class = token_class;
  key.column_mean = key.second_half_mean = mass;
  key.value_norm_ratio = 0.25;
  key.stream_ratio = 6.6;
  return key;
}

/// @param mass  [length, sample, layer, head]
/// @param full  the place in `mass` of a head whose list of keys is full
analyses::SinkKeys made_sinks(const runfile::RunReader& reader, std::vector<analyses::SinkKey> sinks,
                              std::vector<analyses::SinkKey> counted, const std::vector<double>& mass,
                              std::optional<std::size_t> full = {}) {
  std::vector<double> is_full(mass.size(), 0.0);
  if (full) is_full[*full] = 1;
  return {0.3,
          false,
          analyses::usable_lengths(reader),
          std::move(sinks),
          std::move(counted),
          {},
          {},
          {},
          analyses::Cells::of(reader, mass),
          analyses::Cells::of(reader, mass),
          analyses::Cells::of(reader, is_full),
          full ? 1 : 0};
}

TEST(SinkMap, NamesTokensWhereverTheyAre) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run(1);
  run.attention = {"global", "window:60", "window:60"};
  const auto reader = write_run(folder.path() / "run", run);
  std::vector<double> mass(2 * 1 * 3 * 2, 0.0);  // length, sample, layer, head
  mass[6] = 0.5;                                 // 128 tokens, layer 0, head 0
  mass[6 + 3] = 0.6;                             // layer 1, head 1
  mass[6 + 4] = 0.35;                            // layer 2, head 0
  const std::vector<analyses::SinkKey> found = {sink_key(0, 0, 0, "<bos>", 0.5, analyses::TokenClass::bos),
                                                sink_key(1, 1, 40, "<b>\n", 0.35), sink_key(1, 1, 90, "<b>\n", 0.25),
                                                sink_key(2, 0, 40, "<b>\n", 0.35)};
  const analyses::SinkKeys keys = made_sinks(reader, {found[0], found[1], found[3]}, found, mass);
  const SinkMap map = sink_map_of_keys(reader, keys);
  EXPECT_TRUE(map.everywhere);
  EXPECT_EQ(map.sinks(), 3u);
  const auto strong = strongest(map, 5);
  ASSERT_EQ(strong.size(), 3u);
  EXPECT_EQ(strong[0]->layer, 1);
  EXPECT_EQ(strong[0]->head, 1);
  EXPECT_TRUE(strong[0]->elsewhere);
  EXPECT_EQ(strong[0]->token, "<b>\\x0a");  // a line break is shown, not made
  EXPECT_FALSE(strong[1]->elsewhere);
  EXPECT_EQ(
      sink_sentence(map, [](const std::string& token) { return "[" + token + "]"; }),
      "2 heads of window layers 1, 2 put 35 to 60% of their attention on [<b>\\x0a] (value norm 0.25 of the median, "
      "largest entry of the hidden state 6.6 times the median); 1 head of global layer 0 puts 50% of its attention on "
      "[BOS] (value norm 0.25 of the median, largest entry of the hidden state 6.6 times the median). 3 of 6 heads "
      "have "
      "a sink.");
}

TEST(SinkMap, ASinkThatAWindowHidesIsOneOfEarlyQueries) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run(1);
  run.attention = {"window:16", "window:16", "window:16"};
  const auto reader = write_run(folder.path() / "run", run);
  const std::vector<double> nothing(12, 0.0);
  analyses::SinkKey early = sink_key(1, 0, 0, "<bos>", 0.4, analyses::TokenClass::bos);
  early.second_half_mean = 0;
  const analyses::SinkKeys keys = made_sinks(reader, {early}, {early}, nothing);
  EXPECT_EQ(
      sink_sentence(sink_map_of_keys(reader, keys), [](const std::string& token) { return token; }),
      "BOS is a sink for early queries only in layer 1. 1 of 6 heads has a sink, 1 of them for early queries only.");
}

/// A head may have mass on weaker keys while early queries alone see its sink.
TEST(SinkMap, TheMassOfWeakerKeysIsShownWithoutASinkToo) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run(1));
  std::vector<double> mass(12, 0.0);
  mass[6] = 0.24;      // 128 tokens, layer 0, head 0
  mass[6 + 3] = 0.39;  // layer 1, head 1: no key from 0.3 on
  analyses::SinkKey early = sink_key(0, 0, 0, "<bos>", 0.4, analyses::TokenClass::bos);
  early.second_half_mean = 0;
  const SinkMap map = sink_map_of_keys(reader, made_sinks(reader, {early},
                                                          {early, sink_key(0, 0, 40, "a", 0.24),
                                                           sink_key(1, 1, 40, "a", 0.2), sink_key(1, 1, 90, "b", 0.19)},
                                                          mass, 6 + 3));
  EXPECT_EQ(map.sinks(), 1u);
  EXPECT_EQ(map.early(), 1u);
  EXPECT_TRUE(map.heads[0].early);
  EXPECT_EQ(map.heads[0].token, "a");
  EXPECT_EQ(map.heads[0].early_token, "BOS");
  const auto strong = strongest(map, 5);
  ASSERT_EQ(strong.size(), 2u);
  EXPECT_EQ(strong[0]->layer, 1);
  EXPECT_FALSE(strong[0]->is_sink);
  EXPECT_FALSE(strong[0]->token_alone);
  EXPECT_EQ(shown(strong[0]->mass), "≥ 0.390");
  EXPECT_EQ(shown(strong[1]->mass), "0.240");
  EXPECT_EQ(sink_sentence(map, [](const std::string& token) { return token; }),
            "BOS is a sink for early queries only in layer 0. 1 of 6 heads has a sink, 1 of them for early queries "
            "only.");
}

TEST(SinkMap, WithoutASinkSaysSo) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run(1));
  const analyses::SinkKeys none = made_sinks(reader, {}, {}, std::vector<double>(12, 0.0));
  const SinkMap map = sink_map_of_keys(reader, none);
  EXPECT_EQ(map.sinks(), 0u);
  EXPECT_EQ(sink_sentence(map, [](const std::string& token) { return token; }),
            "No head is a sink: no token gets 0.3 of the attention of the queries that see it.");
}

TEST(Caveats, NameFillingWindowsAndFewQueries) {
  OrderedJson summary;
  const Overlaid mixed(windowed({"window:60", "global", "global"}), 1);
  caveats_section.add_json(mixed.runs().front(), summary);
  const std::string caveats = summary["caveats"].dump();
  EXPECT_THAT(caveats, HasSubstr("not judged at every length: window:60 layers: 64 (the window of 60 keys"));
  EXPECT_THAT(caveats, HasSubstr("The last quarter of 64 tokens has 16 queries."));
  EXPECT_THAT(caveats, Not(HasSubstr("The last quarter of 128")));
}

TEST(GainTheoryCaption, HasIntervalsWhereThereAreSome) {
  EXPECT_THAT(figure_of(gain_theory_section, {report_run(3), 1}).caption.shows,
              HasSubstr("(markers, 95% intervals over chunks)"));
  EXPECT_THAT(figure_of(gain_theory_section, {report_run(1), 1}).caption.shows, HasSubstr("(markers)"));
}

TEST(SinkFigure, HeadsThatCannotSeeBosAreNotDrawn) {
  SyntheticRun run = report_run(2);
  run.attention = {"window:8", "global", "global"};
  for (const std::size_t runs : {std::size_t{1}, std::size_t{2}}) {
    const CaptionedFigure figure = figure_of(sinks_section, {run, runs});
    EXPECT_THAT(figure.figure->script, Not(HasSubstr("$apart"))) << runs;
    EXPECT_THAT(figure.caption.shows, HasSubstr("2 heads that cannot see BOS are not drawn")) << runs;
  }
  run.attention = {"window:8", "window:8", "window:8"};
  const CaptionedFigure all = figure_of(sinks_section, {run, 1});
  EXPECT_THAT(all.figure->script, HasSubstr("$apart"));
  EXPECT_THAT(all.caption.shows, HasSubstr("No head can see BOS"));
}

TEST(ContextFigure, KindsOfAttentionAreNotMixed) {
  const CaptionedFigure mixed = figure_of(context_section, Overlaid(windowed({"window:60", "global", "global"}), 1));
  EXPECT_THAT(mixed.figure->script, HasSubstr("window:60"));
  EXPECT_THAT(mixed.figure->script, HasSubstr("$n_eff_1"));
  EXPECT_THAT(mixed.caption.shows, HasSubstr("all layers of a kind of attention"));
  EXPECT_THAT(mixed.caption.shows, HasSubstr("In the global layers from 64"));
  EXPECT_THAT(figure_of(context_section, {report_run(3), 1}).figure->script, Not(HasSubstr("$n_eff_1")));
}

// The table of sections

TEST(SinkCaption, TheSinkShareHasItsDenominator) {
  SyntheticRun run = report_run(2);
  run.value = [](const testing::CellKey& key) -> std::optional<double> {
    if (key.name != "summary/column_mean") return std::nullopt;
    return key.last == 0 && key.layer == 0 && key.head == 0 && key.sample == 0 ? 0.4 : 0.1;
  };
  const Overlaid one(run, 1);
  const std::string shown = figure_of(sinks_section, one).caption.shows;
  // 2 lengths x 2 chunks x 3 layers x 2 heads
  EXPECT_THAT(shown, HasSubstr("Sink share of BOS: in 2 of 24 (head, chunk) pairs (8.33%) the queries put more than "
                               "0.3 of their attention on it on average."));
}

TEST(HeadsTable, HasEveryHeadAtEveryLengthWithItsAttention) {
  SyntheticRun run = report_run(2);
  run.attention = {"window:16", "global", "global"};
  run.value = [](const testing::CellKey& key) -> std::optional<double> {
    if (key.name == "summary/n_eff") return static_cast<double>(key.length + key.layer * 10 + key.head + key.sample);
    return std::nullopt;
  };
  const Overlaid one(run, 1);
  const auto tables = heads_section.tables(one.runs().front());
  const auto found =
      std::find_if(tables.begin(), tables.end(), [](const CsvTable& table) { return table.name == "heads"; });
  ASSERT_NE(found, tables.end());
  const std::vector<std::string> first(found->header.begin(), found->header.begin() + 7);
  EXPECT_THAT(first, ElementsAre("tokens", "chunks", "layer", "head", "kv_head", "attention", "key_0_visible"));
  EXPECT_EQ(found->rows.size(), 2u * 3u * 2u);
  const auto column = [&](const std::string& name) {
    return std::find(found->header.begin(), found->header.end(), name) - found->header.begin();
  };
  for (const char* name : {"n_eff", "entropy", "kalman_gain", "kalman_gain_scaled", "bos_mass", "gate"})
    EXPECT_LT(column(name), std::ssize(found->header)) << name;
  const auto& row = found->rows.at(1);  // 64 tokens, layer 0, head 1, chunks 0 and 1
  EXPECT_EQ(std::get<std::int64_t>(row.at(0)), 64);
  EXPECT_EQ(std::get<std::int64_t>(row.at(4)), 0);
  EXPECT_EQ(std::get<std::string>(row.at(5)), "window:16");
  EXPECT_EQ(std::get<std::int64_t>(row.at(6)), 0);
  EXPECT_EQ(std::get<double>(row.at(static_cast<std::size_t>(column("n_eff")))), 64 + 1 + 0.5);
  EXPECT_EQ(std::get<std::string>(found->rows.back().at(5)), "global");
  EXPECT_EQ(std::get<std::int64_t>(found->rows.back().at(6)), 1);
}

/// docs/report.md says so.
TEST(HeadsTable, HasEveryNumberOfAHeadInTheSummary) {
  SyntheticRun run = report_run(2);
  run.value = [](const testing::CellKey& key) -> std::optional<double> {
    if (key.name == "summary/sink_bound_slack_min") return key.sample == 0 ? 0.25 : -0.5;
    if (key.name == "summary/n_eff_var") return 3.0 + static_cast<double>(key.sample);
    if (key.name == "summary/first_mass") return 0.01 * static_cast<double>(key.last);
    return std::nullopt;
  };
  const Overlaid one(run, 1);
  const auto tables = heads_section.tables(one.runs().front());
  const CsvTable& table = *std::ranges::find(tables, "heads", &CsvTable::name);
  const std::set<std::string> header(table.header.begin(), table.header.end());
  EXPECT_EQ(header.size(), table.header.size());
  for (const runfile::DatasetInfo& info : runfile::schema()) {
    if (info.group != runfile::Group::summary || !info.present(one.runs().front().request())) continue;
    if (std::ranges::find(info.axes, runfile::Axis::head) == info.axes.end()) continue;
    const bool by_key = info.axes.back() == runfile::Axis::key;
    for (int key = 0; key < (by_key ? 8 : 1); ++key)
      EXPECT_TRUE(header.contains(by_key ? fmt::format("{}_{}", info.name, key) : info.name)) << info.name;
  }
  const auto value = [&](const char* name) {
    return std::get<double>(
        table.rows.front().at(static_cast<std::size_t>(std::ranges::find(table.header, name) - table.header.begin())));
  };
  EXPECT_EQ(value("sink_bound_slack_min"), -0.5);  // the smallest, not a mean
  EXPECT_EQ(value("n_eff_var"), 3.5);
  EXPECT_EQ(value("first_mass_7"), 0.07);
}

TEST(SweepSections, NamesAndFilesAreGivenOnce) {
  std::set<std::string_view> names;
  std::set<std::string> stems;
  for (const Section<SweepRun>* section : sweep_sections) {
    EXPECT_TRUE(names.insert(section->name).second) << section->name;
    EXPECT_FALSE(section->title.empty()) << section->name;
    EXPECT_THAT(section->question, ::testing::EndsWith("?")) << section->name;
    for (const std::string& stem : section->files) EXPECT_TRUE(stems.insert(stem).second) << stem;
  }
}

/// A section that fails leaves nulls under these keys: a program that reads one must find it.
TEST(SweepSections, EachListsTheKeysThatItWrites) {
  const Overlaid overlaid(report_run(), 1);
  for (const Section<SweepRun>* section : sweep_sections) {
    if (!section->add_json) continue;
    OrderedJson summary = OrderedJson::object();
    section->add_json(overlaid.runs().front(), summary);
    for (const auto& [key, value] : summary.items()) {
      const auto names_it = [&, &name = key](std::string_view known) {
        return name == known || name == std::string(known) + "_reason";
      };
      EXPECT_TRUE(std::any_of(section->keys.begin(), section->keys.end(), names_it)) << section->name << ": " << key;
    }
  }
}

/// The table in docs/report.md is written by hand; this prints the right one where they differ.
TEST(SweepSections, TheIndexInTheDocumentationIsThisTable) {
  std::string index = "| section | what it answers | files |\n| --- | --- | --- |\n";
  for (const Section<SweepRun>* section : sweep_sections) {
    std::string files;
    for (const std::string& stem : section->files) files += (files.empty() ? "`" : ", `") + stem + "`";
    index += fmt::format("| {} | {} | {} |\n", section->title, section->question, files);
  }
  EXPECT_THAT(read_text_file(fs::path(GAINLENS_SOURCE_DIR) / "docs" / "report.md"), HasSubstr(index)) << index;
}

// A report of sections, whatever they are about

struct Thing {
  std::string name;
  std::string label() const { return name; }
};

std::vector<Block> some_words(std::span<const Thing>) {
  return {paragraph("some words")};
}
void one_key(const Thing& thing, OrderedJson& summary) {
  summary["one"] = thing.name;
}
std::vector<Block> fail(std::span<const Thing>) {
  throw RunFailed("the tape is torn");
}
std::vector<Block> refuse(std::span<const Thing>) {
  throw InvalidArgument("--at: no such length");
}
std::vector<Block> unlisted_table(std::span<const Thing>) {
  return {PaperTable{"unlisted", "caption", {{"a"}}, {{"1"}}}};
}

const std::vector<Thing> things = {{"a"}};

MadeReport made(std::vector<Section<Thing>> sections) {
  std::vector<const Section<Thing>*> table;
  for (const Section<Thing>& section : sections) table.push_back(&section);
  return make_report<Thing>(table, things);
}

TEST(MadeReport, ASectionThatFailsIsNamedAndTheOthersAreWritten) {
  const Section<Thing> good{
      .name = "good", .title = "Good", .question = "?", .blocks = some_words, .add_json = one_key};
  const Section<Thing> bad{
      .name = "bad", .title = "Bad", .question = "?", .keys = {"bad"}, .blocks = fail, .add_json = one_key};
  const TemporaryFolder folder;
  const WrittenReport written = write_files(made({bad, good}), folder.path() / "out");
  EXPECT_THAT(written.failed, ElementsAre("bad: the tape is torn"));
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_THAT(page, HasSubstr("This section could not be made: the tape is torn."));
  EXPECT_THAT(page, HasSubstr("some words"));
  const Json summary = read_json_file(folder.path() / "out" / "summary.json");
  EXPECT_TRUE(summary.at("bad").is_null());
  EXPECT_EQ(summary.at("bad_reason"), "the tape is torn");
  EXPECT_EQ(summary.at("one"), "a");
}

TEST(MadeReport, WhatTheUserAskedForWronglyEndsIt) {
  const Section<Thing> section{.name = "s", .title = "S", .question = "?", .blocks = refuse};
  EXPECT_THAT([&] { made({section}); }, ThrowsMessage<InvalidArgument>(HasSubstr("no such length")));
}

TEST(MadeReport, TwoSectionsOfOneNameAndFilesThatAreNotListedAreMistakes) {
  const Section<Thing> section{.name = "s", .title = "S", .question = "?", .blocks = some_words};
  EXPECT_THAT([&] { made({section, section}); }, ThrowsMessage<InternalError>(HasSubstr("two sections")));
  Section<Thing> unlisted = section;
  unlisted.blocks = unlisted_table;
  EXPECT_THAT([&] { made({unlisted}); }, ThrowsMessage<InternalError>(HasSubstr("lists its file unlisted")));
}

}  // namespace sections_test
}  // namespace gainlens::reports
