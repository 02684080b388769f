#include "checkpoint_folder.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/load_decoder.h"
#include "support/gguf_bytes.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace gainlens::models {
namespace gguf_checkpoint_test {

using gainlens::testing::GgmlType;
using gainlens::testing::GgufBytes;
using models::testing::CheckpointFolder;
using models::testing::message_of;
using models::testing::tiny_config;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The smallest llama: width 4, 2 heads of 2 dimensions on one KV head, MLP 3, 5 tokens, 1 layer. A test can change its
/// numbers before it is written.
struct TinyGguf {
  std::string architecture = "llama";
  std::map<std::string, std::uint32_t> sizes = {
      {"block_count", 1},          {"embedding_length", 4},        {"feed_forward_length", 3},
      {"attention.head_count", 2}, {"attention.head_count_kv", 1}, {"context_length", 64},
      {"attention.key_length", 2}, {"attention.value_length", 2}};
  std::vector<std::string> left_out;
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> tensors = {
      {"token_embd.weight", {5, 4}},     {"blk.0.attn_norm.weight", {4}},   {"blk.0.attn_q.weight", {4, 4}},
      {"blk.0.attn_k.weight", {2, 4}},   {"blk.0.attn_v.weight", {2, 4}},   {"blk.0.attn_output.weight", {4, 4}},
      {"blk.0.ffn_norm.weight", {4}},    {"blk.0.ffn_gate.weight", {3, 4}}, {"blk.0.ffn_up.weight", {3, 4}},
      {"blk.0.ffn_down.weight", {4, 3}}, {"output_norm.weight", {4}},       {"output.weight", {5, 4}}};

