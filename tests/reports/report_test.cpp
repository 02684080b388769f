#include "reports/figures/figure.h"
#include "reports/sweep/sweep_report.h"

#include "analyses/synthetic_run.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/json.h"
#include "reports/page/page_style.h"
#include "reports/report_testing.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

namespace gainlens::reports {
namespace report_test {

namespace fs = std::filesystem;
using gainlens::testing::contents;
using gainlens::testing::other_model;
using gainlens::testing::report_run;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

/// Sets PATH as long as the object exists.
class Path {
 public:
  explicit Path(const std::string& value) : before_(std::getenv("PATH")) { ::setenv("PATH", value.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() { ::setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_;
};

/// Writes a shell script as the program `name` into a folder.
void write_program(const fs::path& folder, const std::string& name, const std::string& script) {
  fs::create_directories(folder);
  std::FILE* file = std::fopen((folder / name).c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(("#!/bin/sh\n" + script + "\n").c_str(), file);
  std::fclose(file);
  fs::permissions(folder / name, fs::perms::owner_all);
}

/// What is written as SVG alone: a test that is not about the other formats need not wait for them.
const Writing svg_alone = {.style = {.formats = {"svg"}}};

TEST(Report, EveryFileIsThereAndTheSameTwice) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  const WrittenReport report = write_report(reader, folder.path() / "one");
  EXPECT_THAT(report.left_out, IsEmpty());
  write_report(reader, folder.path() / "elsewhere" / "two");
  const auto one = contents(folder.path() / "one"), two = contents(folder.path() / "elsewhere" / "two");
  ASSERT_EQ(one.size(), report.files.size());
  for (const auto& [file, bytes] : one) EXPECT_TRUE(two.contains(file) && two.at(file) == bytes) << file;

  for (const char* figure :
       {"sink-map", "context", "gain-theory", "sink-vs-k", "sink-lemma", "heatmap-n_eff", "heatmap-kalman_gain",
        "heatmap-bos_mass", "heatmap-entropy", "heatmap-gate", "value-norms"}) {
    for (const char* format : {"svg", "pdf", "png"})
      EXPECT_TRUE(one.contains(fmt::format("{}.{}", figure, format))) << figure << "." << format;
  }
  for (const char* file : {"summary.json", "report.html", "tables/context.csv", "tables/heads.csv",
                           "tables/sink-vs-k.csv", "tables/sinks.csv"})
    EXPECT_TRUE(one.contains(file)) << file;
}

TEST(Report, SummaryHasItsKeysAndEveryNullAReason) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.gated = false;
  run.lengths = {64};
  run.samples = 1;
  write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, svg_alone);
  const Json summary = read_json_file(folder.path() / "out" / "summary.json");
  std::set<std::string> keys;
  for (const auto& [key, value] : summary.items()) keys.insert(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("audit", "caveats", "checks", "context", "gain_theory", "heatmaps",
                                           "lengths", "neighbouring_chunks", "overview", "policies", "run", "sink_vs_k",
                                           "sinks", "value_norms", "verdicts"));

  std::size_t nulls = 0;
  const auto visit = [&](const auto& self, const Json& node) -> void {
    if (node.is_object()) {
      for (const auto& [key, value] : node.items()) {
        if (value.is_null()) {
          ++nulls;
          EXPECT_TRUE(node.contains(key + "_reason")) << key;
        }
        self(self, value);
      }
    } else if (node.is_array()) {
      for (const Json& value : node) self(self, value);
    }
  };
  visit(visit, summary);
  EXPECT_GT(nulls, 5u);
}

TEST(Report, PageNeedsNothingElse) {
  const TemporaryFolder folder;
  write_report(write_run(folder.path() / "run", report_run()), folder.path() / "out", {}, svg_alone);
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_EQ(count(page, "<svg "), 11u);
  EXPECT_EQ(count(page, "<script"), 2u);  // our script, and numbers, which no browser takes for one
  EXPECT_EQ(count(page, fmt::format("<script>{}</script>", page_script())), 1u);
  EXPECT_EQ(count(page, "<div data-part=\"explore\" hidden><script type=\"application/octet-stream\">"), 1u);
  EXPECT_EQ(count(page, fmt::format("; script-src '{}'\">", script_source(page_script()))), 1u);
  EXPECT_EQ(count(page, "script-src"), 1u);
  // Without the script, what it fills is not seen.
  EXPECT_EQ(count(page, "<section id=\"explore-section\" class=\"scripted\" hidden>"), 1u);
  EXPECT_EQ(count(page, "<a href=\"#explore-section\" class=\"scripted\" hidden>"), 1u);
  EXPECT_EQ(count(page, "<link"), 0u);
  EXPECT_EQ(count(page, "<img"), 0u);
  EXPECT_EQ(count(page, "<image"), 0u);
  EXPECT_THAT(page, HasSubstr("BOS policy: auto: the tokenizer puts token 1 first"));
  EXPECT_EQ(count(page, "<table>"), count(page, "<caption>"));
  EXPECT_EQ(count(page, "<figure "), count(page, "<figcaption>"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(page, HasSubstr("@media print"));
  EXPECT_THAT(page, Not(HasSubstr(folder.path().string())));
  // No two figures use the same id.
  std::set<std::string> ids;
  for (auto at = page.find(" id=\""); at != std::string::npos; at = page.find(" id=\"", at + 1)) {
    const std::string id = page.substr(at + 5, page.find('"', at + 5) - at - 5);
    EXPECT_TRUE(ids.insert(id).second) << id;
  }
}

TEST(Report, TheFirstScreenSaysWhatWasRunAndWhereTheSinksAre) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  const auto page_of = [&] {
    write_report(reader, folder.path() / "out", {}, svg_alone);
    return read_text_file(folder.path() / "out" / "report.html");
  };
  // Without log.json a run has no names.
  const std::string unnamed = "weights " + std::string(12, 'b') + " on text ";
  EXPECT_THAT(page_of(), HasSubstr("<title>" + unnamed));
  write_file_atomically(folder.path() / "run" / "log.json",
                        R"({"starts": [{"model": "/far/tiny-model.gguf", "text": "/far/a <b> text.txt"}],
                            "combined": null})");
  const std::string page = page_of();
  EXPECT_THAT(page, HasSubstr("<title>tiny-model on a &lt;b&gt; text.txt"));
  EXPECT_THAT(page, HasSubstr("<h1>Attention of tiny-model on a &lt;b&gt; text.txt</h1>"));
  EXPECT_THAT(page, HasSubstr("Contexts up to 128 tokens, 2 chunks; NLL "));
  const auto contents = page.find("<nav "), map = page.find("id=\"figure-sink-map\"");
  EXPECT_LT(page.find("attention on BOS (value norm 0.1"), contents);
  EXPECT_LT(map, contents);
  EXPECT_LT(page.find("id=\"table-strongest-sinks\""), contents);
  EXPECT_LT(page.find("id=\"table-n_eff-by-attention\""), contents);
}

TEST(Report, AnOlderRunSaysThatItsSinksAreThoseOfTheFirstKeys) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.version = 3;
  write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, svg_alone);
  EXPECT_THAT(read_text_file(folder.path() / "out" / "report.html"),
              HasSubstr("older version, which measured sinks at keys 0 to 7 alone"));
  EXPECT_EQ(read_json_file(folder.path() / "out" / "summary.json").at("overview").at("sinks").at("measured"),
            "BOS alone");
}

TEST(Report, OneThingHasOneName) {
  const TemporaryFolder folder;
  write_report(write_run(folder.path() / "run", report_run()), folder.path() / "out", {}, svg_alone);
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  for (const char* other : {"key 0", "alpha_1", "<i>α</i><sub>1</sub>", "α_1", "p<sub>0</sub>", "25,598", "SASRec"})
    EXPECT_THAT(page, Not(HasSubstr(other)));
  EXPECT_EQ(count(page, "BOS policy: "), 1u);
  for (const char* explained : {"is the number of keys that a query averages over", "the evidence, is the precision of",
                                "the Kalman gain, is the share of that reading"})
    EXPECT_EQ(count(page, explained), 1u) << explained;
}

TEST(Report, ThePaperHasAFoldOrAPage) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  const fs::path out = folder.path() / "out";
  write_report(reader, out, {}, svg_alone);
  std::string page = read_text_file(out / "report.html");
  const auto fold = page.find("<details class=\"paper\"");
  ASSERT_NE(fold, std::string::npos);
  for (const char* section : {"verdicts-section", "gain-theory-section", "audit-section"})
    EXPECT_GT(page.find(fmt::format("<section id=\"{}\"", section)), fold) << section;
  EXPECT_LT(page.find("<section id=\"files-section\""), fold);
  EXPECT_FALSE(fs::exists(out / "paper.html"));

