#include "reports/terminal/sinks_terminal.h"

#include "analyses/synthetic_run.h"
#include "reports/terminal/audit_terminal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gainlens::reports {
namespace sinks_terminal_test {

using ::testing::AllOf;
using testing::CellKey;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::SyntheticRun;
using testing::TemporaryFolder;

/// One chunk of 1k tokens of a layer numbered 13 with four heads, in which three tokens "\u2581" share the attention.
SyntheticRun three_spaces() {
  SyntheticRun run;
  run.lengths = {1024};
  run.samples = 1;
  run.layers = 1;
  run.first_layer = 13;
  run.heads = 4;
  run.kv_heads = 1;
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("sinks/") || key.last > 2) return std::nullopt;
    constexpr double positions[] = {326, 515, 832}, masses[] = {0.64, 0.61, 0.56, 0.34};
    const std::string_view name = key.name.substr(6);
    if (name == "position") return positions[key.last];
    if (name == "token") return 236743;
    if (name == "queries") return 1024 - positions[key.last];
    if (name == "column_mean") return key.last == 0 ? 0.31 : 0.15;
    if (name == "second_half_mean") return masses[key.head] / 3;
    if (name == "value_norm_ratio") return 0.23;
    if (name == "stream_ratio") return 6.6;
    return 1;
  };
  return run;
}

std::string printed(const SyntheticRun& run, bool every_length = false) {
  const TemporaryFolder folder;
  const auto reader = testing::write_run(folder.path(), run);
  return print_sinks(analyses::sink_keys(reader), reader, every_length);
}

TEST(PrintSinks, ALineForEachGroup) {
  const std::string text = printed(three_spaces());
  EXPECT_THAT(text, HasSubstr("\n  L13  \"\u2581\" x3 (326, 515, 832)  mass 0.64 0.61 0.56 0.34  |v| 0.23 of median  "
                              "max|h| 6.6 x\n"));
  EXPECT_THAT(text, HasSubstr("\n1 chunk of 1k tokens: 4 of 4 heads have a sink; sink mass: 53.8% of the attention"));
  EXPECT_THAT(text, HasSubstr("by token: space 53.8% (in 1 of 1 chunk)"));
  EXPECT_THAT(text, HasSubstr("by layer:  L13 53.8%"));
  EXPECT_THAT(text, HasSubstr("    \"\u2581\": layer 13 at 1 position\n"));  // one is above the threshold
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

/// One chunk of 1k tokens of a layer with two heads: BOS, which early queries alone see, and two other tokens, one of
/// which is a sink of head 0.
SyntheticRun several_tokens() {
  SyntheticRun run;
  run.lengths = {1024};
  run.samples = 1;
  run.layers = 1;
  run.heads = 2;
  run.kv_heads = 1;
  run.text = [](const runfile::ShardKey&, std::int64_t position) {
    return std::string(position == 0 ? "<s>" : position == 40 ? "a" : "b");
  };
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("sinks/") || key.last > 2) return std::nullopt;
    constexpr double positions[] = {0, 40, 50}, columns[] = {0.5, 0.35, 0.2}, weights[] = {0, 0.3, 0.15};
    const std::string_view name = key.name.substr(6);
    if (name == "position" || name == "token") return positions[key.last];
    if (name == "queries") return 1024 - positions[key.last];
    if (name == "column_mean") return key.head == 1 && key.last == 1 ? 0.25 : columns[key.last];
    if (name == "second_half_mean") return weights[key.last];
    return 1;
  };
  return run;
}

TEST(PrintSinks, TheLinesOfALayerAddUpToItsMass) {
  const std::string text = printed(several_tokens());
  EXPECT_THAT(text, HasSubstr("2 of 2 heads have a sink, 1 of them for early queries only; sink mass: 45.0% of"));
  EXPECT_THAT(text, HasSubstr("\n  L0  \"a\" x1 (40)  mass 0.30 0.30  |v|"));
  EXPECT_THAT(text, HasSubstr("\n  L0  no sink: \"b\"  mass 0.15 0.15\n  L0  all of these  mass 0.45 0.45\n"));
  // BOS has no line of zeros.
  EXPECT_THAT(text, HasSubstr("\n  sinks with a mass of 0.00 at every head (early queries see them): \"<s>\" in layer "
                              "0\n"));
  EXPECT_THAT(text, Not(HasSubstr("mass 0.00 0.00")));
  EXPECT_THAT(text, Not(HasSubstr("≥")));
}

