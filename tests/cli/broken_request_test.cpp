// request.json of a training that is broken, or that a newer version made: every command that reads the run says so.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace broken_request_test {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

class BrokenRequest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string ring;
    for (int user = 0; user < 20; ++user) {
      ring += std::to_string(user);
      for (int i = 0; i < 5; ++i) ring += " " + std::to_string((user + i) % 12 + 1);
      ring += "\n";
    }
    train_ = {"train",     "recommend", "--data",   write_file(folder_.path() / "ring.txt", ring),
              "--out",     run_,        "--epochs", "1",
              "--arm",     "plain",     "--width",  "8",
              "--threads", "1",         "--quiet"};
    ASSERT_EQ(run_gainlens(train_).exit_code, 0);
    request_ = bytes_of(file_);
  }
  Json request() const { return Json::parse(request_); }

  TemporaryFolder folder_;
  std::string run_ = folder_.path() / "run", file_ = run_ + "/request.json", request_;
  std::vector<std::string> train_;
};

TEST_F(BrokenRequest, IsNamedByEveryReader) {
  for (const std::string content : {"", "{", "{}", "[]", "{\"backbone\": 3}"}) {
    SCOPED_TRACE(content);
    write_file(file_, content);
    for (const char* command : {"check", "inspect", "report", "compare"}) {
      SCOPED_TRACE(command);
      const ProgramResult result = run_gainlens({command, run_});
      expect_refusal_line(result, file_ + ": ");
      EXPECT_THAT(result.error, HasSubstr("put it back, or give run.h5 in its place"));
    }
    expect_refusal_line(run_gainlens({"check", run_ + "/plain/seed-0"}), file_ + ": ");
    if (content.find("backbone") == std::string::npos) expect_refusal_line(run_gainlens(train_), file_ + ": ");
    EXPECT_EQ(run_gainlens({"inspect", run_ + "/run.h5"}).exit_code, 0);
  }
}

TEST_F(BrokenRequest, OfANewerVersionIsRefusedByEveryCommand) {
  const std::string newer = file_ + ": made by a newer version of gainlens; ";
  const auto expect_named = [&](const Json& changed, const std::string& words) {
    SCOPED_TRACE(words);
    write_file(file_, changed.dump());
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"check", run_},
                                               {"inspect", run_},
                                               {"report", run_},
                                               {"compare", run_},
                                               {"check", run_ + "/plain/seed-0"},
                                               train_}) {
      SCOPED_TRACE(command[0]);
      const ProgramResult result = run_gainlens(command);
      expect_refusal_line(result, newer + words);
      EXPECT_THAT(result.error, EndsWith(words + "\n"));
    }
  };
  Json changed = request();
  changed["newer"] = 1;
  changed["data"]["new"] = 2;
  changed["training"]["new_option"] = true;
  expect_named(changed, "unknown keys: /newer, /data/new, /training/new_option");
  changed["version"] = 99;
  expect_named(changed, "unknown keys: /newer, /data/new, /training/new_option");
  changed = request();
  changed["version"] = 99;
  expect_named(changed, "/version is 99, and this one knows up to 2");
  changed = request();
  changed["variants"] = {{"wide", {{"new_option", 1}}}};
  write_file(file_, changed.dump());
  expect_refusal_line(run_gainlens({"inspect", run_}), newer + "unknown keys: /variants/wide/new_option");
  write_file(file_, request_);
  EXPECT_EQ(run_gainlens({"inspect", run_}).exit_code, 0);
}

TEST_F(BrokenRequest, ACheckpointWhereARunIsNeededNamesItsRun) {
  const std::string checkpoint = run_ + "/plain/seed-0", copy = folder_.path() / "copy";
  const std::string run = std::filesystem::canonical(run_).string();
  for (const char* command : {"report", "compare"})
    expect_refusal_line(
        run_gainlens({command, checkpoint}),
        checkpoint + ": is the checkpoint of a recommender; give the run folder " + run + " to gainlens report");
  std::filesystem::create_directory(copy);
  std::filesystem::copy_file(checkpoint + "/config.json", copy + "/config.json");
  for (const char* command : {"report", "compare", "check"})
    expect_refusal_line(run_gainlens({command, copy}),
                        "give the run folder in which gainlens train recommend wrote it");
}

TEST(LanguageRequest, IsNamedByCheck) {
  const TemporaryFolder folder;
  const std::string model = folder.path() / "model", file = model + "/training/request.json";
  std::filesystem::create_directories(model + "/training");
  for (const std::string content : {"", "{", "{\"kind\": \"train language-model\"}"}) {
    write_file(file, content);
    expect_refusal_line(run_gainlens({"check", model}), file + ": ");
  }
  write_file(file, R"({"kind": "train language-model", "version": 2, "newer": 1, "filter": {"new_option": 1}})");
  expect_refusal_line(run_gainlens({"check", model}),
                      file + ": made by a newer version of gainlens; unknown keys: /newer, /filter/new_option");
}

}  // namespace broken_request_test
}  // namespace gainlens::testing
