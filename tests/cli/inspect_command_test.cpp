#include "cli/tiny_checkpoint.h"
#include "support/file_bytes.h"
#include "support/gemma.h"
#include "support/program.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <utility>

namespace gainlens::testing {
namespace inspect_command_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

const std::filesystem::path golden = GAINLENS_SOURCE_DIR "/tests/golden";

/// Expects exit code 2, and the reason as one line on stderr and as the verdict on stdout.
void expect_unusable(const std::filesystem::path& path, const std::string& reason) {
  const auto result = run_gainlens({"inspect", path});
  EXPECT_EQ(result.exit_code, 2) << result.error;
  EXPECT_THAT(result.error, AllOf(HasSubstr("gainlens: error: "), HasSubstr(reason)));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("usable             no: "), HasSubstr(reason)));
  const Json json = Json::parse(run_gainlens({"inspect", path, "--json"}).out);
  EXPECT_EQ(json.at("usable"), false);
  EXPECT_THAT(json.at("reason").get<std::string>(), HasSubstr(reason));
}

TEST(Inspect, ACheckpointForPeople) {
  const auto result = run_gainlens({"inspect", golden / "models/gemma3", "--length", "256", "--dtype", "bfloat16"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("attention          0-1 window:13, 2 global, 3 window:13\n"),
                    HasSubstr("positions          global layers: rotary, base 2000, positions divided by 2.5\n"),
                    HasSubstr("positions          window layers: rotary, base 300\n"),
                    HasSubstr("context limit      128 tokens\n"), HasSubstr("format             safetensors\n")));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("weights            54 tensors: 179 KiB F32 (54)\n"),
                    HasSubstr("tokenizer          none that can be used: "), HasSubstr("memory at 256      about "),
                    HasSubstr(" in bfloat16; beyond the context limit, for --allow-extrapolation; "),
                    HasSubstr(" available\n"), HasSubstr("usable             yes\n")));
}

TEST(Inspect, TimeStandsBesideMemoryAtTheSameLength) {
  EXPECT_THAT(run_gainlens({"inspect", tiny_checkpoint}).out,
              ::testing::ContainsRegex("time +not estimated; --length [0-9k]+ measures the speed of this machine\n"));
  const auto result = run_gainlens({"inspect", tiny_checkpoint, "--length", "64"});
  const auto memory = result.out.find("memory at "), time = result.out.find("time at ");
  ASSERT_NE(time, std::string::npos);
  const auto length = [&](std::size_t at, std::size_t words) {
    return result.out.substr(at + words, result.out.find(' ', at + words) - at - words);
  };
  EXPECT_EQ(length(memory, 10), length(time, 8));
  EXPECT_THAT(run_gainlens({"inspect", "--help"}).out, HasSubstr("'time' is added with\n--length"));
}

TEST(Inspect, AConfigurationAloneGivesMemoryAndTime) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(golden / "models/falcon/config.json", folder.path() / "config.json");
  const auto result = run_gainlens({"inspect", folder.path(), "--length", "64"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("family             falcon"), HasSubstr("sink-vs-k          one KV head a layer"),
                    HasSubstr("memory at 64       about "), HasSubstr("time at 64         about "),
                    HasSubstr("usable             no: "), HasSubstr("no weights")));
  const Json json = Json::parse(run_gainlens({"inspect", folder.path(), "--json"}).out);
  EXPECT_GT(json.at("memory").at("bytes"), 0);
  EXPECT_EQ(json.at("usable"), false);
  EXPECT_THAT(run_gainlens({"inspect", folder.path()}).out, HasSubstr("time               not estimated; --length "));
}

/// The tiny checkpoint, with a key that its reference reads and no family here computes.
std::filesystem::path checkpoint_in_chunks(const std::filesystem::path& folder) {
  const auto model = copy_checkpoint(folder);
  Json config = Json::parse(bytes_of(model / "config.json"));
  config["attention_chunk_size"] = 7;
  return write_file(model / "config.json", config.dump()).parent_path();
}

