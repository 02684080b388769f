#include "runfile/intervention_run.h"
#include "runfile/run_kind.h"

#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::runfile {
namespace intervention_run_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::HasSubstr;

InterventionRun some_run() {
  InterventionRun run;
  run.request = {{"format", intervention_run_format}, {"length", 32}};
  run.arms = {{"a=zero", 1, ""}, {"b=zero", std::nullopt, "it is not of single heads"}};
  run.asked = 1;
  run.native = {1.1, 2.0 / 3};
  run.effects = {{{1.2, 3, 0, 0.5}, {0.1 + 0.2, 4, 0, 0.25}}, {{1, 2, 3, 4}, {5, 6, 7, 1e-300}}};
  return run;
}

class InterventionRunFile : public ::testing::Test {
 protected:
  std::string refusal(const std::string& text) {
    write_file(folder_.path() / "intervene.json", text);
    return refusal_of([&] { read_intervention_run(folder_.path(), Proof::by_caller); });
  }
  gainlens::testing::TemporaryFolder folder_;
};

TEST_F(InterventionRunFile, IsReadAsItWasWritten) {
  const InterventionRun run = some_run();
  write_intervention_run(folder_.path(), run);
  const InterventionRun read = read_intervention_run(folder_.path());
  EXPECT_EQ(read.request, run.request);
  EXPECT_EQ(read.arms, run.arms);
  EXPECT_EQ(read.asked, run.asked);
  EXPECT_EQ(read.native, run.native);
  EXPECT_EQ(read.effects, run.effects);
  const std::string bytes = bytes_of(folder_.path() / "intervene.json");
  write_intervention_run(folder_.path(), read);
  EXPECT_EQ(bytes_of(folder_.path() / "intervene.json"), bytes);
}

TEST_F(InterventionRunFile, IsKnownByItsRequest) {
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::interventions));
  write_file(folder_.path() / "request.json", "{");
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::interventions));
  write_file(folder_.path() / "request.json", R"({"format": "another"})");
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::interventions));
  write_file(folder_.path() / "request.json", R"({"format": "gainlens-interventions"})");
  EXPECT_TRUE(is_run_of(folder_.path(), RunKind::interventions));
  EXPECT_THAT(refusal_of([&] { read_intervention_run(folder_.path()); }), HasSubstr("is not finished"));
}

TEST_F(InterventionRunFile, DamagedOnesAreRefused) {
  write_intervention_run(folder_.path(), some_run());
  const std::string whole = bytes_of(folder_.path() / "intervene.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    EXPECT_NE(text.find(from), std::string::npos) << from;
    return refusal(text.replace(text.find(from), from.size(), to));
  };
  EXPECT_THAT(refusal("{"), HasSubstr("intervene.json"));
  EXPECT_THAT(refusal("{}"), HasSubstr("is damaged (the key 'format' is missing)"));
  EXPECT_THAT(refusal("[]"), HasSubstr("is damaged (a value of the type array stands where an object or an array is "));
  EXPECT_THAT(with("\"version\": 1", "\"version\": 2"), HasSubstr("another format or version"));
  EXPECT_THAT(with("\"asked\": 1", "\"asked\": 9"), HasSubstr("no interventions or no documents"));
  EXPECT_THAT(with("\"control\": 1", "\"control\": 7"), HasSubstr("a control that is not there"));
  EXPECT_THAT(with("1.1,", "1.1, 5,"), HasSubstr("it needs 3 effects"));
  EXPECT_THAT(with("\"nll\": 1.2", "\"nll\": \"x\""), HasSubstr("is damaged"));
}

TEST_F(InterventionRunFile, UnitsAreReadAsTheyWereWritten) {
  EXPECT_EQ(unit_name(3, -1), "document-3-layer--1");
  const Json json = to_json(InterventionUnit{{5}, 1.25, {{1, 2, 3, 4}}});
  const InterventionUnit unit = intervention_unit_from(json);
  EXPECT_EQ(unit.arms, std::vector<std::size_t>{5});
  EXPECT_EQ(unit.native, 1.25);
  EXPECT_EQ(unit.effects, (std::vector<InterventionEffect>{{1, 2, 3, 4}}));
  Json two = json;
  two["arms"] = {5, 6};
  EXPECT_THAT(refusal_of([&] { intervention_unit_from(two); }), HasSubstr("it needs 2 effects"));
}

}  // namespace intervention_run_test
}  // namespace gainlens::runfile
