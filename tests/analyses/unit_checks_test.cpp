#include "analyses/checks/unit_checks.h"

#include "runfile/gate_arms_run.h"
#include "runfile/intervention_run.h"
#include "runfile/patching_run.h"
#include "runfile/run_store.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace gainlens::analyses {
namespace unit_checks_test {

namespace fs = std::filesystem;
using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;

class UnitChecks : public ::testing::Test {
 protected:
  /// "ok" or "found", and the words of a check.
  std::string outcome(const std::string& name) const {
    for (const CheckResult& one : run_checks(unit_checks(), read_(run_)))
      if (one.name == name) return (one.ok ? one.known ? "ok: " : "not known: " : "found: ") + one.finding;
    return "no such check";
  }
  void change(const fs::path& file, const std::string& from, const std::string& to) const {
    std::string text = bytes_of(run_ / file);
    ASSERT_NE(text.find(from), std::string::npos) << text;
    write_file(run_ / file, text.replace(text.find(from), from.size(), to));
  }

  gainlens::testing::TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run";
  CheckedUnits (*read_)(const fs::path&) = read_checked_gate_arms;
};

class GateArmsChecks : public UnitChecks {
 protected:
  GateArmsChecks() {
    runfile::GateArmsRun run;
    run.request = {{"format", runfile::gate_arms_format},
                   {"arms", {"native", "gain"}},
                   {"contexts", {16, 32}},
                   {"trained_length", 16},
                   {"samples", 2},
                   {"declared", runfile::to_json(runfile::declared)}};
    run.arms = {"native", "gain"};
    run.contexts = {16, 32};
    run.trained_length = 16;
    run.gated = true;
    run.calibration = {{0, 0, 0.9, 0.25, 1.5, 0.1 + 0.2, 2.0}};
    run.readings = {{{{1.25, 2, 3, 4}, {5, 6, 7, 8}}, {{1, 2, 3, 4}, {5, 6, 7, 8}}},
                    {{{1, 2, 3, 4}, {5, 6, 7, 8}}, {{1, 2, 3, 4}, {5, 6, 7, 8}}}};
    runfile::RunStore kept(run_, run.request, {});
    kept.keep_unit(runfile::calibration_unit, runfile::to_json(run.calibration));
    for (std::size_t arm = 0; arm < 2; ++arm)
      for (std::size_t document = 0; document < 2; ++document)
        kept.keep_unit(runfile::gate_arm_unit(document, run.arms[arm]), runfile::to_json(run.readings[arm][document]));
    runfile::write_gate_arms_run(run_, run);
  }
};

TEST_F(GateArmsChecks, AWholeRunIsSatisfactory) {
  EXPECT_EQ(outcome("files"), "ok: gate-arms.json and 5 units as written (sha256)");
  EXPECT_EQ(outcome("finished"), "ok: all of 5 parts (each arm on each document, and the calibration) are measured");
  EXPECT_EQ(outcome("result"), "ok: gate-arms.json holds what the units hold");
  EXPECT_THAT(outcome("declared"), HasSubstr("ok: "));
  EXPECT_EQ(outcome("documents"), "found: 2 documents, and 30 are needed");
}

TEST_F(GateArmsChecks, ChangedFilesAreFound) {
  change("gate-arms.json", "1.25", "1.26");
  EXPECT_EQ(outcome("result"), "found: gate-arms.json is not what the units hold, first at /arms/0/documents/0/0/nll");
  EXPECT_THAT(outcome("files"), AllOf(HasSubstr("found: "), HasSubstr("gate-arms.json: its sha256 is ")));
  fs::remove(run_ / "manifest.jsonl");  // as earlier versions wrote it
  EXPECT_EQ(outcome("files"),
            "ok: 5 units as written (sha256); gate-arms.json has no checksum beside it; what it holds is not proven.");
  change("units/document-0-native.json", "1.25", "1.26");
  EXPECT_THAT(outcome("files"), AllOf(HasSubstr("found: 1 of 5 units cannot be used"), HasSubstr("is damaged")));
  EXPECT_THAT(outcome("finished"), HasSubstr("found: 1 of 5 parts"));
  EXPECT_THAT(outcome("result"), HasSubstr("not known: "));
  write_file(run_ / "gate-arms.json", "{}");
  EXPECT_THAT(outcome("result"), HasSubstr("found: "));
}

TEST_F(GateArmsChecks, MissingAndForeignFilesAreFound) {
  fs::remove(run_ / "gate-arms.json");
  EXPECT_THAT(outcome("finished"), HasSubstr("found: all of 5 parts"));
  EXPECT_THAT(outcome("result"), HasSubstr("not known: "));
  fs::remove(run_ / "units/document-1-gain.json");
  fs::remove(run_ / "units/calibration.json");
  EXPECT_THAT(outcome("finished"), HasSubstr("found: 2 of 5 parts"));
  for (const char* name : {"document-2-gain", "document-1-other", "document-x", "mine"}) {
    const fs::path file = run_ / "units" / (std::string(name) + ".json");
    write_file(file, "{}");
    EXPECT_THAT(outcome("files"), HasSubstr("is no unit of this run")) << name;
    fs::remove(file);
  }
}

TEST_F(GateArmsChecks, ARunMayBePassedOnWithoutItsUnits) {
  fs::remove_all(run_ / "units");
  EXPECT_EQ(outcome("finished"), "ok: gate-arms.json is there, without the units it was made from");
  EXPECT_THAT(outcome("files"), HasSubstr("ok: "));
  EXPECT_THAT(outcome("result"), HasSubstr("not known: "));
}

TEST_F(GateArmsChecks, AResultStaysIfItsManifestCannotBeWritten) {
  const std::string before = bytes_of(run_ / "gate-arms.json");
  fs::remove(run_ / "manifest.jsonl");
  fs::create_directory(run_ / "manifest.jsonl");
  EXPECT_THROW(runfile::store_result(run_, {"gate-arms.json", "gainlens-gate-arms", 1}, {{"a", 1}}), RunFailed);
  EXPECT_EQ(bytes_of(run_ / "gate-arms.json"), before);
}

TEST_F(GateArmsChecks, AnotherRequestIsSeen) {
  change("request.json", "0.01", "0.02");
  EXPECT_THAT(outcome("declared"), HasSubstr("found: the run was begun under another rule"));
  EXPECT_EQ(outcome("files"),
            "found: none of 5 units belongs to request.json; it was changed, or is that of another run");
  change("request.json", "\"samples\": 2", "\"samples\": \"x\"");
  EXPECT_THAT(refusal_of([&] { read_(run_); }), HasSubstr("request.json: is damaged"));
  write_file(run_ / "request.json", R"({"format": "gainlens-gate-arms"})");
  EXPECT_THAT(refusal_of([&] { read_(run_); }), HasSubstr("request.json: is damaged"));
}

TEST_F(UnitChecks, OfInterventions) {
  read_ = read_checked_interventions;
  runfile::InterventionRun run;
  run.request = {
      {"format", runfile::intervention_run_format}, {"interventions", {"a", "b"}}, {"controls", {"c"}}, {"samples", 2}};
  run.arms = {{"a", 2, ""}, {"b", {}, "none left"}, {"c", {}, ""}};
  run.asked = 2;
  run.native = {3.5, 4};
  run.effects = {{{1, 2, 3, 4}, {2, 2, 3, 4}}, {{3, 2, 3, 4}, {4, 2, 3, 4}}, {{5, 2, 3, 4}, {6, 2, 3, 4}}};
  {
    runfile::RunStore kept(run_, run.request, {});
    for (std::size_t i = 0; i < 2; ++i) {
      const auto keep = [&](std::int64_t layer, const std::vector<std::size_t>& arms) {
        runfile::InterventionUnit unit{arms, run.native[i], {}};
        for (const std::size_t arm : arms) unit.effects.push_back(run.effects[arm][i]);
        kept.keep_unit(runfile::unit_name(i, layer), runfile::to_json(unit));
      };
      keep(-1, {1});
      keep(3, {0, 2});
    }
  }
  runfile::write_intervention_run(run_, run);
  for (const char* check : {"files", "finished", "result", "declared", "documents"})
    EXPECT_THAT(outcome(check), HasSubstr("ok: ")) << check;
  change("intervene.json", "3.5", "3.25");
  EXPECT_EQ(outcome("result"), "found: intervene.json is not what the units hold, first at /native/0");
  fs::remove(run_ / "units/document-1-layer--1.json");
  EXPECT_THAT(outcome("finished"), HasSubstr("found: 1 of 6 parts"));
}

TEST_F(UnitChecks, OfPatches) {
  read_ = read_checked_patches;
  runfile::PatchingRun run;
  run.request = {{"format", runfile::patching_run_format}, {"interventions", {"a", "b"}}};
  run.patches = {{"a", "attn.hook_z", 0, 1, {}}, {"b"}};
  run.directions = {{{1, 2, {{1, 2, 3, 4}, {2, 2, 3, 4}}}, {3, 4.5, {{5, 2, 3, 4}, {6, 2, 3, 4}}}}};
  {
    runfile::RunStore kept(run_, run.request, {});
    for (const runfile::PatchDirection direction : runfile::patch_directions) {
      const runfile::PatchedPrompt& whole = run.directions[static_cast<std::size_t>(direction)];
      for (const std::size_t place : {0U, 1U}) {
        const runfile::PatchingUnit unit{{place}, {whole.base, whole.other, {whole.effects[place]}}};
        kept.keep_unit(runfile::patch_unit_name(direction, static_cast<std::int64_t>(place)), runfile::to_json(unit));
      }
    }
  }
  runfile::write_patching_run(run_, run);
  for (const char* check : {"files", "finished", "result", "declared", "documents"})
    EXPECT_THAT(outcome(check), HasSubstr("ok: ")) << check;
  change("patching.json", "4.5", "4.25");
  EXPECT_EQ(outcome("result"), "found: patching.json is not what the units hold, first at /directions/noising/other");
}

}  // namespace unit_checks_test
}  // namespace gainlens::analyses