TEST(Sweep, SaysBeforeItStartsThatNoTestCanDecide) {
  const TemporaryFolder folder;
  const auto said_of = [&](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"sweep",     golden / "models" / model,
                                      "--tokens",  write_ids(folder.path(), 100),
                                      "--lengths", "16",
                                      "--samples", "1",
                                      "--out",     folder.path() / model};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words).error;
  };
  const std::string doubt = "gainlens: note: one KV head a layer: no permutation test can decide";
  EXPECT_THAT(said_of("falcon", {}), HasSubstr(doubt));
  EXPECT_THAT(said_of("falcon", {"--quiet"}), Not(HasSubstr(doubt)));
  EXPECT_THAT(said_of("llama", {}), Not(HasSubstr("KV head")));
  EXPECT_THAT(run_gainlens({"inspect", golden / "models/falcon"}).out,
              HasSubstr("sink-vs-k          one KV head a layer"));
}

TEST(Sweep, DefaultLengthsShrinkToTheText) {
  const TemporaryFolder folder;
  const auto sweep = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"sweep", tiny_checkpoint,      "--tokens", write_ids(folder.path(), 100),
                                      "--out", folder.path() / "run"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  const auto result = sweep({});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("gainlens: the text has 100 tokens for 5 samples of each length, so the lengths "
                                      "are 5, 10, 20 (choose others with --lengths)\n"));
  EXPECT_THAT(run_gainlens({"inspect", folder.path() / "run"}).out, HasSubstr("15 of 15 complete"));
  EXPECT_THAT(sweep({}).out, HasSubstr("complete, nothing to do"));
  EXPECT_THAT(sweep({"--samples", "60"}).error,
              HasSubstr("chunks: the text has 100 tokens, but 60 samples of length "));
}

TEST(Inspect, KeysThatTheReferenceDoesNotReadAreNamed) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  Json config = Json::parse(bytes_of(model / "config.json"));
  config["mask_value"] = -1;
  write_file(model / "config.json", config.dump());
  const std::string said = "does not read: 'mask_value'; it is ignored";
  const auto inspected = run_gainlens({"inspect", model});
  EXPECT_EQ(inspected.exit_code, 0) << inspected.error;
  EXPECT_THAT(inspected.out, HasSubstr(said));
  const std::string ids = write_ids(folder.path(), 100);
  EXPECT_THAT(run_gainlens({"sweep", model, "--tokens", ids, "--lengths", "16", "--samples", "1", "--quiet", "--out",
                            folder.path() / "run"})
                  .error,
              HasSubstr(said));
  EXPECT_THAT(run_gainlens({"evaluate", "language-model", model, "--tokens", ids, "--length", "16"}).error,
              HasSubstr(said));
  EXPECT_THAT(run_gainlens({"capture", model, "--tokens", ids, "--hooks", "blocks.0.hook_resid_pre", "--out",
                            folder.path() / "c.safetensors"})
                  .error,
              HasSubstr(said));
}

TEST(Evaluate, ALossAboveTheUnigramEntropySaysAbove) {
  const TemporaryFolder folder;
  const std::string ids = write_file(folder.path() / "ids.json", "[5, 5, 5, 5, 5, 6]");
  const auto result = run_gainlens({"evaluate", "language-model", tiny_checkpoint, "--tokens", ids});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("above it by        "), Not(HasSubstr("by        -"))));
}

TEST(Inspect, KeysThatAreIgnored) {
  const TemporaryFolder folder;
  const auto model = checkpoint_in_chunks(folder.path());
  expect_unusable(
      model,
      "unknown key 'attention_chunk_size' (= 7) may change what the model computes; if it does not, remove it or give "
      "--ignore-config-key attention_chunk_size");
  EXPECT_EQ(run_gainlens({"inspect", model, "--ignore-config-key", "attention_chunk_size"}).exit_code, 0);
  EXPECT_EQ(run_gainlens({"hooks", model, "--ignore-config-key", "attention_chunk_size"}).exit_code, 0);
  EXPECT_THAT(run_gainlens({"inspect", tiny_checkpoint, "--ignore-config-key", "attention_chunk_size"}).error,
              HasSubstr("config.json has no key 'attention_chunk_size'"));
  EXPECT_THAT(
      run_gainlens({"inspect", golden / "gguf/llama.gguf", "--ignore-config-key", "attention_chunk_size"}).error,
      HasSubstr("is a GGUF file, which has no config.json"));
}

