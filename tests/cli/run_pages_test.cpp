// Every kind of run has a page, tables as CSV, and its numbers as JSON.
#include "analyses/made_noise_run.h"
#include "analyses/synthetic_run.h"
#include "cli/run_kinds.h"
#include "core/intervention_effect.h"
#include "runfile/experiment_run.h"
#include "runfile/gate_arms_run.h"
#include "runfile/intervention_run.h"
#include "runfile/made_attention_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/patching_run.h"
#include "runfile/recommend_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

namespace gainlens::cli {
namespace run_pages_test {

namespace fs = std::filesystem;
using runfile::RunKind;

void make_interventions(const fs::path& folder) {
  runfile::InterventionRun run;
  run.request = {{"format", runfile::intervention_run_format}, {"length", 32}};
  run.native = {3.0, 3.5};
  for (const char* head : {"0", "1"}) {
    run.arms.push_back({"blocks.0.attn.hook_z[head=" + std::string(head) + "]=zero", {}, "there is no other head"});
    run.effects.emplace_back(2, InterventionEffect{4.0, 1.0, 0.5, 2.0});
  }
  run.asked = run.arms.size();
  testing::write_file(folder / "request.json", run.request.dump());
  runfile::write_intervention_run(folder, run);
}

void make_patches(const fs::path& folder) {
  runfile::PatchingRun run;
  run.request = {{"format", runfile::patching_run_format},
                 {"clean", {{"texts", {"a", "b"}}}},
                 {"corrupt", {{"texts", {"a", "c"}}}}};
  for (std::int64_t position = 0; position < 2; ++position) {
    run.patches.push_back({"p" + std::to_string(position), "hook_resid_pre", 0, {}, position});
    for (runfile::PatchedPrompt& direction : run.directions) direction.effects.push_back({0.5, 1, 2, 0.25});
  }
  run.directions[0].other = run.directions[1].base = 1;
  testing::write_file(folder / "request.json", run.request.dump());
  runfile::write_patching_run(folder, run);
}

void make_gate_arms(const fs::path& folder) {
  runfile::GateArmsRun run;
  run.request = {{"format", runfile::gate_arms_format}, {"seed", 0}, {"targets", 4}, {"bos_policy", "no BOS"}};
  run.arms = {"native", "gain"};
  run.contexts = {16, 32};
  run.trained_length = 16;
  run.gated = true;
  run.calibration = {{0, 0, 0.9, 0.25, 2.0, 0.25, 1.0}};
  for (const double change : {0.0, 0.1}) {
    auto& arm = run.readings.emplace_back();
    for (int document = 0; document < 3; ++document)
      arm.push_back({{3 + change, 0.5, 0.1, 4}, {3 + change + 0.01 * document, 0.5, 0.1, 4}});
  }
  testing::write_file(folder / "request.json", run.request.dump());
  runfile::write_gate_arms_run(folder, run);
}

void make_language_training(const fs::path& folder) {
  fs::create_directories(folder / "training");
  testing::write_file(folder / "training/request.json",
                      R"({"kind": "train language-model", "recipe": {"stages": [{"context": 8, "steps": 20}],
                          "tokenizer": {"vocabulary": 64}}})");
  testing::write_file(
      folder / "training/history.csv",
      "step,training_loss,validation_loss,learning_rate,gradient_norm\n10,4,3.9,0.1,1\n20,3,3.5,0.1,1\n");
}

const std::map<RunKind, std::function<void(const fs::path&)>>& makers() {
  static const std::map<RunKind, std::function<void(const fs::path&)>> all = {
      {RunKind::sweep, [](const fs::path& folder) { testing::write_run(folder, testing::report_run()); }},
      {RunKind::recommender_sweep,
       [](const fs::path& folder) { runfile::write_attention_run(folder / "run.h5", testing::made_attention_run()); }},
      {RunKind::recommenders,
       [](const fs::path& folder) { runfile::write_recommend_run(folder / "run.h5", testing::made_recommend_run()); }},
      {RunKind::experiment,
       [](const fs::path& folder) { runfile::write_experiment_run(folder / "run.h5", testing::made_noise_run()); }},
      {RunKind::interventions, make_interventions},
      {RunKind::patching, make_patches},
      {RunKind::gate_arms, make_gate_arms},
      {RunKind::language_training, make_language_training}};
  return all;
}

TEST(RunPages, EveryKindHasAPageCsvAndJson) {
  for (const RunCommands* kind : run_kinds()) {
    const std::string words(runfile::mark_of(kind->kind).words);
    SCOPED_TRACE(words);
    const auto maker = makers().find(kind->kind);
    ASSERT_NE(maker, makers().end()) << "make a run of the new kind here";
    ASSERT_NE(kind->report, nullptr);
    const testing::TemporaryFolder folder;
    const fs::path run = folder.path() / "run", page = folder.path() / "page";
    fs::create_directories(run);
    maker->second(run);
    ReportArguments arguments{.runs = {run.string()}, .out = page.string()};
    arguments.style = testing::write_file(folder.path() / "style.json", R"({"formats": ["svg"]})");
    ASSERT_EQ(&commands_of(run), kind);
    ::testing::internal::CaptureStdout();
    kind->report(arguments, {.quiet = true, .json = true});
    const std::string printed = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(Json::parse(printed).at("summary"), (page / "summary.json").string());
    EXPECT_FALSE(Json::parse(testing::bytes_of(page / "summary.json")).empty());
    EXPECT_TRUE(fs::exists(page / "report.html"));
    const auto tables = fs::recursive_directory_iterator(page / "tables");
    EXPECT_TRUE(std::any_of(begin(tables), end(tables),
                            [](const fs::directory_entry& file) { return file.path().extension() == ".csv"; }));
  }
}

}  // namespace run_pages_test
}  // namespace gainlens::cli
