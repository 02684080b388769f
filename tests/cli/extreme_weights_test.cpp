// Weights that no training would produce. Each sweep must end with its numbers or with one line. The same holds for
// each command that reads its run.
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <ostream>
#include <string>

namespace gainlens::testing {
namespace extreme_weights_test {

using ::testing::HasSubstr;
using ::testing::Not;

const std::filesystem::path goldens = GAINLENS_SOURCE_DIR "/tests/golden/models";

/// Replaces every number of the float32 tensors whose names end with `ending`.
void change_weights(const std::filesystem::path& model, const std::string& ending,
                    const std::function<float(float)>& changed) {
  std::string bytes = bytes_of(model / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  int tensors = 0;
  const Json entries = Json::parse(bytes.substr(8, header));
  for (const auto& [name, entry] : entries.items()) {
    if (!name.ends_with(ending)) continue;
    ++tensors;
    ASSERT_EQ(entry.at("dtype"), "F32") << name;
    const std::size_t begin = 8 + header + entry.at("data_offsets").at(0).get<std::size_t>();
    const std::size_t end = 8 + header + entry.at("data_offsets").at(1).get<std::size_t>();
    for (std::size_t place = begin; place < end; place += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, bytes.data() + place, sizeof(number));
      number = changed(number);
      std::memcpy(bytes.data() + place, &number, sizeof(number));
    }
  }
  ASSERT_GT(tensors, 0) << ending;
  write_file(model / "model.safetensors", bytes);
}

ProgramResult sweep(const std::filesystem::path& model, const std::filesystem::path& folder) {
  return run_gainlens({"sweep", model, "--tokens", write_ids(folder, 100), "--lengths", "16,32", "--samples", "2",
                       "--per-query", "--out", folder / "run", "--quiet"});
}

TEST(SinkLogits, NotFiniteIsADamagedCheckpoint) {
  using Limits = std::numeric_limits<float>;
  for (const float bad : {Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    SCOPED_TRACE(bad);
    const TemporaryFolder folder;
    const auto model = copy_checkpoint(folder.path(), goldens / "gpt-oss");
    change_weights(model, "layers.1.self_attn.sinks", [&](float) { return bad; });
    const ProgramResult result = sweep(model, folder.path());
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(
        result.error,
        HasSubstr("tensor 'model.layers.1.self_attn.sinks' holds NaN or infinity: 4 of 4 values, the first at [0]; "
                  "the checkpoint is damaged\n"));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(std::filesystem::exists(folder.path() / "run/run.h5"));
  }
}

struct Extreme {
  std::string name;
  std::string checkpoint;
  std::string tensors;  ///< end of the names of the tensors to change
  std::function<float(float)> changed;
  bool measurable;  ///< false: the sweep may fail, with a reason
};
void PrintTo(const Extreme& extreme, std::ostream* out) {
  *out << extreme.name;
}

class ExtremeWeights : public ::testing::TestWithParam<Extreme> {};

TEST_P(ExtremeWeights, EndInNumbersOrInOneLine) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path(), goldens / GetParam().checkpoint);
  change_weights(model, GetParam().tensors, GetParam().changed);
  const ProgramResult swept = sweep(model, folder.path());
  EXPECT_THAT(swept.error, Not(HasSubstr("internal error")));
  if (swept.exit_code != 0) {
    EXPECT_FALSE(GetParam().measurable) << swept.error;
    EXPECT_EQ(swept.exit_code, 1) << swept.error;
    EXPECT_EQ(std::count(swept.error.begin(), swept.error.end(), '\n'), 1) << swept.error;
    return;
  }
  for (const char* command : {"audit", "sink-vs-k", "report"}) {
    const ProgramResult read = run_gainlens({command, folder.path() / "run"});
    EXPECT_TRUE(read.exit_code == 0 || read.exit_code == 2) << command << ": " << read.error;
    EXPECT_THAT(read.error, Not(HasSubstr("internal error"))) << command;
  }
  const ProgramResult checked = run_gainlens({"check", folder.path() / "run"});
  EXPECT_TRUE(checked.exit_code == 0 || checked.exit_code == 1) << checked.error;
  EXPECT_THAT(checked.error, Not(HasSubstr("internal error")));
}

float zero(float) {
  return 0;
}
std::function<float(float)> times(float factor) {
  return [factor](float number) { return number * factor; };
}

// A cap of 30 would make 30 of every logit that overflowed.
TEST(SoftCap, LogitsThatOverflowAreAnError) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path(), goldens / "gemma2");
  change_weights(model, "model.norm.weight", [](float) { return 1e38F; });
  const ProgramResult result = sweep(model, folder.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.error, HasSubstr("output head: the logits at position"));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
}

INSTANTIATE_TEST_SUITE_P(
    Values, ExtremeWeights,
    ::testing::Values(Extreme{"all_zero", "llama", "v_proj.weight", zero, true},
                      Extreme{"all_equal", "llama-bias", "v_proj.weight", zero, true},  // only the bias remains
                      Extreme{"tiny", "llama", "v_proj.weight", times(1e-30F), true},
                      Extreme{"huge", "llama", "v_proj.weight", times(1e30F), false},
                      Extreme{"huge_embedding", "llama", "embed_tokens.weight", times(1e21F), true},
                      Extreme{"huge_stream", "llama", "o_proj.weight", times(1e21F), true},
                      Extreme{"huge_queries_that_are_normalised", "qwen3", "q_proj.weight", times(1e21F), true},
                      Extreme{"norm_weights_that_overflow", "llama", "input_layernorm.weight", times(1e38F), false},
                      Extreme{"huge_sink_logits", "gpt-oss", "sinks", [](float) { return 1e30F; }, true},
                      Extreme{"vanishing_sink_logits", "gpt-oss", "sinks", [](float) { return -1e30F; }, true}),
    [](const auto& test) { return test.param.name; });

}  // namespace extreme_weights_test
}  // namespace gainlens::testing
