// `gainlens check` of real runs: ten, five of them spoiled in five ways. Each fault is named, and nothing else.
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>

namespace gainlens::testing {
namespace check_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/";
const std::string golden = GAINLENS_SOURCE_DIR "/tests/golden/models/";

class Check : public ::testing::Test {
 protected:
  std::string in(const std::string& name) const { return folder_.path() / name; }
  /// @returns the folder of the run
  std::string made(std::vector<std::string> words, const std::string& out) const {
    words.insert(words.end(), {"--out", in(out), "--threads", "1", "--quiet"});
    const ProgramResult result = run_gainlens(words);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return in(out);
  }
  std::string swept(const std::string& model, const std::string& out, std::vector<std::string> more = {},
                    const std::string& text = demo + "text.txt") const {
    std::vector<std::string> words = {"sweep", demo + model, "--text", text};
    if (more.empty() || more.front() != "--lengths") words.insert(words.end(), {"--lengths", "64,128"});
    words.insert(words.end(), more.begin(), more.end());
    return made(words, out);
  }
  /// Recommenders of users who walk along a ring of items, so that trainings soon stop getting better.
  std::string recommended(const std::string& out, const std::vector<std::string>& more) const {
    std::string ring;
    for (int user = 0; user < 300; ++user) {
      ring += std::to_string(user);
      for (int i = 0; i < 4 + user % 9; ++i) ring += " " + std::to_string((user * 5 + i) % 97 + 1);
      ring += "\n";
    }
    std::vector<std::string> words = {"train",   "recommend", "--data",  write_file(in("ring.txt"), ring),
                                      "--width", "16",        "--batch", "32"};
    words.insert(words.end(), more.begin(), more.end());
    return made(words, out);
  }
  TemporaryFolder folder_;
};

/// What is found, by check: finding and advice. Program, page and exit code have to agree.
std::map<std::string, std::string> found_in(const std::string& run) {
  const ProgramResult json = run_gainlens({"check", run, "--json"}), shown = run_gainlens({"check", run});
  std::map<std::string, std::string> found;
  const Json checks = Json::parse(json.out).at("checks");
  EXPECT_FALSE(checks.empty());
  for (const Json& check : checks) {
    const std::string name = check.at("name"), finding = check.at("finding"), advice = check.at("advice");
    EXPECT_THAT(shown.out, HasSubstr(finding));
    EXPECT_EQ(check.at("ok").get<bool>(), advice.empty()) << name;
    if (check.at("ok").get<bool>()) continue;
    found[name] = finding;
    EXPECT_THAT(shown.out, HasSubstr("found: " + finding + ". To do: " + advice + "\n"));
  }
  EXPECT_EQ(json.exit_code, found.empty() ? 0 : 1) << run << ": " << json.error;
  EXPECT_EQ(shown.exit_code, json.exit_code);
  if (found.empty()) {
    EXPECT_THAT(shown.out, ::testing::ContainsRegex("checks: (all|[0-9]+) satisfactory"));
    EXPECT_EQ(shown.out.find("satisfactory: not known"), std::string::npos);
  } else {
    EXPECT_THAT(shown.error, HasSubstr("checks found something\n"));
  }
  return found;
}

/// Expects that one check alone finds something.
void expect_found(const std::string& run, const std::string& check, const std::string& words) {
  const auto found = found_in(run);
  ASSERT_EQ(found.size(), 1u) << run;
  EXPECT_EQ(found.begin()->first, check);
  EXPECT_THAT(found.begin()->second, HasSubstr(words));
}

TEST_F(Check, FindsNothingInFiveSoundRuns) {
  EXPECT_THAT(found_in(swept("plain", "plain")), IsEmpty());
  EXPECT_THAT(found_in(swept("gated", "nested", {"--nested"})), IsEmpty());
  EXPECT_THAT(found_in(swept("gated", "spread", {"--spread"})), IsEmpty());
  EXPECT_THAT(found_in(swept("plain", "alone", {"--samples", "4"}) + "/run.h5"), IsEmpty());
  const std::string recommenders =
      recommended("recommenders", {"--seeds", "3", "--epochs", "60", "--patience", "4", "--learning-rate", "0.005"});
  EXPECT_THAT(found_in(recommenders), IsEmpty());
  EXPECT_THAT(found_in(recommenders + "/plain/seed-1"), IsEmpty());
}

TEST_F(Check, NamesWhatSpoilsFiveRuns) {
  expect_found(swept("plain", "few", {"--samples", "1"}), "chunks", "too few chunks: 1 at 64, 1 at 128");
  expect_found(swept("plain", "without-bos", {"--bos", "never"}), "bos", "the chunks begin without the BOS");
  // The first half of this text is prose, the second one counts.
  std::string text = bytes_of(demo + "text.txt").substr(0, 1700);
  for (int i = 0; i < 100; ++i) text += "one two three four five six seven eight nine ten\n";
  expect_found(swept("plain", "two-texts", {"--lengths", "64", "--samples", "16"}, write_file(in("two.txt"), text)),
               "neighbours", "neighbouring chunks are alike");
  const std::string window = made({"sweep", golden + "mistral-window", "--tokens",
                                   write_file(in("ids.json"),
                                              [] {
                                                std::string ids = "[2";
                                                for (int i = 0; i < 600; ++i)
                                                  ids += "," + std::to_string(3 + i * i % 59);
                                                return ids + "]";
                                              }()),
                                   "--lengths", "8,64", "--samples", "5"},
                                  "window");
  EXPECT_THAT(found_in(window), ::testing::Contains(::testing::Pair("windows", HasSubstr("8 tokens: the window of "))));
  const std::string changed = swept("plain", "changed");
  std::string shard = bytes_of(changed + "/shards/T64-S2.h5");
  shard[shard.size() / 2] ^= 1;
  write_file(changed + "/shards/T64-S2.h5", shard);
  expect_found(changed, "files", "T64-S2.h5: its sha256 is ");
}

TEST_F(Check, NamesWhatIsWrongWithTrainings) {
  const std::string run = recommended("short", {"--arm", "plain,bft", "--seeds", "1", "--epochs", "2"});
  const auto found = found_in(run);
  EXPECT_EQ(found.size(), 3u);
  EXPECT_THAT(found.at("seeds"), HasSubstr("too few finished seeds for a p: plain has 1, bft has 1; it takes 3"));
  EXPECT_THAT(found.at("last_epoch"), HasSubstr("2 of 2 trainings (plain seed 0; bft seed 0)"));
  EXPECT_THAT(found.at("filter"), HasSubstr("not in force in the tested epoch (it warms up): bft seed 0"));
  const std::string weights = run + "/plain/seed-0/model.safetensors";
  std::string bytes = bytes_of(weights);
  bytes.back() ^= 1;
  write_file(weights, bytes);
  EXPECT_THAT(found_in(run).at("files"), HasSubstr("model.safetensors: its sha256 is "));
  EXPECT_THAT(found_in(run + "/plain/seed-0").at("files"), HasSubstr("model.safetensors: its sha256 is "));
}

TEST_F(Check, RefusesWhatIsNoRun) {
  const auto expect_refused = [](const std::string& path, const std::string& words) {
    const ProgramResult result = run_gainlens({"check", path});
    EXPECT_EQ(result.exit_code, 2) << path;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.error, AllOf(HasSubstr("gainlens: error: "), HasSubstr(words)));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  };
  expect_refused(in("none"), "no such file or folder");
  expect_refused(demo + "plain", "is a checkpoint, and a run is needed here");
  expect_refused(demo + "text.txt", "text.txt");
  const std::string run = swept("plain", "broken");
  write_file(run + "/run.h5", "not HDF5");
  expect_refused(run, "run.h5");
}

}  // namespace check_test
}  // namespace gainlens::testing
