#include "core/json.h"
#include "support/printed_text.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace gainlens::testing {
namespace estimators_command_test {

using ::testing::HasSubstr;

TEST(EstimatorsCommand, PrintsTablesOrJsonAndWritesAReport) {
  const TemporaryFolder folder;
  const std::string out = folder.path() / "report";
  const auto text = run_gainlens({"estimators", "--draws", "100", "--n-eff", "2,20", "--quiet", "--out", out});
  ASSERT_EQ(text.exit_code, 0) << text.error;
  EXPECT_THAT(text.out, HasSubstr("100 draws of each scenario and n_eff; 256 keys; sigma0^2 = 1/64; seed 0"));
  EXPECT_THAT(text.error, HasSubstr(out + "/report.html"));
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "report/estimators.svg"));

  const auto json = [&](const std::string& seed, const std::string& threads) {
    const auto result = run_gainlens({"estimators", "--draws", "100", "--dimensions", "8", "--n-eff", "2", "--json",
                                      "--quiet", "--seed", seed, "--threads", threads});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return result.out;
  };
  const auto parsed = nlohmann::json::parse(json("4", "1"));
  EXPECT_EQ(parsed.at("prior_variance"), 0.125);
  EXPECT_EQ(parsed.at("scenarios")[0].at("cells")[0].at("true_variance"), 0.0625);
  EXPECT_EQ(json("4", "1"), json("4", "2"));
  EXPECT_NE(json("4", "1"), json("5", "1"));
}

TEST(EstimatorsCommand, TheFileOfItsPageHoldsWhatItPrints) {
  const std::string stored =
      read_text_file(std::filesystem::path(GAINLENS_SOURCE_DIR) / "docs/estimators/simulated.txt");
  const auto result = run_gainlens({"estimators", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(difference_of_printed(stored, result.out), "");
}

TEST(EstimatorsCommand, WrongRequestsGetOneLine) {
  const auto refused = [](const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"estimators"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const auto result = run_gainlens(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    return result.error;
  };
  EXPECT_EQ(refused({"--draws", "10"}), "gainlens: error: --draws: 10; must be 100 to 10000000\n");
  EXPECT_EQ(refused({"--n-eff", "5,2"}), "gainlens: error: --n-eff: 2 after 5; must rise\n");
  EXPECT_THAT(refused({"--n-eff", "300"}), HasSubstr("--n-eff: 300; must be 1 to 200, as a query sees 256 keys"));
  EXPECT_THAT(refused({"--draw", "100"}), HasSubstr("did you mean '--draws'?"));
}

}  // namespace estimators_command_test
}  // namespace gainlens::testing
