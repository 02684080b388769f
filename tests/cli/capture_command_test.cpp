// gainlens capture of prompts: one, or many in one process.
#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "formats/tensor_file.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace capture_command_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

template <typename Number>
std::vector<Number> values_of(const formats::TensorFile& file, const std::string& name) {
  const formats::TensorEntry& entry = file.at(name);
  std::vector<Number> values(entry.bytes.size() / sizeof(Number));
  std::memcpy(values.data(), entry.bytes.data(), entry.bytes.size());
  return values;
}

class CaptureCommand : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    return write_file(folder_.path() / name, content);
  }
  ProgramResult call(const Words& more, const std::string& out = "out.safetensors") const {
    Words words = {"capture", demo, "--hooks", hooks, "--out", folder_.path() / out};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  formats::TensorFile captured(const Words& more, const std::string& out) const {
    const ProgramResult result = call(more, out);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    return formats::TensorFile::open(folder_.path() / out);
  }
  void refused(const Words& more, const std::string& reason) const { expect_refused(call(more), reason); }

  static constexpr const char* hooks = "blocks.0.hook_resid_post,blocks.1.attn.hook_pattern";
  const std::vector<std::string> prompts_ = {"The man", "A dog in the old house is", "A"};
  TemporaryFolder folder_;
  std::string batch_ = file("batch.jsonl", [this] {
    std::string lines;
    for (const std::string& prompt : prompts_) lines += Json{{"prompt", prompt}}.dump() + "\n";
    return lines;
  }());
};

/// Each row is what a call with this prompt alone gives, bit for bit, and NaN behind it.
TEST_F(CaptureCommand, ABatchIsItsPrompts) {
  const formats::TensorFile all = captured({"--batch", batch_}, "all.safetensors");
  const auto lengths = values_of<std::int64_t>(all, "lengths");
  ASSERT_EQ(lengths.size(), 3u);
  const auto longest = static_cast<std::size_t>(lengths[1]);
  const auto ids = values_of<std::int64_t>(all, "tokens");
  EXPECT_THAT(all.at("tokens").shape, ElementsAre(3, lengths[1]));
  EXPECT_THAT(all.at("blocks.1.attn.hook_pattern").shape, ElementsAre(3, 6, lengths[1], lengths[1]));
  const auto stream = values_of<float>(all, "blocks.0.hook_resid_post"),
             pattern = values_of<float>(all, "blocks.1.attn.hook_pattern");
  EXPECT_EQ(Json::parse(all.metadata().at("tokens_text")).size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const formats::TensorFile one = captured({"--prompt", prompts_[i]}, std::to_string(i) + ".safetensors");
    const auto own_ids = values_of<std::int64_t>(one, "tokens");
    const std::size_t length = own_ids.size();
    EXPECT_EQ(lengths[i], static_cast<std::int64_t>(length));
    EXPECT_FALSE(one.has("lengths"));
    EXPECT_EQ(Json::parse(one.metadata().at("tokens_text")), Json::parse(all.metadata().at("tokens_text")).at(i));
    const auto own = values_of<float>(one, "blocks.0.hook_resid_post"),
               own_pattern = values_of<float>(one, "blocks.1.attn.hook_pattern");
    const std::size_t width = own.size() / length;
    for (std::size_t position = 0; position < longest; ++position) {
      const bool there = position < length;
      EXPECT_EQ(ids[i * longest + position], there ? own_ids[position] : -1);
      for (std::size_t d = 0; d < width; ++d) {
        const float value = stream[(i * longest + position) * width + d];
        if (there)
          ASSERT_EQ(value, own[position * width + d]) << i << " " << position;
        else
          ASSERT_TRUE(std::isnan(value));
      }
      for (std::size_t key = 0; key < longest; ++key) {
        const float value = pattern[((i * 6 + 2) * longest + position) * longest + key];
        if (there && key < length)
          ASSERT_EQ(value, own_pattern[(2 * length + position) * length + key]);
        else
          ASSERT_TRUE(std::isnan(value));
      }
    }
  }
}

TEST_F(CaptureCommand, OnePositionOfEachPrompt) {
  const formats::TensorFile all = captured({"--batch", batch_}, "all.safetensors");
  const formats::TensorFile last = captured({"--batch", batch_, "--position", "last"}, "last.safetensors");
  const formats::TensorFile first = captured({"--batch", batch_, "--position", "0"}, "first.safetensors");
  const auto lengths = values_of<std::int64_t>(all, "lengths");
  const auto stream = values_of<float>(all, "blocks.0.hook_resid_post"),
             of_last = values_of<float>(last, "blocks.0.hook_resid_post"),
             of_first = values_of<float>(first, "blocks.0.hook_resid_post");
  const std::size_t width = of_last.size() / 3, longest = stream.size() / 3 / width;
  EXPECT_THAT(last.at("blocks.0.hook_resid_post").shape, ElementsAre(3, static_cast<std::int64_t>(width)));
  EXPECT_THAT(last.at("blocks.1.attn.hook_pattern").shape, ElementsAre(3, 6, static_cast<std::int64_t>(longest)));
  EXPECT_EQ(last.metadata().at("position"), "last");
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t d = 0; d < width; ++d) {
      const std::size_t end = static_cast<std::size_t>(lengths[i]) - 1;
      EXPECT_EQ(of_last[i * width + d], stream[(i * longest + end) * width + d]);
      EXPECT_EQ(of_first[i * width + d], stream[i * longest * width + d]);
    }
  }
  EXPECT_EQ(values_of<std::int64_t>(last, "tokens"), values_of<std::int64_t>(all, "tokens"));
}

TEST_F(CaptureCommand, WrongRequestsGetOneLine) {
  refused({}, "there is no prompt; give --prompt");
  refused({"--prompt", "A", "--batch", batch_}, "--batch: there is another prompt too");
  refused({"--prompt", "A", "--tokens", file("ids.json", "[5]")}, "--prompt: there is a file too (--tokens)");
  refused({"--batch", batch_, "--length", "2"}, "--length: is of one text");
  refused({"--prompt", "A", "--position", "first"}, "--position: 'first'; must be last, or a position from 0");
  refused({"--prompt", "A", "--position", "-1"}, "--position: '-1'");
  refused({"--prompt", "A", "--position", "2"}, "--position: 2; the prompt has positions 0 to 1");
  refused({"--batch", batch_, "--position", "2"}, "--position: 2; prompt 3 has positions 0 to 1");
  refused({"--batch", file("broken.jsonl", "{\"prompt\": \"A\"}\n{\n")}, "broken.jsonl: line 2: not valid JSON");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "out.safetensors"));
}

}  // namespace capture_command_test
}  // namespace gainlens::testing
