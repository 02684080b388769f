// A table and its five writers.
#include "reports/page/table.h"

#include "core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace table_test {

using analyses::ends_as;
using analyses::fixed;
using analyses::Interval;
using analyses::Maybe;
using analyses::Measured;
using analyses::percent;
using analyses::reasons_of;
using analyses::TableColumn;
using analyses::TableValue;
using analyses::token_count;
using analyses::verbatim;
using analyses::whole;
using analyses::with_sign;
using analyses::words;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Maybe<Interval> no_interval() {
  return Maybe<Interval>::none("one document");
}

/// Everything that a table can hold.
Table table() {
  return {"arms",
          "Change of K & 5%.",
          {{.key = "arm", .heading = "arm", .show = verbatim},
           {.key = "tokens", .heading = "context", .show = token_count, .unit = "tokens"},
           {.key = "delta", .heading = "change", .show = with_sign<2>},
           {.key = "interval", .heading = "95%", .show = ends_as(with_sign<2>), .csv = "delta", .behind = true},
           {.key = "share", .heading = "share", .show = percent<0>, .csv = "part"},
           {.key = "p", .heading = "", .show = fixed<3>, .csv = ""},
           {.key = "seed", .heading = "", .show = whole, .json = ""},
           {.key = "words", .heading = "n_eff <says>", .show = words}},
          {{"K <b>_=1", 2048, -0.126, Interval{-0.25, 0.0551}, 0.494, 0.01, 7, "K, better"},
           {"=1+1", 100, 1.5, no_interval(), Measured::none("one seed"), Measured::none("one document"), 8, ""},
           {"\x1b[2J,\"", 64, TableValue(), TableValue(), 1.0, TableValue(), 9, "a\nb"}}};
}

TEST(Table, IsAPageWithSortableNumbers) {
  const std::string html = html_table(paper_table(table()), 2);
  EXPECT_THAT(
      html,
      HasSubstr(
          "<caption><b>Table 2.</b> Change of <i>K</i> &amp; 5%. No 95%: one document. No share: one seed.</caption>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"col\" class=\"text\">arm</th><th scope=\"col\">context (tokens)</th>"
                              "<th scope=\"col\">change</th><th scope=\"col\">share</th><th scope=\"col\" "
                              "class=\"text\"><i>n</i><sub>eff</sub> &lt;says&gt;</th>"));
  // A text from a file has no symbols; no text is markup, or obeyed by a terminal.
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\" class=\"text\">K &lt;b&gt;_=1</th><td>2k</td>"
                              "<td>−0.13 [−0.25, +0.06]</td><td>49%</td><td class=\"text\"><i>K</i>, better</td>"));
  EXPECT_THAT(html, HasSubstr("<th scope=\"row\" class=\"text\">=1+1</th><td>100</td><td>+1.50 –</td><td>–</td>"));
  EXPECT_THAT(html, HasSubstr("\\x1b[2J,&quot;</th><td>64</td><td>–</td><td>100%</td>"));
  EXPECT_THAT(html, Not(HasSubstr("0.010")));
}

TEST(Table, IsATableOfLatex) {
  const std::string latex = latex_table(paper_table(table()));
  EXPECT_THAT(latex, HasSubstr("\\caption{Change of $K$ \\& 5\\%."));
  EXPECT_THAT(latex, HasSubstr("arm & context (tokens) & change & share & $n_{\\mathrm{eff}}$ \\textless{}says"));
  EXPECT_THAT(latex, HasSubstr("K \\textless{}b\\textgreater{}\\_=1 & 2k & $-$0.13 {[}$-$0.25, +0.06] & 49\\% & "
                               "$K$, better \\\\\n"));
}

TEST(Table, IsTextForATerminal) {
  EXPECT_EQ(text_table(table()),
            "Change of K & 5%.\n"
            "arm        context (tokens)                change  share  n_eff <says>\n"
            "K <b>_=1                 2k  -0.13 [-0.25, +0.06]    49%  K, better\n"
            "=1+1                    100               +1.50 –      –\n"
            "\\x1b[2J,\"                64                     –   100%  a\\x0ab\n"
            "No 95%: one document\n"
            "No share: one seed\n");
  Table none = table();
  none.rows.clear();
  EXPECT_EQ(text_table(none), "");
}

