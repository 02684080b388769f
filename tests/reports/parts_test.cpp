#include "reports/html.h"
#include "reports/plot_script.h"
#include "reports/program.h"
#include "reports/results.h"
#include "reports/tables.h"
#include "reports/terminal.h"
#include "reports/wording.h"

#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::reports {
namespace {

using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST(Csv, QuotesWhatNeedsQuotes) {
  const Table table{
      "t",
      {"name", "n", "x"},
      {{std::string("a,\"b\""), std::int64_t{3}, 0.1}, {std::string("c"), std::int64_t{4}, std::numeric_limits<double>::quiet_NaN()}}};
  EXPECT_EQ(to_csv(table), "name,n,x\n\"a,\"\"b\"\"\",3,0.1\nc,4,\n");
}

TEST(Html, NothingFromAFileIsMarkup) {
  EXPECT_EQ(escape_html("<a href='x'>\"&\""), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;");
}

TEST(Html, TableShowsFourDigitsAndDashes) {
  const Table table{"t", {"x", "y"}, {{0.123456, std::numeric_limits<double>::quiet_NaN()}}};
  const std::string html = html_table(table, {"x<y", "z"});
  EXPECT_THAT(html, HasSubstr("<th>x&lt;y</th>"));
  EXPECT_THAT(html, HasSubstr("<td>0.1235</td><td>–</td>"));
}

TEST(Html, InlineSvgHasIdsOfItsOwn) {
  const std::string svg = "<?xml version=\"1.0\"?><svg width=\"1\"><g id='p'/><use xlink:href='#p'/><g fill=\"url(#p)\"/></svg>\n";
  EXPECT_EQ(inline_svg(svg, "fig", "a \"b\""),
            "<svg role=\"img\" aria-label=\"a &quot;b&quot;\" width=\"1\"><g id='fig-p'/><use xlink:href='#fig-p'/><g "
            "fill=\"url(#fig-p)\"/></svg>");
}

TEST(PlotScript, TicksThatWouldOverlapLoseTheirLabel) {
  PlotScript script;
  const std::vector<std::int64_t> lengths = {1024, 1088, 4096};
  EXPECT_THAT(script.length_axis(lengths).text(), HasSubstr("'1k' 1024, '' 1088, '4k' 4096"));
}

TEST(PlotScript, ValueAxisHasRoundTicks) {
  EXPECT_THAT(PlotScript().value_axis(0.82, 0.97).text(), HasSubstr("set xtics 0.05\n"));          // three steps; of 0.02 it would be eight
  EXPECT_THAT(PlotScript().value_axis(0.5, 0.5).text(), HasSubstr("set xrange [0.4944:0.5056]"));  // 1% to each side and a margin
}

TEST(PlotScript, MissingNumbersAreNaN) {
  PlotScript script;
  EXPECT_THAT(script.data("d", {{1, std::numeric_limits<double>::infinity()}}).text(), HasSubstr("$d << EOD\n1 NaN\nEOD\n"));
}

TEST(Program, ErrorsAreQuoted) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      [&] {
        run_program({"sh", "-c", "echo lost >&2; exit 4"}, folder.path(), {}, "sh");
      },
      ThrowsMessage<RunFailed>(HasSubstr("sh: ended with exit code 4: lost")));
  EXPECT_THAT([&] { run_program({"sh", "-c", "kill -9 $$"}, folder.path(), {}, "sh"); }, ThrowsMessage<RunFailed>(HasSubstr("signal 9")));
  EXPECT_THAT([&] { run_program({"no-such-program"}, folder.path(), {}, "the package"); },
              ThrowsMessage<RunFailed>(HasSubstr("install the package")));
}

TEST(Program, RunsInTheFolderWithItsEnvironment) {
  const TemporaryFolder folder;
  run_program({"sh", "-c", "echo $GREETING > here"}, folder.path(), {{"GREETING", "hello"}}, "sh");
  EXPECT_EQ(read_text_file(folder.path() / "here"), "hello\n");
}

TEST(Wording, NumberRanges) {
  EXPECT_EQ(number_ranges({0, 1, 2, 3, 7, 9, 10}), "0-3, 7, 9, 10");
  EXPECT_EQ(number_ranges({}), "");
}

TEST(Wording, OneIsNotPlural) {
  EXPECT_EQ(counted(1, "head"), "1 head");
  EXPECT_EQ(counted(0, "head"), "0 heads");
}

TEST(Terminal, ShowsPolicyCorrelationsAndNaivePs) {
  const TemporaryFolder folder;
  SyntheticRun run;
  run.attention = {"window:512", "global", "global", "global", "global", "global", "global", "global"};
  const std::string text = print_sink_vs_k(analyses::sink_vs_k(write_run(folder.path() / "run", run)));
  EXPECT_THAT(text, HasSubstr("32 heads, means over chunks at 4k and 8k"));
  EXPECT_THAT(text, HasSubstr("BOS policy: auto: the tokenizer puts token 1 first"));
  EXPECT_THAT(text, HasSubstr("naive p"));
  EXPECT_THAT(text, HasSubstr("within layers"));
  EXPECT_THAT(text, HasSubstr("set apart: layers 0 (window:512)"));
  EXPECT_THAT(text, HasSubstr("BOS mass above 0.3 : 1 head in layers 4"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace gainlens::reports