  EXPECT_THAT(write_report(reader, out, {}, {.paper_page = true}).files, ::testing::Contains(fs::path("paper.html")));
  page = read_text_file(out / "report.html");
  EXPECT_THAT(page, Not(HasSubstr("<section id=\"verdicts-section\"")));
  EXPECT_THAT(page, HasSubstr("<a href=\"paper.html\">"));
  const std::string paper = read_text_file(out / "paper.html");
  EXPECT_THAT(paper, HasSubstr("<section id=\"verdicts-section\""));
  EXPECT_THAT(paper, Not(HasSubstr("<section id=\"files-section\"")));
  EXPECT_TRUE(fs::exists(out / "tables" / "verdicts.tex"));

  write_report(reader, out, {}, svg_alone);  // the page of an earlier report does not stay
  EXPECT_FALSE(fs::exists(out / "paper.html"));
}

TEST(Report, AStyleSetsFontSizesColoursFormatsAndFigures) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  const fs::path out = folder.path() / "out", file = folder.path() / "style.json";
  write_report(reader, out);
  EXPECT_THAT(read_text_file(out / "context.svg"), HasSubstr("#0072b2"));
  EXPECT_TRUE(fs::exists(out / "context.png"));
  write_file_atomically(file, R"({"font": "DejaVu Serif", "font_size": 9, "column_width": 5, "page_width": 7.5,
    "colours": {"blue": "#123456", "vermillion": "#0072B2"}, "map_colours": ["#ffffff", "#000080"],
    "formats": ["svg", "pdf"], "figures": ["context", "heatmap-n_eff"]})");
  write_report(reader, out, {}, {.style = read_style(file)});
  const std::string context = read_text_file(out / "context.svg"), map = read_text_file(out / "heatmap-n_eff.svg");
  EXPECT_THAT(context, HasSubstr("DejaVu Serif"));
  EXPECT_THAT(context, HasSubstr("font-size=\"12.0"));  // 9 pt in pixels
  EXPECT_THAT(context, HasSubstr("width=\"720\""));     // 7.5 in
  EXPECT_THAT(map, HasSubstr("width=\"480\""));         // 5 in
  EXPECT_THAT(context, HasSubstr("'#123456'"));         // gnuplot quotes lines and points so,
  EXPECT_THAT(context, Not(HasSubstr("'#0072b2'")));
  EXPECT_THAT(map, Not(HasSubstr("#fde725")));
  EXPECT_FALSE(fs::exists(out / "context.png"));
  EXPECT_FALSE(fs::exists(out / "value-norms.svg"));
  EXPECT_EQ(count(read_text_file(out / "report.html"), "<svg "), 2u);
  write_file_atomically(file, R"({"figures": ["contxt"]})");
  EXPECT_THAT([&] { write_report(reader, out, {}, {.style = read_style(file)}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("did you mean 'context'?")));
}