TEST(Table, IsCsvWithFullNumbers) {
  EXPECT_EQ(to_csv(csv_table(table())),
            "arm,tokens,delta,delta_low,delta_high,part,seed,words\n"
            "K <b>_=1,2048,-0.126,-0.25,0.0551,0.494,7,\"K, better\"\n"
            "'=1+1,100,1.5,,,,8,\n"
            "\"\\x1b[2J,\"\"\",64,,,,1,9,\"a\nb\"\n");
  EXPECT_EQ(csv_table(table(), "other").name, "other");
  Table ends = table();
  ends.columns[3].csv = "*";
  EXPECT_EQ(csv_table(ends).header[3], "low");
  EXPECT_EQ(csv_table(ends).header[4], "high");
}

TEST(Table, IsJsonWithReasons) {
  const OrderedJson json = to_json(table());
  EXPECT_EQ(json.at(0).dump(),
            R"({"arm":"K <b>_=1","tokens":2048,"delta":-0.126,"interval":[-0.25,0.0551],"share":0.494,"p":0.01,)"
            R"("words":"K, better"})");
  EXPECT_EQ(json.at(1).dump(),
            R"({"arm":"=1+1","tokens":100,"delta":1.5,"interval":null,"interval_reason":"one document","share":null,)"
            R"("share_reason":"one seed","p":null,"p_reason":"one document","words":""})");
  EXPECT_EQ(json.at(2).dump(), R"({"arm":"\u001b[2J,\"","tokens":64,"share":1.0,"words":"a\nb"})");
}

TEST(Table, SaysWhatIsMissingOnceAndOnlyWhatReadersSee) {
  EXPECT_THAT(reasons_of(table()), ElementsAre("95%: one document", "share: one seed"));
  Table twice = table();
  twice.rows.push_back(twice.rows[1]);
  twice.rows.back()[2] = Measured::none("one document");
  EXPECT_THAT(reasons_of(twice), ElementsAre("95%, change: one document", "share: one seed"));
  Table many = table();
  for (int i = 0; i < 9; ++i) {
    many.rows.push_back(many.rows[0]);
    many.rows.back()[2] = Measured::none("reason " + std::to_string(i));
  }
  EXPECT_THAT(text_table(many), HasSubstr("reason 2\nNo number for 6 more reasons, which --json has\n"));
}

template <typename Make>
void expect_refused(const Make& make, const std::string& words) {
  EXPECT_THAT(make, ThrowsMessage<InternalError>(HasSubstr(words)));
}

TEST(Table, RefusesWhatIsNoTable) {
  expect_refused([] { return TableValue(1.0, "a reason"); }, "a number with a reason why it is missing: a reason");
  expect_refused([] { return TableValue(std::nullopt, ""); }, "a missing number without a reason");
  expect_refused([] { return TableValue(std::numeric_limits<double>::quiet_NaN()); }, "needs a reason");
  expect_refused([] { return TableValue(Interval{0, std::numeric_limits<double>::infinity()}); }, "interval");
  const auto changed = [](auto change) {
    Table wrong = table();
    change(wrong);
    return [wrong] { check_table(wrong); };
  };
  expect_refused(changed([](Table& wrong) { wrong.columns.clear(); }), "arms: a table without columns");
  expect_refused(changed([](Table& wrong) { wrong.rows[1].pop_back(); }), "arms: 7 values in 8 columns");
  expect_refused(changed([](Table& wrong) { wrong.rows[1].emplace_back(1); }), "arms: 9 values in 8 columns");
  expect_refused(changed([](Table& wrong) { wrong.rows[0][2] = "text"; }), "column delta has a value of another kind");
  expect_refused(changed([](Table& wrong) { wrong.rows[0][1] = 0.5; }), "column tokens has a value of another kind");
  expect_refused(changed([](Table& wrong) { wrong.rows[0][0] = 1; }), "column arm has a value of another kind");
  expect_refused(changed([](Table& wrong) { wrong.columns[4].csv = "tokens"; }), "two columns are called tokens");
  // Every writer checks.
  Table wrong = table();
  wrong.columns.clear();
  expect_refused([&] { return paper_table(wrong); }, "without columns");
  expect_refused([&] { return csv_table(wrong); }, "without columns");
  expect_refused([&] { return text_table(wrong); }, "without columns");
  expect_refused([&] { return to_json(wrong); }, "without columns");
}

TEST(Table, WordsAreWrappedAtBlanks) {
  std::string text, line(96, 'x');
  EXPECT_EQ(wrapped(line + " abc de"), line + " abc\nde\n");
  EXPECT_EQ(wrapped(line + " abcd de"), line + "\nabcd de\n");
  EXPECT_EQ(wrapped(std::string(150, 'x') + " y"), std::string(150, 'x') + "\ny\n");
}

}  // namespace table_test
}  // namespace gainlens::reports