  GgufBytes bytes() const {
    GgufBytes gguf;
    gguf.add("general.architecture", architecture);
    for (const auto& [key, value] : sizes) gguf.add(architecture + "." + key, value);
    gguf.add(architecture + ".attention.layer_norm_rms_epsilon", 1e-5f);
    for (const auto& [name, shape] : tensors) {
      if (std::find(left_out.begin(), left_out.end(), name) != left_out.end()) continue;
      std::uint64_t count = 1;
      for (const std::uint64_t size : shape) count *= size;
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = 0.1f * static_cast<float>(i);
      gguf.tensor(name, shape, values);
    }
    return gguf;
  }
};

class GgufCheckpoint : public ::testing::Test {
 protected:
  std::filesystem::path write(const GgufBytes& gguf) { return gguf.write(folder_.path() / "tiny.gguf"); }
  std::string refusal(const GgufBytes& gguf) {
    const auto path = write(gguf);
    return message_of([&] { check_checkpoint(path); });
  }
  CheckpointFolder folder_{tiny_config()};
};

TEST_F(GgufCheckpoint, AFileThatIsNoModelIsCalledWhatItIs) {
  const auto typed = [](const char* type) { return GgufBytes().add("general.type", std::string(type)); };
  const std::vector<float> values(4);
  EXPECT_THAT(refusal(typed("imatrix").tensor("blk.0.attn_q.weight.in_sum2", {4}, values)),
              HasSubstr("tiny.gguf: an importance matrix (imatrix)"));
  EXPECT_THAT(refusal(TinyGguf{}.bytes().add("imatrix.chunk_count", std::uint32_t{3})), HasSubstr("(imatrix)"));
  EXPECT_THAT(refusal(TinyGguf{}.bytes().add("general.type", std::string("adapter"))),
              HasSubstr("an adapter (LoRA) in GGUF, which is not read"));
  EXPECT_THAT(refusal(TinyGguf{}.bytes().add("adapter.type", std::string("lora"))), HasSubstr("an adapter (LoRA)"));
  TinyGguf projector;
  projector.architecture = "clip";
  EXPECT_THAT(refusal(projector.bytes()),
              HasSubstr("the projector of a multimodal model (mmproj), which reads images; give the GGUF file"));
  TinyGguf vocabulary;
  for (const auto& [name, shape] : vocabulary.tensors) vocabulary.left_out.push_back(name);
  EXPECT_THAT(refusal(vocabulary.bytes()), HasSubstr("holds no tensors, as files with a vocabulary alone"));
}

TEST_F(GgufCheckpoint, ABosOutsideOfTheVocabularyIsNone) {
  const auto path = write(TinyGguf{}.bytes().add("tokenizer.ggml.bos_token_id", std::uint32_t{5}));
  const CheckpointSource source = open_checkpoint(path);
  EXPECT_EQ(source.config.bos_token, std::nullopt);
  EXPECT_THAT(source.notes,
              ElementsAre(HasSubstr("tokenizer.ggml.bos_token_id is 5, and the vocabulary has 5 tokens")));
}

TEST_F(GgufCheckpoint, MetadataSayWhatAConfigWould) {
  const auto path = write(TinyGguf{}.bytes());
  const CheckpointSource source = open_checkpoint(path);
  EXPECT_EQ(source.config.family, "llama");
  EXPECT_EQ(source.config.heads, 2);
  EXPECT_EQ(source.config.kv_heads, 1);
  EXPECT_EQ(source.config.head_dim, 2);
  EXPECT_EQ(source.config.max_positions, 64);
  EXPECT_FLOAT_EQ(static_cast<float>(source.config.norm_epsilon), 1e-5f);
  EXPECT_FALSE(source.config.tied_head);
  EXPECT_EQ(source.config.bos_token, std::nullopt);
  EXPECT_THAT(source.files, ElementsAre(path));
  EXPECT_THAT(source.remarks, IsEmpty());
  EXPECT_TRUE(source.is_gguf());
}

TEST_F(GgufCheckpoint, AFolderWithOneIsTheSameCheckpoint) {
  write(TinyGguf{}.bytes());
  EXPECT_EQ(open_checkpoint(folder_.path()).path, folder_.path() / "tiny.gguf");
  EXPECT_EQ(load_checkpoint(folder_.path()).weights.layers.size(), 1u);
}

TEST_F(GgufCheckpoint, WithoutAnOutputTensorTheHeadIsTied) {
  TinyGguf tiny;
  tiny.left_out = {"output.weight"};
  const Checkpoint checkpoint = load_checkpoint(write(tiny.bytes()));
  EXPECT_TRUE(checkpoint.config.tied_head);
  EXPECT_TRUE(checkpoint.weights.head.is_same(checkpoint.weights.embedding));
}

TEST_F(GgufCheckpoint, AWindowMakesItMistral) {
  TinyGguf tiny;
  tiny.sizes["attention.sliding_window"] = 7;
  const DecoderConfig config = read_decoder_config(write(tiny.bytes()));
  EXPECT_EQ(config.family, "mistral");
  EXPECT_THAT(config.window, ElementsAre(7));
}

/// The notes on a file of architecture llama. `sizes` are set beside those of TinyGguf.
class WindowLeftOut : public GgufCheckpoint {
 protected:
  static TinyGguf mistral() {
    TinyGguf tiny;
    tiny.sizes = {{"block_count", 32},          {"embedding_length", 4096},     {"feed_forward_length", 14336},
                  {"attention.head_count", 32}, {"attention.head_count_kv", 8}, {"context_length", 32768}};
    return tiny;
  }
  std::vector<std::string> notes(const GgufBytes& gguf) { return open_checkpoint(write(gguf)).notes; }
};

TEST_F(WindowLeftOut, IsNotedForTheSizesOfMistral) {
  EXPECT_THAT(notes(mistral().bytes()), ElementsAre(HasSubstr("it has the sizes of Mistral 7B v0.1, whose window is")));
  EXPECT_THAT(notes(mistral().bytes().add("llama.rope.freq_base", 10000.0f)), ::testing::SizeIs(1));
}

TEST_F(WindowLeftOut, IsNotedForTheName) {
  for (const char* name : {"mistralai_mistral-7b-instruct-v0.1", "Mistral 7B v0.1"})
    EXPECT_THAT(notes(TinyGguf().bytes().add("general.name", name)), ElementsAre(HasSubstr("it has the name of")));
  EXPECT_THAT(notes(TinyGguf().bytes().add("general.basename", "Mistral").add("general.version", "v0.1")),
              ::testing::SizeIs(1));
}

TEST_F(WindowLeftOut, IsNotNotedForOthers) {
  EXPECT_THAT(notes(TinyGguf().bytes()), ::testing::IsEmpty());
  EXPECT_THAT(notes(mistral().bytes().add("llama.rope.freq_base", 1000000.0f)), ::testing::IsEmpty());  // v0.2
  EXPECT_THAT(notes(mistral().bytes().add("llama.rope.freq_base", 1000000.0f).add("general.name", "Mistral v0.1 Nemo")),
              ::testing::IsEmpty());
  EXPECT_THAT(notes(TinyGguf().bytes().add("general.name", "Mixtral 8x7B v0.1")), ::testing::IsEmpty());
  EXPECT_THAT(notes(TinyGguf().bytes().add("general.name", 7u)), ::testing::IsEmpty());
  TinyGguf llama3 = mistral();
  llama3.sizes["context_length"] = 8192;
  EXPECT_THAT(notes(llama3.bytes().add("llama.rope.freq_base", 500000.0f)), ::testing::IsEmpty());
  EXPECT_THAT(notes(llama3.bytes()), ::testing::IsEmpty());
  TinyGguf windowed;
  windowed.sizes["attention.sliding_window"] = 4096;
  EXPECT_THAT(notes(windowed.bytes().add("general.name", "Mistral 7B v0.1")), ::testing::IsEmpty());
}

TEST_F(GgufCheckpoint, BlocksBecomeNumbers) {
  TinyGguf tiny;
  tiny.sizes["feed_forward_length"] = 32;
  tiny.left_out = {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"};
  GgufBytes gguf = tiny.bytes();
  gguf.tensor("blk.0.ffn_gate.weight", {32, 4}, std::vector<float>(128, 1));
  gguf.tensor("blk.0.ffn_up.weight", {32, 4}, std::vector<float>(128, 1));
  // Q8_0: a float16 scale, then 32 signed bytes. Scale 0.5 (0x3800), values 3.
  std::string block("\x00\x38", 2);
  block += std::string(32, '\x03');
  gguf.tensor("blk.0.ffn_down.weight", GgmlType::q8_0, {4, 32}, block + block + block + block);
  const at::Tensor down = load_checkpoint(write(gguf)).weights.layers[0].mlp_down;
  EXPECT_TRUE(at::equal(down, at::full({4, 32}, 1.5f)));
}

TEST_F(GgufCheckpoint, WhatIsWrongIsNamed) {
  TinyGguf other;
  other.architecture = "lama";
  EXPECT_THAT(refusal(other.bytes()), HasSubstr("general.architecture is 'lama', which is not supported"));
  EXPECT_THAT(refusal(other.bytes()), HasSubstr("did you mean 'llama'?"));

  TinyGguf unknown;
  unknown.sizes["attention.temperature"] = 2;
  EXPECT_THAT(refusal(unknown.bytes()),
              HasSubstr("unknown metadata key 'llama.attention.temperature' may change what the model computes"));

  TinyGguf uneven;
  uneven.sizes["attention.head_count"] = 3;
  uneven.sizes["attention.head_count_kv"] = 2;
  EXPECT_THAT(
      refusal(uneven.bytes()),
      HasSubstr(
          "'num_attention_heads' is 3 and 'num_key_value_heads' is 2; the first must be a multiple of the second"));

  TinyGguf values;
  values.sizes["attention.value_length"] = 3;
  EXPECT_THAT(refusal(values.bytes()),
              HasSubstr("llama.attention.value_length is 3 and llama.attention.key_length is 2; they must be equal"));

  TinyGguf rotated;
  rotated.sizes["rope.dimension_count"] = 1;
  EXPECT_THAT(refusal(rotated.bytes()), HasSubstr("llama.rope.dimension_count is 1 and a head has 2 dimensions"));

  TinyGguf wide;
  wide.sizes["feed_forward_length"] = 4;
  EXPECT_THAT(refusal(wide.bytes()),
              HasSubstr("the weights do not fit metadata: 'blk.0.ffn_gate.weight' has shape [3, 4], expected [4, 4]"));

  TinyGguf lost;
  lost.left_out = {"blk.0.attn_k.weight"};
  EXPECT_THAT(refusal(lost.bytes()), HasSubstr("'blk.0.attn_k.weight' [2, 4] is missing"));

  TinyGguf none;
  none.left_out = {"token_embd.weight"};
  EXPECT_THAT(refusal(none.bytes()), HasSubstr("no tensor 'token_embd.weight' of two dimensions"));
}

TEST_F(GgufCheckpoint, BesideSafetensorsNobodyKnowsWhichIsMeant) {
  folder_.add_tiny_tensors();
  folder_.write();
  write(TinyGguf{}.bytes());
  EXPECT_THAT(
      message_of([&] { read_decoder_config(folder_.path()); }),
      HasSubstr(
          "both model.safetensors and 'tiny.gguf', and either could be meant; give the .gguf file, or move it away"));
  EXPECT_TRUE(open_checkpoint(folder_.path() / "tiny.gguf").is_gguf());
}

TEST_F(GgufCheckpoint, GemmaIsFilledInAndSaysSo) {
  TinyGguf gemma;
  gemma.architecture = "gemma3";
  gemma.sizes["attention.sliding_window"] = 512;
  const CheckpointSource source = open_checkpoint(write(gemma.bytes()));
  EXPECT_THAT(source.config.window, ElementsAre(512));
  EXPECT_EQ(source.config.rope.base, 1e6);
  ASSERT_TRUE(source.config.window_rope.has_value());
  EXPECT_EQ(source.config.window_rope->base, 1e4);
  EXPECT_EQ(source.config.norm_offset, 0);
  EXPECT_EQ(source.config.embedding_scale, 2);
  EXPECT_THAT(source.remarks, ::testing::Contains(HasSubstr("rope_local_base_freq = 10000.0 (not in the file")));
  EXPECT_EQ(source.remarks.size(), 4u);  // the scale of the scores, the pattern of windows, and the two RoPE bases
}

TEST_F(GgufCheckpoint, StarCoder2HasTheWindowOfItsFamily) {
  TinyGguf tiny;
  tiny.architecture = "starcoder2";
  EXPECT_THAT(open_checkpoint(write(tiny.bytes())).remarks,
              ElementsAre("sliding_window = 4096 (not in the file; the value of all models of the family)"));
  EXPECT_THAT(read_decoder_config(write(tiny.bytes())).window, ElementsAre(4096));
  tiny.sizes["attention.sliding_window"] = 7;
  EXPECT_THAT(open_checkpoint(write(tiny.bytes())).remarks, IsEmpty());
  EXPECT_THAT(read_decoder_config(write(tiny.bytes())).window, ElementsAre(7));
}

/// One layer of linear attention with 1 key head, 2 value heads and states of 2 x 3.
TinyGguf tiny_delta() {
  TinyGguf tiny;
  tiny.architecture = "qwen35";
  for (const auto& [key, value] : std::map<std::string, std::uint32_t>{{"ssm.conv_kernel", 2},
                                                                       {"ssm.state_size", 2},
                                                                       {"ssm.group_count", 1},
                                                                       {"ssm.time_step_rank", 2},
                                                                       {"ssm.inner_size", 6},
                                                                       {"full_attention_interval", 2},
                                                                       {"rope.dimension_count", 2}})
    tiny.sizes[key] = value;
  tiny.left_out = {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight", "blk.0.attn_output.weight",
                   "blk.0.ffn_norm.weight"};
  for (const auto& [name, shape] :
       std::map<std::string, std::vector<std::uint64_t>>{{"post_attention_norm.weight", {4}},
                                                         {"attn_qkv.weight", {10, 4}},
                                                         {"attn_gate.weight", {6, 4}},
                                                         {"ssm_beta.weight", {2, 4}},
                                                         {"ssm_alpha.weight", {2, 4}},
                                                         {"ssm_conv1d.weight", {10, 2}},
                                                         {"ssm_dt.bias", {2}},
                                                         {"ssm_norm.weight", {3}},
                                                         {"ssm_out.weight", {4, 6}}})
    tiny.tensors.emplace_back("blk.0." + name, shape);
  return tiny;
}

TEST_F(GgufCheckpoint, RatesOfTheDeltaRuleAreLogarithms) {
  const std::vector<float> rates = {-1, -7.389056F};
  const Checkpoint checkpoint = load_checkpoint(write(tiny_delta().bytes().tensor("blk.0.ssm_a", {2}, rates)));
  EXPECT_EQ(checkpoint.config.family, "qwen3_5_text");
  EXPECT_EQ(checkpoint.config.delta.value_dim, 3);
  EXPECT_EQ(checkpoint.config.norm_offset, 0);
  const LayerWeights& layer = checkpoint.weights.layers[0];
  EXPECT_TRUE(at::allclose(layer.delta_log_rate, at::tensor({0.0F, 2.0F})));
  EXPECT_THAT(layer.delta_convolution.sizes(), ElementsAre(10, 1, 2));

  const auto wrong = write(tiny_delta().bytes().tensor("blk.0.ssm_a", {2}, {-1, 0}));
  EXPECT_THAT(message_of([&] { load_checkpoint(wrong); }),
              HasSubstr("'blk.0.ssm_a' is 0 at index 1; must be below 0, as it is -exp of a logarithm"));
}

TEST_F(GgufCheckpoint, BlocksThatPredictSeveralTokensAreLeftOut) {
  const std::vector<float> rates = {-1, -2};
  TinyGguf tiny = tiny_delta();
  tiny.sizes["block_count"] = 2;
  tiny.sizes["nextn_predict_layers"] = 1;
  tiny.tensors.emplace_back("blk.1.nextn.enorm.weight", std::vector<std::uint64_t>{4});
  EXPECT_EQ(load_checkpoint(write(tiny.bytes().tensor("blk.0.ssm_a", {2}, rates))).config.layers, 1);
  tiny.sizes["nextn_predict_layers"] = 2;
  EXPECT_THAT(refusal(tiny.bytes()), HasSubstr("qwen35.nextn_predict_layers"));
  tiny.sizes["nextn_predict_layers"] = 1;
  tiny.tensors.back().first = "blk.1.attn_norm.weight";
  EXPECT_THAT(refusal(tiny.bytes()), HasSubstr("block 1 of 2 has no tensor 'nextn.enorm.weight'"));
}

TEST_F(GgufCheckpoint, SizesOfTheDeltaRuleHaveToBeThere) {
  for (const char* key :
       {"ssm.conv_kernel", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank", "ssm.inner_size"}) {
    TinyGguf tiny = tiny_delta();
    tiny.sizes.erase(key);
    EXPECT_THAT(refusal(tiny.bytes()), HasSubstr(key));
  }
  TinyGguf tiny = tiny_delta();
  tiny.sizes["ssm.inner_size"] = 7;
  EXPECT_THAT(refusal(tiny.bytes()), HasSubstr("qwen35.ssm.inner_size is 7 and qwen35.ssm.time_step_rank is 2"));
}

TEST_F(GgufCheckpoint, GateAndUpOfExpertsInOneStack) {
  TinyGguf tiny;
  tiny.architecture = "qwen3moe";
  tiny.sizes.insert({{"expert_count", 2}, {"expert_used_count", 1}, {"expert_feed_forward_length", 3}});
  tiny.left_out = {"blk.0.ffn_gate.weight", "blk.0.ffn_up.weight", "blk.0.ffn_down.weight"};
  tiny.tensors.emplace_back("blk.0.attn_q_norm.weight", std::vector<std::uint64_t>{2});
  tiny.tensors.emplace_back("blk.0.attn_k_norm.weight", std::vector<std::uint64_t>{2});
  tiny.tensors.emplace_back("blk.0.ffn_gate_inp.weight", std::vector<std::uint64_t>{2, 4});
  tiny.tensors.emplace_back("blk.0.ffn_gate_up_exps.weight", std::vector<std::uint64_t>{2, 6, 4});
  tiny.tensors.emplace_back("blk.0.ffn_down_exps.weight", std::vector<std::uint64_t>{2, 4, 3});
  const Checkpoint checkpoint = load_checkpoint(write(tiny.bytes()));
  const at::Tensor joined = 0.1 * at::arange(48, at::kFloat).view({2, 6, 4});
  EXPECT_TRUE(checkpoint.weights.layers[0].expert_gate.allclose(joined.slice(1, 0, 3)));
  EXPECT_TRUE(checkpoint.weights.layers[0].expert_up.allclose(joined.slice(1, 3, 6)));
  EXPECT_EQ(checkpoint.weights.layers[0].expert_down.sizes(), (at::IntArrayRef{2, 4, 3}));
  tiny.tensors.emplace_back("blk.0.ffn_up_exps.weight", std::vector<std::uint64_t>{2, 3, 4});
  EXPECT_THAT(refusal(tiny.bytes()), HasSubstr("ffn_up_exps"));
}

/// Two heads with keys of 3 dimensions, of which 2 are rotated, and values of 2; one layer without experts.
TinyGguf tiny_latent() {
  TinyGguf tiny;
  tiny.architecture = "deepseek2";
  tiny.sizes["attention.head_count_kv"] = 1;
  tiny.sizes["attention.kv_lora_rank"] = 5;
  tiny.sizes["attention.key_length"] = 7;
  tiny.sizes["attention.value_length"] = 5;
  tiny.sizes["attention.key_length_mla"] = 3;
  tiny.sizes["attention.value_length_mla"] = 2;
  tiny.sizes["rope.dimension_count"] = 2;
  tiny.sizes["leading_dense_block_count"] = 1;
  tiny.sizes["expert_count"] = 4;
  tiny.sizes["expert_used_count"] = 1;
  tiny.sizes["expert_shared_count"] = 1;
  tiny.sizes["expert_feed_forward_length"] = 3;
  tiny.left_out = {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight"};
  tiny.tensors.emplace_back("blk.0.attn_kv_a_mqa.weight", std::vector<std::uint64_t>{7, 4});
  tiny.tensors.emplace_back("blk.0.attn_kv_a_norm.weight", std::vector<std::uint64_t>{5});
  tiny.tensors.emplace_back("blk.0.attn_k_b.weight", std::vector<std::uint64_t>{2, 5, 1});
  tiny.tensors.emplace_back("blk.0.attn_v_b.weight", std::vector<std::uint64_t>{2, 2, 5});
  return tiny;
}

/// With the queries, whose name TinyGguf uses for another shape.
GgufBytes with_queries(const TinyGguf& tiny) {
  return tiny.bytes().tensor("blk.0.attn_q.weight", {6, 4}, std::vector<float>(24, 1));
}

TEST_F(GgufCheckpoint, StacksOfLatentKeysAndValues) {
  const Checkpoint checkpoint = load_checkpoint(write(with_queries(tiny_latent())));
  EXPECT_EQ(checkpoint.config.family, "deepseek_v2");
  EXPECT_EQ(checkpoint.config.head_dim, 3);
  EXPECT_EQ(checkpoint.config.value_dim(), 2);
  EXPECT_EQ(checkpoint.config.latent.query_rank, 0);
  const LayerWeights& layer = checkpoint.weights.layers[0];
  // [head, rank, one row] of keys: the rows of the two heads. [head, row, rank] of values.
  EXPECT_TRUE(layer.key.allclose(0.1 * at::arange(10, at::kFloat).view({2, 5})));
  EXPECT_TRUE(layer.value.allclose(0.1 * at::arange(20, at::kFloat).view({4, 5})));
  EXPECT_THAT(open_checkpoint(write(with_queries(tiny_latent()))).remarks,
              ::testing::Contains("n_group = 1 (not in the file; no groups)"));
}

TEST_F(GgufCheckpoint, OlderFilesJoinLatentKeysAndValues) {
  TinyGguf tiny = tiny_latent();
  tiny.sizes["attention.head_count_kv"] = 2;
  tiny.sizes["attention.key_length"] = 3;
  tiny.sizes["attention.value_length"] = 2;
  for (const char* key : {"attention.key_length_mla", "attention.value_length_mla"}) tiny.sizes.erase(key);
  tiny.tensors.resize(tiny.tensors.size() - 2);
  tiny.tensors.emplace_back("blk.0.attn_kv_b.weight", std::vector<std::uint64_t>{6, 5});
  const Checkpoint checkpoint = load_checkpoint(write(with_queries(tiny)));
  EXPECT_EQ(checkpoint.weights.layers[0].key.sizes(), (at::IntArrayRef{2, 5}));
  EXPECT_NEAR(checkpoint.weights.layers[0].value[2][0].item<double>(), 0.1 * 5 * 4, 1e-6);  // row 4 of 6
  tiny.tensors.emplace_back("blk.0.attn_k_b.weight", std::vector<std::uint64_t>{2, 5, 1});
  EXPECT_THAT(refusal(with_queries(tiny)), HasSubstr("attn_k_b"));
}

TEST_F(GgufCheckpoint, LatentSizesThatContradictEachOther) {
  const auto refused = [&](const char* key, std::uint32_t value) {
    TinyGguf tiny = tiny_latent();
    tiny.sizes[key] = value;
    return refusal(with_queries(tiny));
  };
  EXPECT_THAT(refused("attention.key_length", 8), HasSubstr("attention.key_length is 8; must be 7"));
  EXPECT_THAT(refused("attention.value_length", 2), HasSubstr("attention.value_length is 2; must be 5"));
  EXPECT_THAT(refused("attention.head_count_kv", 2), HasSubstr("attention.head_count_kv is 2; must be 1"));
  EXPECT_THAT(refused("attention.key_length_mla", 2), HasSubstr("it must be fewer"));
  EXPECT_THAT(refused("expert_gating_func", 2), HasSubstr("expert_gating_func is 2; must be 1 (softmax)"));
  EXPECT_THAT(refused("attention.q_lora_rank", 3), HasSubstr("attn_q_a"));
  EXPECT_THAT(refused("expert_group_count", 3), HasSubstr("groups must be of one size"));
  TinyGguf tiny = tiny_latent();
  tiny.sizes.erase("attention.kv_lora_rank");
  EXPECT_THAT(refusal(with_queries(tiny)), HasSubstr("attention.kv_lora_rank"));
  tiny = tiny_latent();
  tiny.left_out.emplace_back("blk.0.attn_v_b.weight");
  EXPECT_THAT(refusal(with_queries(tiny)), HasSubstr("'blk.0.attn_v_b.weight' [2, 2, 5] is missing"));
  tiny = tiny_latent();
  GgufBytes scaled = with_queries(tiny);
  scaled.add("deepseek2.rope.scaling.type", std::string("yarn"));
  scaled.add("deepseek2.rope.scaling.factor", 4.0f);
  EXPECT_THAT(refusal(scaled), HasSubstr("yarn_log_multiplier is missing"));
}

}  // namespace gguf_checkpoint_test
}  // namespace gainlens::models
