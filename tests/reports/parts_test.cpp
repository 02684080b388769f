#include "reports/comparison/decided_changes.h"
#include "reports/figures/palette.h"
#include "reports/figures/plot_script.h"
#include "reports/figures/program.h"
#include "reports/page/csv_table.h"
#include "reports/page/page.h"
#include "reports/page/page_style.h"
#include "reports/page/paper_table.h"
#include "reports/page/typography.h"
#include "reports/terminal/sinks_terminal.h"
#include "reports/words/numbers.h"

#include "analyses/synthetic_run.h"
#include "core/error.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gainlens::reports {
namespace parts_test {

using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

TEST(Csv, QuotesWhatNeedsQuotes) {
  const CsvTable table{"t",
                       {"name", "n", "x"},
                       {{std::string("a,\"b\""), std::int64_t{3}, 0.1},
                        {std::string("c"), std::int64_t{4}, std::numeric_limits<double>::quiet_NaN()}}};
  EXPECT_EQ(to_csv(table), "name,n,x\n\"a,\"\"b\"\"\",3,0.1\nc,4,\n");
}

TEST(Csv, TextThatASpreadsheetWouldCalculateGetsAnApostrophe) {
  for (const char* text :
       {"=1+1", "+cmd", "-1+1", "@SUM(A1)", "-", "+-1", "-inf", "＝1", "－1", "+", "-5 apples", "'=1", "''+a"})
    EXPECT_EQ(csv_field(text), "'" + std::string(text));
  EXPECT_EQ(csv_field("\t=1"), "'\t=1");
  EXPECT_EQ(csv_field("=A1,\"B\""), "\"'=A1,\"\"B\"\"\"");
  EXPECT_EQ(csv_field("\r=1"), "\"'\r=1\"");
  for (const char* text : {"-5", "+2.5e3", "-0.25", "a=b", "1-2", "'quoted'", "", "–"})
    EXPECT_EQ(csv_field(text), text);
  EXPECT_EQ(to_csv({"t", {"@name", "x"}, {{std::string("=run"), -0.5}}}), "'@name,x\n'=run,-0.5\n");
  // A token may be a byte that a terminal obeys.
  EXPECT_EQ(to_csv({"t", {"token"}, {{std::string("\x1b[2J")}, {std::string("a\tb")}}}), "token\n\\x1b[2J\na\tb\n");
}

TEST(Html, NothingFromAFileIsMarkup) {
  EXPECT_EQ(escape_html("<a href='x'>\"&\""), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;&quot;");
  EXPECT_EQ(escape_html("a\x1b[31m"), "a\\x1b[31m");
}

PaperTable paper_table() {
  return {"t", "K & 5%", {{"T (tokens)"}, {"what_it", true}}, {{"1k"}, {"0.5", "a_b <c>"}}};
}

TEST(PaperTable, HtmlHasCaptionScopesAndGroupRows) {
  const std::string html = html_table(paper_table(), 3);
  EXPECT_THAT(html, HasSubstr("<caption><b>Table 3.</b> <i>K</i> &amp; 5%</caption>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\"><i>T</i> (tokens)</th><th scope=\"col\" class=\"text\">what_it</th>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"rowgroup\" colspan=\"2\">1k</th>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\">0.5</th><td class=\"text\">a_b &lt;c&gt;</td>"));
}

TEST(PaperTable, LatexIsEscapedAndUsesBooktabs) {
  const std::string latex = latex_table(paper_table());
  EXPECT_THAT(latex, HasSubstr("\\caption{$K$ \\& 5\\%}"));
  EXPECT_THAT(latex, HasSubstr("\\begin{tabularx}{\\textwidth}{@{}r>{\\raggedright\\arraybackslash}X@{}}"));
  EXPECT_THAT(latex, HasSubstr("$T$ (tokens) & what\\_it \\\\\n\\midrule"));
  EXPECT_THAT(latex, HasSubstr("\\multicolumn{2}{@{}l}{\\textit{1k}} \\\\"));
  EXPECT_THAT(latex, HasSubstr("0.5 & a\\_b \\textless{}c\\textgreater{} \\\\\n\\bottomrule"));
}

TEST(PaperTable, LatexWithoutTextColumnsNeedsNoTabularx) {
  const std::string latex = latex_table({"t", "c", {{"", true}, {"x"}}, {{"a", "1"}}});
  EXPECT_THAT(latex, HasSubstr("\\begin{tabular}{@{}lr@{}}"));
  EXPECT_THAT(latex, Not(HasSubstr("tabularx")));
}

TEST(Typography, SymbolsStandAlone) {
  EXPECT_EQ(to_html("n_eff of T and Total, lambda_obs(T_min)"),
            "<i>n</i><sub>eff</sub> of <i>T</i> and Total, <i>λ</i><sub>obs</sub>(<i>T</i><sub>min</sub>)");
  EXPECT_EQ(to_html("the paper's S"), "the paper&#39;s <i>S</i>");  // an s after an apostrophe is not a symbol
  EXPECT_EQ(to_html("no summary/n_eff"), "no summary/n_eff");
  EXPECT_EQ(to_latex("λ* ± 0.1"), "$\\lambda^{*}$ $\\pm$ 0.1");
  EXPECT_EQ(to_latex("\"not shown\" (\"a\")"), "``not shown'' (``a'')");
}

TEST(Typography, AHyphenBeforeANumberIsAMinus) {
  EXPECT_EQ(to_html("[-0.1, -2] in layers 0-3"), "[−0.1, −2] in layers 0-3");
}

TEST(Typography, EscapedTextHasNoSymbols) {
  EXPECT_EQ(escape_html("K <σ>"), "K &lt;σ&gt;");
  EXPECT_EQ(escape_latex("100% of #1_{a}^~\\ & $x$ [2]"),
            "100\\% of \\#1\\_\\{a\\}\\textasciicircum{}\\textasciitilde{}\\textbackslash{} \\& \\$x\\$ {[}2]");
}

TEST(Shown, ThreeDigitsWithTheirZeros) {
  EXPECT_EQ(shown(0.8), "0.800");
  EXPECT_EQ(shown(47.88), "47.9");
  EXPECT_EQ(shown(512.0), "512");
  EXPECT_EQ(shown(99.96), "100");
  EXPECT_EQ(shown(99.94), "99.9");
  EXPECT_EQ(shown(12345.0), "12345");
  EXPECT_EQ(shown(-0.5), "−0.500");
  EXPECT_EQ(shown(0.0), "0");
  EXPECT_EQ(shown(std::numeric_limits<double>::quiet_NaN()), "–");
}

TEST(Palette, RunsDifferInColourMarkerAndDashOrShape) {
  for (std::size_t a = 0; a < max_runs; ++a) {
    for (std::size_t b = a + 1; b < max_runs; ++b) {
      EXPECT_NE(run_style(a).colour, run_style(b).colour);
      EXPECT_NE(run_style(a).marker, run_style(b).marker);
    }
  }
}

TEST(Palette, LayersDifferInTheirDashAndHaveNoColourOfARun) {
  for (std::size_t a = 0; a < max_runs; ++a) {
    for (std::size_t b = a + 1; b < max_runs; ++b)
      EXPECT_TRUE(layer_style(a).dash != layer_style(b).dash || layer_style(a).colour != layer_style(b).colour);
    for (std::size_t run = 0; run + 1 < max_runs; ++run) EXPECT_NE(layer_style(a).colour, run_style(run).colour);
  }
}

TEST(Palette, SvgFollowsTheReadersScheme) {
  const std::string svg =
      with_schemes(with_one_notation("<svg width=\"1\"><path stroke='rgb( 51,  51,  51)' fill='rgb(1,2,999)'/></svg>"));
  EXPECT_THAT(svg, HasSubstr("<svg width=\"1\">\n<style>@media screen and (prefers-color-scheme: dark) {"));
  EXPECT_THAT(svg, HasSubstr("svg [stroke=\"#333333\" i] { stroke: #B9C0C6; }"));
  EXPECT_THAT(svg, HasSubstr("stroke='#333333' fill='rgb(1,2,999)'"));  // a text that is not a colour is unchanged
}

TEST(Html, TitlesOfPagesSayWhatOnWhat) {
  EXPECT_EQ(page_title("gemma-3-270m", "wiki.test.txt"), "gemma-3-270m on wiki.test.txt – gainlens");
  EXPECT_EQ(page_title("llama"), "llama – gainlens");
  const std::vector<std::string> pairs = {"bft against plain", "gate against plain"}, one = {pairs[0], pairs[0]};
  const std::vector<std::string> data = {"wiki", "wiki"}, other_data = {"wiki", "books"};
  EXPECT_EQ(comparisons_title(one, data), "bft against plain on wiki – gainlens");
  EXPECT_EQ(comparisons_title(pairs, data), "2 comparisons on wiki – gainlens");
  EXPECT_EQ(comparisons_title(one, other_data), "bft against plain on several data sets – gainlens");
}

TEST(Html, InlineSvgHasIdsOfItsOwn) {
  const std::string svg =
      "<?xml version=\"1.0\"?><svg width=\"1\"><g id='p'/><use xlink:href='#p'/><g fill=\"url(#p)\"/></svg>\n";
  EXPECT_THAT(inline_svg("<svg ><style>x</style><title>t</title></svg>", "f", "d"),
              Not(HasSubstr("<style>")));  // a style would apply to the whole page
  EXPECT_EQ(inline_svg(svg, "fig", "a \"b\""),
            "<svg role=\"img\" aria-label=\"a &quot;b&quot;\" width=\"1\"><g id='fig-p'/><use href='#fig-p'/><g "
            "fill=\"url(#fig-p)\"/></svg>");
}

TEST(PlotScript, TicksThatWouldOverlapLoseTheirLabel) {
  PlotScript script;
  const std::vector<std::int64_t> lengths = {1024, 1088, 4096};
  EXPECT_THAT(script.length_axis(lengths, 1.2).text(), HasSubstr("'1k' 1024, '' 1088, '4k' 4096"));
  EXPECT_THAT(PlotScript().length_axis(lengths, 12).text(), HasSubstr("'1k' 1024, '1088' 1088, '4k' 4096"));
}

TEST(PlotScript, ValueAxisHasRoundTicks) {
  EXPECT_THAT(PlotScript().value_axis(0.82, 0.97).text(),
              HasSubstr("set xtics 0.05\n"));  // three steps; steps of 0.02 would be eight
  EXPECT_THAT(PlotScript().value_axis(0.5, 0.5).text(),
              HasSubstr("set xrange [0.4944:0.5056]"));  // 1% to each side and a margin
}

TEST(PlotScript, YAxisKeepsZeroAndGivesOtherEndsRoom) {
  EXPECT_THAT(PlotScript().y_axis(0, 10, 0.5).text(), HasSubstr("set yrange [0:15]\nset ytics 5\n"));
  EXPECT_THAT(PlotScript().y_axis(1, 2, 0).text(), HasSubstr("set yrange [0.94:2]\nset ytics 0.2\n"));
}

TEST(PlotScript, FewLayersThatAreNoNeighboursHaveAColourEach) {
  const std::vector<std::int64_t> apart = {5, 11, 17};
  EXPECT_THAT(
      PlotScript().layer_colours(apart).text(),
      ::testing::AllOf(HasSubstr("set palette defined (0 '#440154', 1 '#440154', 1 '#23908C'"),
                       HasSubstr("set cbrange [-0.5:2.5]"), HasSubstr("set cbtics ('5' 0, '11' 1, '17' 2) out")));
  EXPECT_EQ(layer_colour(apart, 11), 1);
  const std::vector<std::int64_t> neighbours = {4, 5, 6};
  EXPECT_EQ(PlotScript().layer_colours(neighbours).text(), PlotScript().layer_colours(4, 6).text());
  EXPECT_EQ(layer_colour(neighbours, 5), 5);
  const std::vector<std::int64_t> many = {0, 2, 4, 6, 8, 10, 12, 14, 16};
  EXPECT_EQ(PlotScript().layer_colours(many).text(), PlotScript().layer_colours(0, 16).text());
}

TEST(PlotScript, MissingNumbersAreNaN) {
  PlotScript script;
  EXPECT_THAT(script.data("d", {{1, std::numeric_limits<double>::infinity()}}).text(),
              HasSubstr("$d << EOD\n1 NaN\nEOD\n"));
}

TEST(Program, ErrorsAreQuoted) {
  const TemporaryFolder folder;
  EXPECT_THAT(
      [&] {
        run_program({"sh", "-c", "echo lost >&2; exit 4"}, folder.path(), {}, "sh");
      },
      ThrowsMessage<RunFailed>(HasSubstr("sh: ended with exit code 4: lost")));
  EXPECT_THAT(
      [&] {
        run_program({"sh", "-c", "kill -9 $$"}, folder.path(), {}, "sh");
      },
      ThrowsMessage<RunFailed>(HasSubstr("signal 9")));
  EXPECT_THAT([&] { run_program({"no-such-program"}, folder.path(), {}, "the package"); },
              ThrowsMessage<RunFailed>(HasSubstr("install the package")));
}

TEST(Program, RunsInTheFolderWithItsEnvironment) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_program({"sh", "-c", "echo $GREETING; pwd"}, folder.path(), {{"GREETING", "hello"}}, "sh"),
            "hello\n" + folder.path().string() + "\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "nothing is left behind";
}

TEST(Program, LongStreamsComeWholeSideBySide) {
  const TemporaryFolder folder;
  const std::string out =
      run_program({"sh", "-c", "head -c 1000000 /dev/zero >&2; head -c 3000000 /dev/zero"}, folder.path(), {}, "sh");
  EXPECT_EQ(out.size(), 3000000u);
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
  EXPECT_THAT(text, HasSubstr("excluded: layer 0 (window:512)"));
  EXPECT_THAT(text, HasSubstr("BOS mass above 0.3 : 1 head in layer 4"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

}  // namespace parts_test
}  // namespace gainlens::reports
