#include "models/checkpoint/checkpoint.h"
#include "checkpoint_folder.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/checkpoint/tensor_values.h"
#include "models/checkpoint/torch_dtype.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

namespace gainlens::models {
namespace checkpoint_test {

using models::testing::CheckpointFolder;
using models::testing::message_of;
using models::testing::tiny_config;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string query_name = "model.layers.0.self_attn.q_proj.weight";

/// A complete tiny checkpoint. A struct, because the folder cannot be moved.
struct Tiny : CheckpointFolder {
  explicit Tiny(const Json& changes = Json::object(), const std::string& family = "llama", std::int64_t query_rows = 4)
      : CheckpointFolder(tiny_config(family)) {
    config.update(changes);
    add_tiny_tensors(query_rows);
  }
  Checkpoint load(at::ScalarType dtype = at::kFloat) const { return load_checkpoint(write(), {.dtype = dtype}); }
  std::string refusal(at::ScalarType dtype = at::kFloat) const {
    return message_of([&] { load(dtype); });
  }
};

TEST(Checkpoint, LoadsEverySlot) {
  const Tiny folder;
  const Checkpoint checkpoint = folder.load();
  EXPECT_EQ(checkpoint.path, folder.path());
  EXPECT_EQ(checkpoint.files, (std::vector{folder.path() / "config.json", folder.path() / "model.safetensors"}));
  EXPECT_EQ(checkpoint.config.family, "llama");
  ASSERT_EQ(checkpoint.weights.layers.size(), 1);
  const LayerWeights& layer = checkpoint.weights.layers[0];
  EXPECT_TRUE(layer.query.equal(at::arange(16, at::kFloat).view({4, 4})));
  EXPECT_EQ(layer.mlp_down.sizes(), (at::IntArrayRef{4, 3}));
  EXPECT_TRUE(checkpoint.weights.head.equal(at::arange(100, 120, at::kFloat).view({5, 4})));
  EXPECT_FALSE(layer.query_bias.defined() || layer.query_norm.defined() || layer.gate_score.defined());
}

TEST(Checkpoint, ValuesOutliveTheFile) {
  Tiny folder;
  const Checkpoint checkpoint = folder.load();
  std::filesystem::resize_file(folder.path() / "model.safetensors", 0);
  EXPECT_EQ(checkpoint.weights.final_norm.sum().item<float>(), 0 + 1 + 2 + 3);
}

TEST(Checkpoint, SplitsGateRowsOff) {
  Tiny folder(Json{{"headwise_attn_output_gate", true}, {"use_qk_norm", false}}, "qwen3", 6);
  const LayerWeights layer = folder.load().weights.layers[0];
  EXPECT_TRUE(layer.query.equal(at::arange(16, at::kFloat).view({4, 4})));
  EXPECT_TRUE(layer.gate_score.equal(at::arange(16, 24, at::kFloat).view({2, 4})));
}

TEST(Checkpoint, BiasesAndQueryNorms) {
  Tiny folder(Json{{"elementwise_attn_output_gate", true}, {"qkv_bias", true}}, "qwen3", 8);
  const std::string at = "model.layers.0.self_attn.";
  folder.add(at + "q_proj.bias", {8});
  folder.add(at + "k_proj.bias", {2});
  folder.add(at + "v_proj.bias", {2});
  folder.add(at + "o_proj.bias", {4});
  folder.add(at + "q_norm.weight", {2}, 7);
  folder.add(at + "k_norm.weight", {2}, 9);
  const LayerWeights layer = folder.load().weights.layers[0];
  EXPECT_TRUE(layer.query_bias.equal(at::arange(4, at::kFloat)));
  EXPECT_TRUE(layer.gate_score_bias.equal(at::arange(4, 8, at::kFloat)));
  EXPECT_TRUE(layer.query_norm.equal(at::tensor({7.f, 8.f})));
  EXPECT_TRUE(layer.output_bias.equal(at::arange(4, at::kFloat)));
}

TEST(Checkpoint, TiedEmbeddingUnderEitherName) {
  for (const char* absent : {"lm_head.weight", "model.embed_tokens.weight"}) {
    Tiny folder(Json{{"tie_word_embeddings", true}});
    folder.tensors.erase(absent);
    const Checkpoint checkpoint = folder.load();
    EXPECT_TRUE(checkpoint.weights.head.is_same(checkpoint.weights.embedding));
    EXPECT_EQ(checkpoint.weights.embedding[0][0].item<float>(), std::string(absent) == "lm_head.weight" ? 0 : 100);
  }
}

// Multimodal checkpoints of 2025 were saved in two layouts. Each has its own name of the head.
TEST(Checkpoint, BothLayoutsOfAMultimodalModelWithAStoredHead) {
  const std::vector<std::pair<std::string, std::string>> layouts = {
      {"language_model.model.", "language_model.lm_head.weight"}, {"model.language_model.", "lm_head.weight"}};
  for (const auto& [prefix, head] : layouts) {
    Json text = tiny_config("gemma3_text");
    text["tie_word_embeddings"] = true;
    CheckpointFolder folder({{"model_type", "gemma3"}, {"text_config", text}});
    folder.add_tiny_tensors(4, prefix);
    folder.tensors.erase("lm_head.weight");
    folder.tensors[head] = folder.tensors.at(prefix + "embed_tokens.weight");
    for (const char* norm : {"pre_feedforward_layernorm", "post_feedforward_layernorm"})
      folder.add(prefix + "layers.0." + norm + ".weight", {4});
    for (const char* norm : {"q_norm", "k_norm"}) folder.add(prefix + "layers.0.self_attn." + norm + ".weight", {2});
    EXPECT_EQ(message_of([&] { load_checkpoint(folder.write()); }), "") << prefix;
    folder.tensors.at(head).values.front() += 1;
    EXPECT_THAT(message_of([&] { load_checkpoint(folder.write()); }), HasSubstr(head)) << prefix;
  }
}

TEST(Checkpoint, TiedPairMustBeEqual) {
  Tiny folder(Json{{"tie_word_embeddings", true}});
  EXPECT_THAT(folder.refusal(), HasSubstr("'model.embed_tokens.weight' and 'lm_head.weight' differ"));
  folder.tensors["lm_head.weight"] = folder.tensors["model.embed_tokens.weight"];
  EXPECT_NO_THROW(folder.load());
}

TEST(Checkpoint, CheckingRefusesWhatLoadingWouldButReadsNoValues) {
  Tiny folder;
  EXPECT_NO_THROW(check_checkpoint(folder.write()));
  folder.tensors["model.norm.weight"].values[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NO_THROW(check_checkpoint(folder.write()));
  EXPECT_THAT(folder.refusal(), HasSubstr("NaN"));
  folder.tensors.erase("model.norm.weight");
  EXPECT_THAT(message_of([&] { check_checkpoint(folder.write()); }), HasSubstr("'model.norm.weight' [4] is missing"));
}

TEST(Checkpoint, TiedWithNeither) {
  Tiny folder(Json{{"tie_word_embeddings", true}});
  folder.tensors.erase("lm_head.weight");
  folder.tensors.erase("model.embed_tokens.weight");
  EXPECT_THAT(folder.refusal(), HasSubstr("'model.embed_tokens.weight' [5, 4] is missing"));
}

TEST(Checkpoint, UntiedHeadMissing) {
  Tiny folder;
  folder.tensors.erase("lm_head.weight");
  EXPECT_THAT(folder.refusal(),
              AllOf(HasSubstr("'lm_head.weight' [5, 4] is missing"), HasSubstr("tie_word_embeddings")));
}

TEST(Checkpoint, WithoutPrefix) {
  CheckpointFolder folder(tiny_config());
  folder.add_tiny_tensors(4, "");
  EXPECT_EQ(load_checkpoint(folder.write()).weights.layers[0].query.size(0), 4);
}

TEST(Checkpoint, RopeTablesArePassedOver) {
  Tiny folder;
  folder.add("model.layers.0.self_attn.rotary_emb.inv_freq", {1});
  folder.add("model.rotary_emb.inv_freq", {1});
  EXPECT_NO_THROW(folder.load());
}

TEST(Checkpoint, LayersThatPredictFurtherTokensAreNotRun) {
  CheckpointFolder folder(tiny_config("deepseek_v2"));
  folder.config.update({{"num_key_value_heads", 2},
                        {"head_dim", nullptr},
                        {"qk_rope_head_dim", 2},
                        {"qk_nope_head_dim", 1},
                        {"v_head_dim", 2},
                        {"kv_lora_rank", 3},
                        {"q_lora_rank", nullptr},
                        {"num_experts_per_tok", 1},
                        {"first_k_dense_replace", 1}});
  folder.add_tiny_tensors(6);
  const std::string layer = "model.layers.0.self_attn.";
  for (const char* name : {"k_proj.weight", "v_proj.weight"}) folder.tensors.erase(layer + name);
  folder.add(layer + "kv_a_proj_with_mqa.weight", {5, 4});
  folder.add(layer + "kv_a_layernorm.weight", {3});
  folder.add(layer + "kv_b_proj.weight", {6, 3});
  EXPECT_EQ(message_of([&] { load_checkpoint(folder.write(), {}); }), "");
  folder.add("model.layers.1.self_attn.o_proj.weight", {4, 4});
  EXPECT_THAT(message_of([&] { load_checkpoint(folder.write(), {}); }), HasSubstr("model.layers.1.self_attn.o_proj"));
  folder.add("model.layers.1.eh_proj.weight", {4, 8});
  const Checkpoint checkpoint = load_checkpoint(folder.write(), {});
  EXPECT_THAT(open_checkpoint(folder.path()).notes,
              ElementsAre("further layers after those of config.json: 1; they predict further tokens, and the language "
                          "model does not run them"));
}

TEST(Checkpoint, AllFaultsInOneMessage) {
  Tiny folder;
  folder.tensors.erase(query_name);
  folder.add("model.layers.0.self_attn.q_prj.weight", {4, 4});
  folder.add("model.norm.weight", {5});
  folder.add("model.layers.1.input_layernorm.weight", {4});
  EXPECT_THAT(folder.refusal(),
              AllOf(HasSubstr(folder.path().string()), HasSubstr("'" + query_name + "' [4, 4] is missing"),
                    HasSubstr("did you mean 'model.layers.0.self_attn.q_prj.weight'?"),
                    HasSubstr("'model.norm.weight' has shape [5], expected [4]"),
                    HasSubstr("'model.layers.1.input_layernorm.weight' [4] is not part of this model")));
}

/// What loading says of a golden checkpoint whose configuration was changed.
std::string refusal_of_golden(const std::string& name, const Json& changes) {
  const std::filesystem::path golden = GAINLENS_SOURCE_DIR "/tests/golden/models/" + name;
  CheckpointFolder folder(read_json_file(golden / "config.json", 1 << 20));
  folder.config.update(changes);
  folder.write();
  std::filesystem::copy_file(golden / "model.safetensors", folder.path() / "model.safetensors");
  const std::string checked = message_of([&] { check_checkpoint(folder.path()); });
  EXPECT_EQ(message_of([&] { load_checkpoint(folder.path(), {}); }), checked);
  EXPECT_THAT(checked, Not(HasSubstr("\n")));
  return checked;
}

TEST(Checkpoint, TensorsOfAnotherFamilyAreNamed) {
  EXPECT_EQ(refusal_of_golden("llama", Json::object()), "");
  const auto as = [](const std::string& name, const char* type, const char* model_class) {
    return refusal_of_golden(name, {{"model_type", type}, {"architectures", {model_class}}});
  };
  EXPECT_THAT(as("llama", "qwen2", "Qwen2ForCausalLM"), HasSubstr("'model.layers.0.self_attn.q_proj.bias'"));
  EXPECT_THAT(as("llama", "olmo2", "Olmo2ForCausalLM"),
              HasSubstr("'model.layers.0.self_attn.q_norm.weight' [48] is missing"));
  EXPECT_THAT(as("mixtral", "llama", "LlamaForCausalLM"), HasSubstr("'num_experts_per_tok' is 2"));
  EXPECT_THAT(as("qwen3", "llama", "LlamaForCausalLM"), HasSubstr("q_norm.weight"));
}

TEST(Checkpoint, MoreExpertsThanTensors) {
  for (const auto& [name, key] :
       {std::pair{"mixtral", "num_local_experts"}, {"qwen3-moe", "num_experts"}, {"qwen2-moe", "num_experts"}}) {
    const Json config = read_json_file(
        std::filesystem::path(GAINLENS_SOURCE_DIR "/tests/golden/models") / name / "config.json", 1 << 20);
    const auto count = config.at(key).get<std::int64_t>();
    EXPECT_THAT(refusal_of_golden(name, {{key, count + 1}}), HasSubstr("is missing")) << name;
    EXPECT_THAT(refusal_of_golden(name, {{key, count - 1}}), HasSubstr("expected [")) << name;
  }
}

TEST(Checkpoint, ManyFaultsAreCounted) {
  Tiny folder;
  for (int i = 0; i < 25; ++i) folder.add("extra." + std::to_string(i), {1});
  EXPECT_THAT(folder.refusal(), AllOf(HasSubstr("'extra.0'"), HasSubstr("; and 15 more"), Not(HasSubstr("'extra.9'"))));
}

TEST(Checkpoint, ASurplusBiasIsNotDropped) {
  Tiny folder;
  folder.add("model.layers.0.self_attn.q_proj.bias", {4});
  EXPECT_THAT(folder.refusal(), HasSubstr("'model.layers.0.self_attn.q_proj.bias' [4] is not part of this model"));
}

TEST(Checkpoint, NanAndInfinityAreLocated) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    Tiny folder;
    folder.tensors[query_name].values[6] = bad;
    EXPECT_THAT(folder.refusal(),
                HasSubstr("tensor '" + query_name + "' holds NaN or infinity: 1 of 16 values, the first at [1, 2]"));
  }
}

TEST(Checkpoint, Float16CannotHoldEverything) {
  Tiny folder;
  folder.tensors[query_name].values[15] = 70000;  // the largest float16 is 65504
  EXPECT_THAT(folder.refusal(at::kHalf),
              HasSubstr("tensor '" + query_name + "' is too large for float16: 1 of 16 values, the first at [3, 3]"));
  EXPECT_NO_THROW(folder.load(at::kBFloat16));
}

TEST(Checkpoint, IntegerWeightsAreRefused) {
  const Tiny folder;
  folder.write();
  const std::array<std::int8_t, 20> bytes{};
  std::vector<formats::TensorToWrite> list{
      {"model.embed_tokens.weight", formats::DType::i8, {5, 4}, std::as_bytes(std::span(bytes))}};
  formats::write_tensors(folder.path() / "model.safetensors", list);
  EXPECT_THAT(message_of([&] { load_checkpoint(folder.path()); }),
              HasSubstr("'model.embed_tokens.weight' is I8, expected F64, F32, F16 or BF16"));
}

TEST(Checkpoint, OtherDtypesAreRefused) {
  const Tiny folder;
  EXPECT_THAT(folder.refusal(at::kInt), HasSubstr("models are computed in float64"));
}

TEST(Checkpoint, DemoInEveryDtype) {
  const std::filesystem::path path = GAINLENS_SOURCE_DIR "/data/demo/plain";  // stored in bfloat16
  const at::Tensor exact = load_checkpoint(path, {.dtype = at::kDouble}).weights.embedding;
  for (const auto& [dtype, tolerance] :
       {std::pair{at::kDouble, 0.0}, {at::kFloat, 0.0}, {at::kBFloat16, 0.0}, {at::kHalf, 5e-4}}) {
    const Checkpoint checkpoint = load_checkpoint(path, {.dtype = dtype});
    EXPECT_EQ(checkpoint.config.layers, 10);
    EXPECT_EQ(checkpoint.weights.embedding.sizes(), (at::IntArrayRef{2048, 96}));
    EXPECT_TRUE(checkpoint.weights.head.is_same(checkpoint.weights.embedding));
    DecoderWeights weights = checkpoint.weights;
    const SlotTargets targets(weights);
    for (const TensorSlot& slot : tensor_slots(checkpoint.config, TensorNames{})) {
      const at::Tensor& tensor = targets.of(slot, slot.parts.front());
      EXPECT_EQ(tensor.scalar_type(), dtype) << slot.name;
      EXPECT_EQ(tensor.sizes(), at::IntArrayRef(slot.shape)) << slot.name;
    }
    const at::Tensor error = (checkpoint.weights.embedding.to(at::kDouble) - exact).abs() / exact.abs().clamp_min(1e-3);
    EXPECT_LE(error.max().item<double>(), tolerance);
  }
}

TEST(TensorValues, UnalignedBytesOfEachDtype) {
  const at::Tensor expected = at::tensor({1.0, -2.5, 0.0, 3.0}, at::kDouble).view({2, 2});
  for (const formats::DType stored :
       {formats::DType::f64, formats::DType::f32, formats::DType::f16, formats::DType::bf16}) {
    const at::Tensor source = expected.to(*weight_dtype(stored)).contiguous();
    const std::size_t size = source.nbytes();
    alignas(16) std::array<std::byte, 64> buffer{};
    for (const std::size_t offset : {0, 1, 2, 8}) {
      std::memcpy(buffer.data() + offset, source.const_data_ptr(), size);
      const formats::TensorEntry entry{"w", stored, {2, 2}, std::span(buffer).subspan(offset, size)};
      EXPECT_TRUE(read_values(entry, at::kDouble, "here").equal(expected))
          << formats::name_of(stored) << " at " << offset;
    }
  }
}

TEST(TensorValues, AFloat64BeyondFloat32IsRefused) {
  const std::array values{1.0, 1e300};
  const formats::TensorEntry entry{"w", formats::DType::f64, {2}, std::as_bytes(std::span(values))};
  EXPECT_THAT(message_of([&] { read_values(entry, at::kFloat, "here"); }),
              HasSubstr("here: tensor 'w' is too large for float32"));
  EXPECT_EQ(read_values(entry, at::kDouble, "here")[1].item<double>(), 1e300);
}

TEST(Dtype, NamesBothWays) {
  for (const char* name : {"float64", "float32", "bfloat16", "float16"})
    EXPECT_EQ(dtype_name(parse_dtype(name, "--dtype")), name);
  EXPECT_EQ(parse_dtype("fp64", "--dtype"), at::kDouble);
  EXPECT_EQ(parse_dtype("fp32", "--dtype"), at::kFloat);
  EXPECT_EQ(parse_dtype("bf16", "--dtype"), at::kBFloat16);
  EXPECT_EQ(parse_dtype("fp16", "--dtype"), at::kHalf);
  EXPECT_EQ(message_of([] { parse_dtype("flaot32", "--dtype"); }),
            "--dtype: 'flaot32'; must be float64, float32, bfloat16 or float16; did you mean 'float32'?");
  for (const ComputeDtype dtype : all_compute_dtypes) {
    EXPECT_EQ(bytes_of(dtype), c10::elementSize(scalar_type(dtype))) << name_of(dtype);
    EXPECT_EQ(compute_dtype(scalar_type(dtype)), dtype) << name_of(dtype);
  }
  EXPECT_EQ(message_of([] { compute_dtype(at::kInt); }),
            "dtype: Int; models are computed in float64, float32, bfloat16 or float16");
  EXPECT_EQ(weight_dtype(formats::DType::bf16), at::kBFloat16);
  EXPECT_EQ(weight_dtype(formats::DType::i64), std::nullopt);
}

}  // namespace checkpoint_test
}  // namespace gainlens::models