TEST(Style, NamesTheKeyOfABadValue) {
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "style.json";
  const auto expect = [&](const char* text, const char* message) {
    write_file_atomically(file, text);
    EXPECT_THAT([&] { read_style(file); }, ThrowsMessage<InvalidArgument>(HasSubstr(message))) << text;
  };
  expect(R"({"fnt": "Arial"})", "style.json: 'fnt' is not a known key; did you mean 'font'?");
  expect(R"({"font": "Arial'; system"})", "'font' is \"Arial'; system\"; must be the name of a font");
  expect(R"({"font_size": 40})", "'font_size' is 40; must be at least 5 and below 12");
  expect(R"({"page_width": "wide"})", "'page_width' is \"wide\"; must be a number");
  expect(R"({"colours": {"blu": "#000000"}})", "'colours': 'blu' is not a known colour");
  expect(R"({"colours": {"blue": "red"}})", "'colours': 'blue' is \"red\"; must be a colour such as");
  expect(R"({"map_colours": ["#000000"]})", "'map_colours' is [\"#000000\"]; must be a list of at least 2 colours");
  expect(R"({"formats": ["eps"]})", "'formats': 'eps' is not a format; known are svg, pdf, png");
  expect(R"({"formats": []})", "'formats' is []; must be a list of at least one name");
  expect(R"({"figures": ["context", "context"]})", "'figures' names context twice");
  expect("[]", "must be an object");
}

TEST(Report, SomeLengthsAlone) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.lengths = {64, 128, 256};
  auto reader = write_run(folder.path() / "run", run);
  EXPECT_THAT(
      [&] {
        reader.keep_lengths({64, 100});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("no length of 100 tokens; it has 64, 128, 256")));
  reader.keep_lengths({64, 128});
  write_report(reader, folder.path() / "out", {}, svg_alone);
  const Json summary = read_json_file(folder.path() / "out" / "summary.json");
  ASSERT_EQ(summary.at("lengths").size(), 2u);
  EXPECT_EQ(summary.at("lengths").at(1).at("tokens"), 128);
  EXPECT_EQ(summary.at("overview").at("sinks").at("tokens"), 128);
  EXPECT_THAT(read_text_file(folder.path() / "out" / "report.html"), HasSubstr("Contexts up to 128 tokens"));
}

TEST(Report, TextFromTheRunIsEscaped) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.family = "<script>alert(1)</script>";
  run.bos_policy = "always & \"<b>\"";
  write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, svg_alone);
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_EQ(count(page, "<script"), 2u);  // as in a page without such a name
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("<b>\"")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST(Report, OneLayerOneHeadNoGateNoBos) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.lengths = {32};
  run.samples = run.layers = run.heads = 1;
  run.gated = false;
  run.bos.reset();
  run.bos_policy = "never";
  const WrittenReport report =
      write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, svg_alone);
  ASSERT_EQ(report.left_out.size(), 1u);
  EXPECT_THAT(report.left_out[0], HasSubstr("gain-theory: the run has one length"));
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_THAT(page, HasSubstr("The model has no attention gate"));
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, HasSubstr("BOS is an ordinary token"));
}

