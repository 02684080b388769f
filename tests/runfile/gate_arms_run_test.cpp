#include "runfile/gate_arms_run.h"
#include "runfile/run_kind.h"

#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::runfile {
namespace gate_arms_run_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::HasSubstr;

GateArmsRun some_gate_arms_run() {
  GateArmsRun run;
  run.request = {{"format", gate_arms_format}};
  run.arms = {"native", "gain"};
  run.contexts = {16, 32};
  run.trained_length = 16;
  run.gated = true;
  run.calibration = {{0, 0, 0.9, 0.25, 1.5, 0.1 + 0.2, 2.0}, {0, 1, 0.8, 0.5, std::nullopt, std::nullopt, 0.125}};
  run.readings = {{{{1, 2, 3, 4}, {5, 6, 7, 8}}}, {{{1.5, 2, 3, 4}, {5.5, 1e-300, 7, 8}}}};
  return run;
}

class GateArmsRunFile : public ::testing::Test {
 protected:
  gainlens::testing::TemporaryFolder folder_;
};

TEST_F(GateArmsRunFile, IsReadAsItWasWritten) {
  const GateArmsRun run = some_gate_arms_run();
  write_gate_arms_run(folder_.path(), run);
  const GateArmsRun read = read_gate_arms_run(folder_.path());
  EXPECT_EQ(read.request, run.request);
  EXPECT_EQ(read.arms, run.arms);
  EXPECT_EQ(read.contexts, run.contexts);
  EXPECT_EQ(read.trained_length, run.trained_length);
  EXPECT_EQ(read.gated, run.gated);
  EXPECT_EQ(read.calibration, run.calibration);
  EXPECT_EQ(read.readings, run.readings);
  const std::string bytes = bytes_of(folder_.path() / "gate-arms.json");
  write_gate_arms_run(folder_.path(), read);
  EXPECT_EQ(bytes_of(folder_.path() / "gate-arms.json"), bytes);
}

TEST_F(GateArmsRunFile, IsKnownByItsRequest) {
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::gate_arms));
  for (const char* text : {"{", R"({"format": "gainlens-interventions"})"}) {
    write_file(folder_.path() / "request.json", text);
    EXPECT_FALSE(is_run_of(folder_.path(), RunKind::gate_arms));
  }
  write_file(folder_.path() / "request.json", R"({"format": "gainlens-gate-arms"})");
  EXPECT_TRUE(is_run_of(folder_.path(), RunKind::gate_arms));
  EXPECT_THAT(refusal_of([&] { read_gate_arms_run(folder_.path()); }), HasSubstr("is not finished"));
}

TEST_F(GateArmsRunFile, DamagedOnesAreRefused) {
  write_gate_arms_run(folder_.path(), some_gate_arms_run());
  const std::string whole = bytes_of(folder_.path() / "gate-arms.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    write_file(folder_.path() / "gate-arms.json", text.replace(text.find(from), from.size(), to));
    return refusal_of([&] { read_gate_arms_run(folder_.path(), Proof::by_caller); });
  };
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("another format or version"));
  EXPECT_THAT(with("\"native\"", "\"constant\""), HasSubstr("its first arm must be native"));
  EXPECT_THAT(with("\"trained_length\": 16", "\"trained_length\": 17"), HasSubstr("hold the trained length"));
  EXPECT_THAT(with("\"nll\": 1.5", "\"nll\": null"), HasSubstr("is damaged"));
  EXPECT_THAT(with("\"raw_mean\"", "\"row_mean\""), HasSubstr("is damaged"));
  EXPECT_THAT(with("\"gated\": true", "\"gated\": 1"), HasSubstr("gate-arms.json: is damaged"));
}

}  // namespace gate_arms_run_test
}  // namespace gainlens::runfile