TEST(Sweep, StoresTheKeysThatAreIgnored) {
  const TemporaryFolder folder;
  const auto model = checkpoint_in_chunks(folder.path());
  const auto sweep = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"sweep",     model,   "--tokens",           write_ids(folder.path(), 100),
                                      "--lengths", "16",    "--samples",          "1",
                                      "--quiet",   "--out", folder.path() / "run"};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  };
  EXPECT_EQ(sweep({}).exit_code, 2);
  const auto result = sweep({"--ignore-config-key", "attention_chunk_size"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  const Json request = Json::parse(bytes_of(folder.path() / "run/request.json"));
  EXPECT_EQ(request.at("ignored_config_keys"), Json::array({"attention_chunk_size"}));
  EXPECT_EQ(sweep({"--ignore-config-key", "attention_chunk_size"}).exit_code, 0);
}

TEST(Inspect, ACheckpointForPrograms) {
  const Json found = Json::parse(run_gainlens({"inspect", golden / "models/gpt-oss", "--json", "--length", "64"}).out);
  EXPECT_EQ(found.at("kind"), "checkpoint");
  EXPECT_EQ(found.at("family"), "gpt_oss");
  EXPECT_THAT(found.at("attention").get<std::vector<std::string>>(), ElementsAre("window:13", "global", "window:13"));
  EXPECT_EQ(found.at("sink_logits"), true);
  EXPECT_EQ(found.at("experts").at("per_token"), 2);
  EXPECT_THAT(found.at("positions").at("all layers").get<std::string>(),
              HasSubstr("yarn scaling by 4 from 32 positions"));
  EXPECT_EQ(found.at("weights").at("F32").at("tensors"), 54);
  EXPECT_EQ(found.at("size_on_disk").get<std::uintmax_t>(),
            std::filesystem::file_size(golden / "models/gpt-oss/config.json") +
                std::filesystem::file_size(golden / "models/gpt-oss/model.safetensors"));
  EXPECT_EQ(found.at("memory").at("length"), 64);
  EXPECT_GT(found.at("memory").at("bytes"), 100 << 20);  // the program and its libraries alone
  EXPECT_GT(found.at("memory").at("available"), 1 << 20);
  EXPECT_TRUE(found.at("tokenizer").contains("unusable"));
  EXPECT_EQ(found.at("usable"), true);
}

TEST(Inspect, AGgufFileNamesItsTypes) {
  const auto result = run_gainlens({"inspect", golden / "gguf/llama-quantised.gguf"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("format             GGUF version 3\n"), HasSubstr("11 KiB Q8_0 (6)"),
                                HasSubstr("640 B F32 (5)"), HasSubstr("parameters         28.8 thousand\n"),
                                HasSubstr("BOS 1 put first\n")));
}

TEST(Inspect, AGgufFileInItsFolder) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(golden / "gguf/llama.gguf", folder.path() / "model.gguf");
  EXPECT_EQ(run_gainlens({"inspect", folder.path()}).out, run_gainlens({"inspect", folder.path() / "model.gguf"}).out);
  std::filesystem::copy_file(tiny_checkpoint / "model.safetensors", folder.path() / "model.safetensors");
  std::filesystem::copy_file(tiny_checkpoint / "config.json", folder.path() / "config.json");
  expect_unusable(folder.path(), "both model.safetensors and 'model.gguf'");
}

TEST(Inspect, WhatMetadataLeaveOutIsNamed) {
  const auto gemma = gemma_model();
  if (!gemma) GTEST_SKIP() << gemma_is_missing;
  const auto result = run_gainlens({"inspect", *gemma});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("attention          0-4 window:512, 5 global, and so on every 6 layers\n"),
                                HasSubstr("positions          window layers: rotary, base 10000\n"),
                                HasSubstr("filled in          rope_local_base_freq = 10000"),
                                HasSubstr("tokenizer          SentencePiece, 262144 tokens (GGUF); BOS 2 put first\n"),
                                HasSubstr("parameters         268 million\n")));
  const Json found = Json::parse(run_gainlens({"inspect", *gemma, "--json"}).out);
  EXPECT_EQ(found.at("filled_in").size(), 3u);
  EXPECT_EQ(found.at("attention").size(), 18u);
}

TEST(Inspect, ABrokenFileIsNamedWithThePlaceOfItsFirstFault) {
  const TemporaryFolder folder;
  const std::string whole = bytes_of(golden / "gguf/llama.gguf");
  write_file(folder.path() / "cut.gguf", whole.substr(0, 40));
  expect_unusable(folder.path() / "cut.gguf", "byte ");
  std::string bytes = whole;
  bytes[4] = 9;
  write_file(folder.path() / "version.gguf", bytes);
  expect_unusable(folder.path() / "version.gguf", "byte 4");

  const auto model = copy_checkpoint(folder.path());
  std::filesystem::resize_file(model / "model.safetensors",
                               std::filesystem::file_size(model / "model.safetensors") - 1);
  expect_unusable(model, "model.safetensors");
  // The findings about the rest of the folder are printed in any case.
  EXPECT_THAT(run_gainlens({"inspect", model}).out,
              AllOf(HasSubstr("family             llama\n"), HasSubstr("context limit      128 tokens\n")));
}

