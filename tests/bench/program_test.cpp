// Calls build/attention_statistics_bench as a user does, at sizes that take little time.

#include "support/program.h"
#include "core/json.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::bench {
namespace program_test {

using gainlens::testing::ProgramResult;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// In this test, GAINLENS_PROGRAM is the benchmark.
ProgramResult run_bench(const std::vector<std::string>& arguments) {
  return gainlens::testing::run_gainlens(arguments);
}

TEST(BenchProgram, WritesEveryFigureAsJson) {
  const ProgramResult result = run_bench({"--lengths", "512", "--head-dims", "16", "--heads", "2", "--repeats", "1",
                                          "--window", "none,64", "--roofline", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json json = parse_json(result.out, "stdout");
  EXPECT_EQ(json.at("machine").at("libtorch"), "2.11.0");
  EXPECT_GT(json.at("copy_bytes_per_second"), 0);
  ASSERT_EQ(json.at("cases").size(), 2u);
  EXPECT_TRUE(json.at("cases")[0].at("window").is_null());
  EXPECT_EQ(json.at("cases")[1].at("window"), 64);
  for (const char* method : {"sdpa", "statistics", "all_fields", "materialised"}) {
    for (const char* key :
         {"seconds", "seconds_low", "seconds_high", "runs", "operations", "gflops", "ratio_to_sdpa", "peak_bytes"})
      EXPECT_GT(json.at("cases")[0].at("methods").at(method).at(key), 0) << method << ' ' << key;
  }
  EXPECT_GT(json.at("cases")[0].at("methods").at("matrix_product").at("gflops"), 0);
  EXPECT_TRUE(json.at("cases")[0].at("methods").contains("composed"));
}

TEST(BenchProgram, TheLastLineIsTheRatio) {
  const ProgramResult result = run_bench({"--ratio", "512", "--repeats", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("T 512, 16 query heads, 16 key/value heads, d 128, causal, float32\n"));
  EXPECT_THAT(result.out, HasSubstr("\n  all fields "));
  ASSERT_EQ(result.out.back(), '\n');
  const std::size_t last = result.out.rfind('\n', result.out.size() - 2);
  EXPECT_THAT(result.out.substr(last + 1), MatchesRegex("ratio [0-9]+\\.[0-9][0-9][0-9]\n"));
}

TEST(BenchProgram, StoredResultsAreShownAgain) {
  const gainlens::testing::TemporaryFolder folder;
  const std::string file = folder.path() / "results.json";
  const ProgramResult measured = run_bench({"--lengths", "128", "--head-dims", "16", "--heads", "1", "--repeats", "1",
                                            "--skip-materialised", "--json", file});
  const ProgramResult shown = run_bench({"--from", file});
  EXPECT_EQ(measured.exit_code, 0) << measured.error;
  EXPECT_EQ(shown.exit_code, 0) << shown.error;
  EXPECT_EQ(shown.out, measured.out);
}

TEST(BenchProgram, ErrorsAreMeasuredForEveryBackend) {
  const ProgramResult result = run_bench({"--errors", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json json = parse_json(result.out, "stdout");
  bool streaming_float64 = false;
  for (const Json& error : json.at("errors")) {
    if (error.at("backend") != "streaming" || error.at("dtype") != "float64") continue;
    streaming_float64 = true;
    EXPECT_LT(error.at("error"), 1e-9) << error.at("case");
  }
  EXPECT_TRUE(streaming_float64);
}

TEST(BenchProgram, ErrorsOfLongTextsAreMeasured) {
  const ProgramResult result = run_bench({"--errors", "--length", "512,1k", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  const Json errors = parse_json(result.out, "stdout").at("residual_errors");
  EXPECT_EQ(errors.size(), 2u * 5 * 5);  // lengths, cases, ways
  for (const Json& error : errors) {
    if (error.at("error").is_null()) continue;
    EXPECT_LT(error.at("error"), 4e-6) << error.at("way") << ' ' << error.at("case") << ' ' << error.at("length");
  }
  EXPECT_THAT(run_bench({"--errors", "--length", "512"}).out, HasSubstr("\n  gradient        slow_drift "));
}

TEST(BenchProgram, ABadRequestIsOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> requests = {
      {{"--lengths", "0"}, "--lengths: 0; must be at least 1"},
      {{"--lenghts", "512"}, "command line: unknown option '--lenghts'; did you mean '--lengths'?"},
      {{"--kv-heads", "3"}, "--kv-heads: 3 does not divide the 16 query heads (--heads)"},
      {{"--head-dims", "300"}, "--head-dims: 300; must be a multiple of 8 from 16 to 256"},
      {{"--window", "some"}, "--window: 'some' is not a count; write a whole number such as 512, or 4k for 4096"},
      {{"--heads", "0"}, "--heads: 0; must be at least 1"},
      {{"--repeats", "-1"}, "--repeats: -1; must be between 1 and 10000, or 0 for as many as fit into --seconds"},
      {{"--seconds", "0"}, "--seconds: 0; must be above 0 and at most 3600"},
      {{"--threads", "99999"}, "--threads: 99999; must be between 1 and "},
      {{"--dtype="}, "--dtype: is empty; give it a value"},
      {{"--dtype", "int8"}, "--dtype: 'int8'; must be float64, float32, bfloat16 or float16"},
      {{"--errors", "--length", "64"}, "--length: 64; must be above 64, where the values of the long cases change"},
      {{"--length", "1k"}, "command line: --length requires --errors"},
      {{"--ratio", "512", "--heads", "4"}, "command line: --heads excludes --ratio"},
      {{"--from", "/nowhere/r.json"}, "/nowhere/r.json: "},
  };
  for (const auto& [arguments, message] : requests) {
    const ProgramResult result = run_bench(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.error, HasSubstr("attention_statistics_bench: error: " + message));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_EQ(result.out, "");
  }
}

}  // namespace program_test
}  // namespace gainlens::bench
