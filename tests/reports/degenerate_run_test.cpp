// Reports of runs that lack something.
#include "analyses/synthetic_run.h"
#include "reports/report_testing.h"
#include "reports/sweep/sweep_report.h"
#include "support/shared_data.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace gainlens::reports {
namespace degenerate_run_test {

namespace fs = std::filesystem;
using gainlens::testing::contents;
using gainlens::testing::other_model;
using gainlens::testing::report_run;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::Not;

struct Degenerate {
  std::string name;
  std::function<void(SyntheticRun&)> change;
};
void PrintTo(const Degenerate& degenerate, std::ostream* out) {
  *out << degenerate.name;
}

class DegenerateRun : public ::testing::TestWithParam<Degenerate> {};

/// Tests the run alone and together with a complete run, whose figures are drawn as SVG only. The page must have no
/// broken numbers. Every figure is drawn, or left out with a reason.
TEST_P(DegenerateRun, GivesASensibleReport) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run();
  GetParam().change(run);
  const auto reader = write_run(folder.path() / "run", run);
  const auto whole = write_run(folder.path() / "whole", other_model(other_model(report_run())));
  const std::vector<RunInput> alone = {{"run", reader}}, both = {{"whole", whole}, {"run", reader}};
  for (const auto& runs : {alone, both}) {
    const fs::path out = folder.path() / fmt::format("out-{}", runs.size());
    Writing writing;
    writing.style.formats = {"svg"};
    const WrittenReport report = write_report(runs, out, {}, writing);
    for (const std::string& reason : report.left_out) EXPECT_GT(reason.size(), 20u) << reason;
    for (const auto& [file, content] : contents(out)) {
      if (!file.ends_with(".html") && !file.ends_with(".tex")) continue;
      std::string text = content;
      if (const auto data = text.find("<script type="); data != text.npos)  // bytes in base64, which may be any letters
        text.erase(data, text.find("</script>", data) - data);
      EXPECT_THAT(text, Not(HasSubstr("nan"))) << file;
      EXPECT_THAT(text, Not(HasSubstr("inf]"))) << file;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, DegenerateRun,
                         ::testing::Values(Degenerate{"missing_samples",
                                                      [](SyntheticRun& run) {
                                                        run.missing = {{64, 0}, {128, 1}};
                                                      }},
                                           Degenerate{"a_length_without_chunks",
                                                      [](SyntheticRun& run) {
                                                        run.missing = {{64, 0}, {64, 1}};
                                                      }},
                                           Degenerate{"one_layer", [](SyntheticRun& run) { run.layers = 1; }},
                                           Degenerate{"one_head",
                                                      [](SyntheticRun& run) { run.heads = run.kv_heads = 1; }},
                                           Degenerate{"one_sample", [](SyntheticRun& run) { run.samples = 1; }},
                                           Degenerate{"short_chunks",
                                                      [](SyntheticRun& run) {
                                                        run.lengths = {4, 8, 32};
                                                      }},
                                           Degenerate{"no_gate", [](SyntheticRun& run) { run.gated = false; }},
                                           Degenerate{"no_bos",
                                                      [](SyntheticRun& run) {
                                                        run.bos.reset();
                                                        run.bos_policy = "never";
                                                      }},
                                           Degenerate{"every_layer_hides_key_0",
                                                      [](SyntheticRun& run) {
                                                        run.attention = {"window:8", "window:8", "window:8"};
                                                      }},
                                           Degenerate{"constant_values",
                                                      [](SyntheticRun& run) {
                                                        run.value = [](const gainlens::testing::CellKey& key) {
                                                          const bool number = !key.name.starts_with("sinks/") &&
                                                                              !key.name.starts_with("stream/");
                                                          return number ? std::optional(0.5) : std::nullopt;
                                                        };
                                                      }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace degenerate_run_test
}  // namespace gainlens::reports
