// What `inspect` says of the memory and of the KV heads of a configuration, called in this process.
#include "cli/inspect_parts.h"
#include "core/console.h"
#include "core/json.h"
#include "models/checkpoint/read_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace gainlens::cli {
namespace inspect_memory_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// What `inspect` finds about memory of a model if so many bytes are there: the lines and the JSON object.
struct MemoryFinding {
  std::string memory, usable;
  Json json;
};

MemoryFinding with_memory(const models::DecoderConfig& config, std::uint64_t available, const std::string& dtype) {
  Findings findings;
  add_memory(config, {.length = "32k", .dtype = dtype, .ignored_config_keys = {}}, available, findings);
  findings.conclude("");
  ::testing::internal::CaptureStdout();
  findings.print(false);
  flush_results();
  const std::string lines = ::testing::internal::GetCapturedStdout();
  ::testing::internal::CaptureStdout();
  findings.print(true);
  flush_results();
  const auto first = lines.find("memory at"), end = lines.find('\n', first) + 1;
  return {lines.substr(first, end - first), lines.substr(lines.find("usable")),
          Json::parse(::testing::internal::GetCapturedStdout())};
}

// A model of the sizes of Llama 3 8B.
models::DecoderConfig large_model() {
  return models::parse_decoder_config(Json{{"model_type", "llama"},
                                           {"hidden_size", 4096},
                                           {"intermediate_size", 14336},
                                           {"num_hidden_layers", 32},
                                           {"num_attention_heads", 32},
                                           {"num_key_value_heads", 8},
                                           {"vocab_size", 128256},
                                           {"max_position_embeddings", 131072}},
                                      "here");
}

TEST(InspectMemory, SaysHowAModelFitsThatNeedsMoreMemory) {
  constexpr std::uint64_t gib = 1u << 30;
  const auto config = large_model();
  EXPECT_EQ(with_memory(config, 200 * gib, "float32").usable, "usable             yes\n");
  const MemoryFinding tight = with_memory(config, 21 * gib, "float32");
  EXPECT_THAT(tight.usable,
              AllOf(HasSubstr("yes in bfloat16; float32 needs 33 GiB of 21 GiB: give --dtype bfloat16 (about "),
                    HasSubstr(") or --stream-weights (about ")));
  EXPECT_THAT(tight.memory, ::testing::MatchesRegex("memory at [^\n]*in float32; 21 GiB available: does not fit; "
                                                    "--stream-weights needs [0-9.]+ GiB\n"));
  EXPECT_THAT(with_memory(config, 200 * gib, "float32").memory, Not(HasSubstr("does not fit")));
  EXPECT_EQ(tight.json.at("usable"), true);
  EXPECT_EQ(tight.json.at("memory").at("fits"), false);
  EXPECT_GT(tight.json.at("memory").at("bytes"), tight.json.at("memory").at("bfloat16_bytes"));
  EXPECT_GT(tight.json.at("memory").at("bfloat16_bytes"), tight.json.at("memory").at("streamed_bytes"));
  EXPECT_GT(tight.json.at("memory").at("streamed_bytes"), tight.json.at("memory").at("streamed_bfloat16_bytes"));
  const auto streamed = tight.json.at("memory").at("streamed_bytes").get<std::uint64_t>();
  EXPECT_THAT(with_memory(config, streamed, "float32").usable,
              AllOf(HasSubstr("yes with other options; float32 needs 33 GiB of "), HasSubstr(": give --stream-weights"),
                    Not(HasSubstr("bfloat16"))));
  const auto both = tight.json.at("memory").at("streamed_bfloat16_bytes").get<std::uint64_t>();
  EXPECT_THAT(with_memory(config, both, "float32").usable, HasSubstr("give --dtype bfloat16 --stream-weights (about "));
  EXPECT_THAT(with_memory(config, both, "bfloat16").usable, HasSubstr("bfloat16 needs "));
  EXPECT_THAT(with_memory(config, 1000, "float32").usable,
              AllOf(HasSubstr("yes elsewhere; here float32 needs 33 GiB of 1000 B"), HasSubstr("shorter --lengths")));
}

TEST(InspectMemory, OneKvHeadIsSaidBeforehand) {
  Json keys = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/models/llama/config.json", 1 << 20);
  const auto doubt = [&](std::int64_t kv_heads) {
    keys["num_key_value_heads"] = kv_heads;
    keys["num_hidden_layers"] = 32;  // more layers do not help
    return sink_test_doubt(models::parse_decoder_config(keys, "here"));
  };
  EXPECT_EQ(doubt(2), "");
  EXPECT_THAT(doubt(1), HasSubstr("sink-vs-k will say 'not decidable'"));
}

}  // namespace inspect_memory_test
}  // namespace gainlens::cli
