#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace depth_precision_test {

using ::testing::HasSubstr;

const std::string golden_models = GAINLENS_SOURCE_DIR "/tests/golden/models/";

class DepthPrecision : public ::testing::Test {
 protected:
  ProgramResult sweep(const std::string& model, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {
        "sweep", golden_models + model, "--tokens",          ids_,     "--lengths", "32,64", "--samples", "2",
        "--out", out_.string(),         "--depth-precision", "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }

  TemporaryFolder folder_;
  std::filesystem::path out_ = folder_.path() / "run";
  std::string ids_ = write_ids(folder_.path(), 160).string();
};

TEST_F(DepthPrecision, IsMeasuredOnTheChunksOfTheSweep) {
  const ProgramResult first = sweep("llama");
  ASSERT_EQ(first.exit_code, 0) << first.error;
  EXPECT_THAT(first.out, HasSubstr("Precision through the depth, 64 tokens, 2 chunks"));
  const std::string bytes = bytes_of(out_ / "depth.json");
  const Json depth = Json::parse(bytes);
  EXPECT_EQ(depth.at("chunks").size(), 4u);
  EXPECT_TRUE(depth.at("chunks").at(0).at("layers").at(0).contains("truth"));
  EXPECT_FALSE(depth.at("chunks").at(1).at("layers").at(0).contains("truth"));

  std::filesystem::remove(out_ / "depth.json");  // as if a kill had come before it
  const ProgramResult again = sweep("llama", {"--json"});
  ASSERT_EQ(again.exit_code, 0) << again.error;
  EXPECT_EQ(Json::parse(again.out).at("depth"), (out_ / "depth.json").string());
  EXPECT_EQ(Json::parse(again.out).at("depth_precision").at(1).at("tokens"), 64);
  EXPECT_EQ(bytes_of(out_ / "depth.json"), bytes);
}

TEST_F(DepthPrecision, IsCheckedAndInspected) {
  const auto line = [&] {
    const std::string list = run_gainlens({"check", out_}).out;
    const std::size_t begin = list.find("depth ");
    return begin == std::string::npos ? list : list.substr(begin, list.find('\n', begin) - begin);
  };
  ASSERT_EQ(sweep("llama").exit_code, 0);
  EXPECT_THAT(line(), HasSubstr("satisfactory: depth.json has all of 4 chunks"));
  EXPECT_THAT(run_gainlens({"inspect", out_}).out, HasSubstr("precision through 3 layers of 4 chunks (depth.json)"));
  const std::string whole = bytes_of(out_ / "depth.json");
  std::string changed = whole;
  changed.replace(changed.find("0."), 2, "1.");
  write_file(out_ / "depth.json", changed);
  EXPECT_THAT(line(), HasSubstr("found: "));
  expect_refusal_line(run_gainlens({"inspect", out_}), "depth.json: its sha256 is ");
  expect_refused(run_gainlens({"report", out_}), "depth.json: its sha256 is ");
  expect_refused(sweep("llama"), "depth.json: its sha256 is ");
  write_file(out_ / "depth.json", whole);
  const std::string checksum = bytes_of(out_ / "depth.json.sha256");
  std::filesystem::remove(out_ / "depth.json.sha256");  // as earlier versions wrote it
  EXPECT_THAT(line(), HasSubstr("satisfactory: depth.json has all of 4 chunks, and no checksum beside it"));
  const std::string none = "depth.json has no checksum beside it; what it holds is not proven.";
  EXPECT_THAT(run_gainlens({"inspect", out_}).out, HasSubstr("run.h5 and its 4 shards are as they were written"));
  EXPECT_THAT(run_gainlens({"inspect", out_}).out, HasSubstr(none));
  EXPECT_THAT(run_gainlens({"report", out_}).error, HasSubstr(none));
  ASSERT_EQ(sweep("llama").exit_code, 0);
  EXPECT_EQ(bytes_of(out_ / "depth.json"), whole);
  EXPECT_EQ(bytes_of(out_ / "depth.json.sha256"), checksum);
  std::filesystem::remove(out_ / "depth.json.sha256");
  Json fewer = Json::parse(whole);
  fewer.at("chunks").erase(3);
  write_file(out_ / "depth.json", fewer.dump());
  EXPECT_THAT(line(), HasSubstr("depth.json has 3 chunks, and the run 4"));
  Json other = Json::parse(whole);
  other.at("request") = "0";
  write_file(out_ / "depth.json", other.dump());
  EXPECT_THAT(line(), HasSubstr("is that of another request"));
  write_file(out_ / "depth.json", "{}");
  EXPECT_THAT(line(), HasSubstr("is damaged"));
  expect_refusal_line(run_gainlens({"inspect", out_}), "depth.json: is damaged");
  std::filesystem::remove(out_ / "depth.json");
  EXPECT_THAT(line(), HasSubstr("satisfactory: there is no depth.json"));
}

TEST_F(DepthPrecision, RefusesWhatItCannotCarry) {
  expect_refused(sweep("llama", {"--layers", "1:2"}), "a precision is carried from layer 0 on");
  expect_refused(sweep("qwen3-next"), "have linear attention (the gated delta rule)");
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace depth_precision_test
}  // namespace gainlens::testing