TEST(Inspect, AConfigurationThatContradictsTheTensors) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  Json config = Json::parse(bytes_of(model / "config.json"));
  config["intermediate_size"] = config["intermediate_size"].get<int>() + 1;
  write_file(model / "config.json", config.dump());
  expect_unusable(model, "the weights do not fit config.json: 'model.layers.0.mlp.gate_proj.weight' has shape");
  config["num_key_value_heads"] = 3;
  write_file(model / "config.json", config.dump());
  expect_unusable(model, "num_key_value_heads");
}

TEST(Inspect, AnglesThatNoForwardPassTakes) {
  const TemporaryFolder folder;
  const auto model = copy_checkpoint(folder.path());
  Json config = Json::parse(bytes_of(model / "config.json"));
  config["rope_theta"] = 1.0;
  write_file(model / "config.json", config.dump());
  expect_unusable(model, "rope: base 1; it must be above 1");
}

TEST(Inspect, MisspeltDtypeIsNoFaultOfTheCheckpoint) {
  const auto result = run_gainlens({"inspect", tiny_checkpoint, "--dtype", "flaot32"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.error, HasSubstr("did you mean 'float32'?"));
  EXPECT_EQ(result.out, "");
}

/// An 8-billion-parameter llama as a sparse file: only the header has bytes on disk.
void write_sparse_llama(const std::filesystem::path& folder) {
  const std::int64_t layers = 32, width = 4096, kv = 1024, mlp = 14336, vocabulary = 128256;
  Json header = Json::object();
  std::int64_t offset = 0;
  const auto add = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t bytes = 2;
    for (const std::int64_t size : shape) bytes *= size;
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  };
  add("model.embed_tokens.weight", {vocabulary, width});
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const std::string start = "model.layers." + std::to_string(layer) + ".";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) add(start + norm + ".weight", {width});
    for (const auto& [name, rows] :
         {std::pair{"q", width}, std::pair{"k", kv}, std::pair{"v", kv}, std::pair{"o", width}}) {
      add(start + "self_attn." + name + "_proj.weight", {rows, width});
    }
    add(start + "mlp.gate_proj.weight", {mlp, width});
    add(start + "mlp.up_proj.weight", {mlp, width});
    add(start + "mlp.down_proj.weight", {width, mlp});
  }
  add("model.norm.weight", {width});
  add("lm_head.weight", {vocabulary, width});
  const std::string text = header.dump();
  std::array<char, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  std::filesystem::create_directories(folder);
  const auto file = write_file(folder / "model.safetensors", std::string(length.data(), length.size()) + text);
  std::filesystem::resize_file(file, 8 + text.size() + static_cast<std::uintmax_t>(offset));
  write_file(folder / "config.json", Json{{"model_type", "llama"},
                                          {"hidden_size", width},
                                          {"num_attention_heads", 32},
                                          {"num_key_value_heads", 8},
                                          {"num_hidden_layers", layers},
                                          {"intermediate_size", mlp},
                                          {"vocab_size", vocabulary},
                                          {"max_position_embeddings", 8192},
                                          {"rms_norm_eps", 1e-5},
                                          {"rope_theta", 500000.0},
                                          {"hidden_act", "silu"},
                                          {"tie_word_embeddings", false}}
                                         .dump());
}

TEST(Inspect, MemoryDoesNotGrowWithTheFile) {
  const TemporaryFolder folder;
  write_sparse_llama(folder.path() / "llama-8b");
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_gainlens({"inspect", folder.path() / "llama-8b"});
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("parameters         8.03 billion\n"),
                                HasSubstr("weights            291 tensors: 15 GiB BF16 (291)\n"),
                                HasSubstr("usable             yes")));
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  EXPECT_LT(used.ru_maxrss, 300 * 1024) << "KiB";
  std::cout << "inspect of a 16 GB checkpoint: " << seconds << " s, " << used.ru_maxrss / 1024 << " MiB\n";
}

}  // namespace inspect_command_test
}  // namespace gainlens::testing