TEST(PrintSinks, AFullListIsMarked) {
  SyntheticRun run = three_spaces();
  run.value = [](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("sinks/")) return std::nullopt;
    const std::string_view name = key.name.substr(6);
    const bool integer = name == "position" || name == "token" || name == "queries" || name == "stream_dimension";
    if (key.head > 0 && key.last > 0) return integer ? -1 : std::nan("");
    if (name == "position") return static_cast<double>(key.last);
    if (name == "queries") return 1000;
    if (name == "column_mean") return 0.31 - 0.01 * static_cast<double>(key.last);
    if (name == "second_half_mean") return 0.02;
    return 1;
  };
  const std::string text = printed(run);
  EXPECT_THAT(text, HasSubstr("  all of these  mass ≥0.32 0.02 0.02 0.02\n"));
  EXPECT_THAT(text, HasSubstr("\n≥: a run stores 16 such keys of a head and chunk. 1 list is full in this run, so"));
}

TEST(PrintSinks, TextsThatATerminalWouldObeyAreMadeVisible) {
  SyntheticRun run = three_spaces();
  for (const auto& [text, shown] : {std::pair<std::string, std::string>{"\x1b[31m\n", "\"\\x1b[31m\\x0a\""},
                                    {"<script>alert(1)</script>", "\"<script>alert(1)</script>\""},
                                    {"\u202e", "\"\\xe2\\x80\\xae\""}}) {
    run.text = [text](const runfile::ShardKey&, std::int64_t) { return text; };
    const std::string all = printed(run);
    EXPECT_THAT(all, HasSubstr("L13  " + shown + " x3"));
    EXPECT_EQ(all.find('\x1b'), std::string::npos);
    const TemporaryFolder folder;
    const std::string csv = to_csv(sinks_csv(analyses::sink_keys(testing::write_run(folder.path(), run))));
    EXPECT_EQ(csv.find('\x1b'), std::string::npos);
    EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);  // a header and a row for each of four heads
  }
}

TEST(PrintSinks, SeveralLengths) {
  SyntheticRun run;
  run.lengths = {64, 128, 256};
  run.samples = 3;
  const std::string text = printed(run);
  EXPECT_THAT(text, HasSubstr("3 chunks of 64 tokens: 1 of 32 heads have a sink"));
  EXPECT_THAT(text, HasSubstr("Gu et al. publish for this length the share of heads whose first key"));
  EXPECT_THAT(text, HasSubstr("3 chunks of 256 tokens"));
  EXPECT_THAT(text, HasSubstr("\"<s>\" x3 in 3 of 3 chunks (chunk 0: 0)  mass 0.60 0.00 0.00 0.20"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("of 128 tokens")), HasSubstr("Other lengths of the run: --at 128")));
  EXPECT_THAT(printed(run, true), AllOf(HasSubstr("of 128 tokens"), Not(HasSubstr("Other lengths"))));
}

TEST(PrintSinks, WhatIsNotThereIsSaid) {
  SyntheticRun run = three_spaces();
  run.lengths = {8};
  run.value = nullptr;
  EXPECT_THAT(printed(run), HasSubstr("no key is seen by 16 queries, so none can be a sink"));
  SyntheticRun flat = three_spaces();
  flat.value = [](const CellKey& key) -> std::optional<double> {
    if (!key.name.starts_with("sinks/")) return std::nullopt;
    const bool number =
        key.name.ends_with("mean") || key.name.ends_with("cosine") || key.name.find("ratio") != key.name.npos;
    return number ? std::nan("") : -1;
  };
  EXPECT_THAT(printed(flat), HasSubstr("1 chunk of 1k tokens: none of 4 heads has a sink"));
  SyntheticRun older;
  older.version = 3;
  EXPECT_THAT(printed(older),
              AllOf(HasSubstr("The run is of statistics version 3, which stores keys 0 to 7 alone: these "
                              "are its sinks at keys 0 to 7"),
                    HasSubstr("key 0 (BOS) x3 in 3 of 3 chunks"), Not(HasSubstr("|v|"))));
}

TEST(PrintAudit, ShortValuedKeysAtAnyPosition) {
  const TemporaryFolder folder;
  const std::string text = print_audit(analyses::audit(testing::write_run(folder.path(), three_spaces())), false);
  EXPECT_THAT(text, HasSubstr("4 heads have such a key; at 4 of them it is mostly not key 0"));
  EXPECT_THAT(text, HasSubstr("   13    0   0.213          0.23     1 of 1            1  \"\u2581\""));
}

}  // namespace sinks_terminal_test
}  // namespace gainlens::reports