TEST(Report, RunWithoutStatisticsSaysWhyNothingIsDrawn) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.statistics = run.gated = false;
  const WrittenReport report =
      write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, svg_alone);
  EXPECT_EQ(report.left_out.size(), 10u);
  EXPECT_THAT(read_text_file(folder.path() / "out" / "report.html"),
              HasSubstr("Left out: the run has no summary/n_eff"));
}

TEST(Report, FiguresOfAnEarlierReportDoNotStay) {
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "out";
  write_report(write_run(folder.path() / "run", report_run()), out, {}, svg_alone);
  ASSERT_TRUE(fs::exists(out / "gain-theory.svg"));
  SyntheticRun one_length = report_run();
  one_length.lengths = {64};
  write_report(write_run(folder.path() / "other", one_length), out, {}, svg_alone);
  EXPECT_FALSE(fs::exists(out / "gain-theory.svg"));
  EXPECT_TRUE(fs::exists(out / "context.svg"));
}

TEST(Report, MissingGnuplotSaysWhatToInstallAndLeavesNothing) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  const Path path(folder.path().string());
  EXPECT_THAT([&] { write_report(reader, folder.path() / "out", {}, svg_alone); },
              ThrowsMessage<RunFailed>(HasSubstr("install gnuplot")));
  EXPECT_TRUE(fs::is_empty(folder.path() / "out"));
}

TEST(Report, AFigureThatWasNotWrittenToItsEndIsBlamedOnItsProgram) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  const std::string path = (folder.path() / "bin").string() + ":" + std::getenv("PATH");
  const auto expect = [&](const std::string& message) {
    const Path set(path);
    EXPECT_THAT([&] { write_report(reader, folder.path() / "out"); }, ThrowsMessage<RunFailed>(HasSubstr(message)));
  };
  write_program(folder.path() / "bin", "rsvg-convert", "printf '%%PDF-1.5 and no more'");
  expect("rsvg-convert: wrote 20 bytes of ");
  write_program(folder.path() / "bin", "gnuplot", "printf '<svg><g>'");  // gnuplot ignores that it could not write
  expect("gnuplot: wrote 8 bytes of ");
}

TEST(Report, FailingGnuplotIsQuotedAndLeavesTheOldReport) {
  const TemporaryFolder folder;
  const auto reader = write_run(folder.path() / "run", report_run());
  fs::create_directories(folder.path() / "out");
  std::fclose(std::fopen((folder.path() / "out" / "context.svg").c_str(), "w"));
  write_program(folder.path() / "bin", "gnuplot", "echo no such font >&2\nexit 3");
  const Path path((folder.path() / "bin").string() + ":" + std::getenv("PATH"));
  EXPECT_THAT([&] { write_report(reader, folder.path() / "out", {}, svg_alone); },
              ThrowsMessage<RunFailed>(HasSubstr("exit code 3: no such font")));
  EXPECT_EQ(contents(folder.path() / "out").size(), 1u);
}

// Several runs

TEST(ReportOfSeveral, OverlaysFiguresAndTabulatesDifferences) {
  const TemporaryFolder folder;
  const auto plain = write_run(folder.path() / "plain", other_model(report_run()));
  const auto gated = write_run(folder.path() / "gated", report_run());
  const std::vector<RunInput> runs = {{"plain", plain}, {"gated_1", gated}};
  const fs::path out = folder.path() / "out";
  EXPECT_THAT(write_report(runs, out).left_out, IsEmpty());
  const std::string page = read_text_file(out / "report.html");
  EXPECT_THAT(page, HasSubstr("gated_1 less plain, paired by chunk"));
  EXPECT_THAT(page, HasSubstr("Each model is one training run"));
  for (const char* file : {"context.pdf", "tables/run-1/context.csv", "tables/run-2/sinks.csv",
                           "tables/differences.csv", "tables/differences.tex", "tables/verdicts.tex"})
    EXPECT_TRUE(fs::exists(out / file)) << file;
  const Json summary = read_json_file(out / "summary.json");
  EXPECT_EQ(summary.at("runs").size(), 2u);
  EXPECT_EQ(summary.at("comparisons").at(0).at("first"), "plain");
  EXPECT_EQ(summary.at("comparisons").at(0).at("lengths").at(0).at("n_eff").at("pairs"), 2);
  // An underscore in a label is text in the figure and does not start a subscript.
  EXPECT_THAT(read_text_file(out / "context.svg"), HasSubstr("gated_1"));
}

TEST(ReportOfSeveral, SmallerReportLeavesNoTableOfALarger) {
  const TemporaryFolder folder;
  const auto plain = write_run(folder.path() / "plain", other_model(report_run()));
  const auto gated = write_run(folder.path() / "gated", report_run());
  const std::vector<RunInput> runs = {{"plain", plain}, {"gated", gated}};
  write_report(runs, folder.path() / "out", {}, svg_alone);
  fs::create_directories(folder.path() / "out" / "tables" / "hand");
  const std::vector<std::string> own = {"my-own.tex", "heatmap-mine.tex", "hand/context.csv", "hand/differences.tex"};
  for (const std::string& file : own) std::fclose(std::fopen((folder.path() / "out" / "tables" / file).c_str(), "w"));
  write_report(gated, folder.path() / "out", {}, svg_alone);
  EXPECT_FALSE(fs::exists(folder.path() / "out" / "tables" / "differences.tex"));
  EXPECT_FALSE(fs::exists(folder.path() / "out" / "tables" / "run-1" / "context.csv"));
  for (const std::string& file : own) EXPECT_TRUE(fs::exists(folder.path() / "out" / "tables" / file)) << file;
}

TEST(ReportOfSeveral, RefusesTheSameRunTwiceTheSameNameAndTooMany) {
  const TemporaryFolder folder;
  const auto one = write_run(folder.path() / "one", report_run());
  const auto other = write_run(folder.path() / "other", other_model(report_run()));
  const fs::path out = folder.path() / "out";
  const auto report = [&](const std::vector<RunInput>& runs) {
    return [&out, runs] { write_report(runs, out, {}, svg_alone); };
  };
  EXPECT_THAT(report({{"a", one}, {"b", one}}), ThrowsMessage<InvalidArgument>(HasSubstr("hold the same request")));
  EXPECT_THAT(report({{"a", one}, {"b", other}, {"c", other}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("hold the same request")));
  EXPECT_THAT(report({{"a", one}, {"a", other}}), ThrowsMessage<InvalidArgument>(HasSubstr("two runs are called 'a'")));
  EXPECT_THAT(report({{"a", one}, {"b", one}, {"c", one}, {"d", one}, {"e", one}, {"f", one}, {"g", one}}),
              ThrowsMessage<InvalidArgument>(HasSubstr("7 runs; 1 to 6")));
  EXPECT_FALSE(fs::exists(out));
}

TEST(Report, RunWithoutACompleteChunkIsRefused) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  run.lengths = {64};
  run.missing = {{64, 0}, {64, 1}};
  const auto reader = write_run(folder.path() / "run", run);
  EXPECT_THAT([&] { write_report(reader, folder.path() / "out", {}, svg_alone); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no chunk is complete; finish the sweep first")));
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
}

TEST(Report, FiguresHaveAPapersWidth) {
  const TemporaryFolder folder;
  write_report(write_run(folder.path() / "run", report_run()), folder.path() / "out", {}, svg_alone);
  for (const auto& [file, text] : contents(folder.path() / "out")) {
    if (!file.ends_with(".svg")) continue;
    const bool column = text.find("width=\"320\"") != std::string::npos,
               page = text.find("width=\"662\"") != std::string::npos;  // 3.33 and 6.9 in
    EXPECT_TRUE(column != page) << file;
    EXPECT_EQ(text.find("font-size=\"8"), std::string::npos) << file;  // 7 pt are 9.33 pixels
    EXPECT_EQ(text.find("font-size=\"9.0"), std::string::npos) << file;
  }
}

}  // namespace report_test
}  // namespace gainlens::reports
