// Published quantised weights: FP8 in blocks and MXFP4. The oracles are libtorch's own F8_E4M3 and ATen expressions; a
// checkpoint with scales must be that of its decoded values, bit for bit.
#include "core/error.h"
#include "formats/scaled_values.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/checkpoint_source.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/checkpoint/tensor_values.h"
#include "models/checkpoint_folder.h"
#include "models/random_decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <memory>

namespace gainlens::models {
namespace scaled_tensors_test {

using formats::DType;
using formats::ScaledForm;
using gainlens::testing::logits;
using gainlens::testing::RandomWeights;
using gainlens::testing::some_tokens;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;
using testing::message_of;

DType dtype_of(const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kByte) return DType::u8;
  if (tensor.scalar_type() == at::kFloat8_e4m3fn) return DType::f8_e4m3;
  return tensor.scalar_type() == at::kBFloat16 ? DType::bf16 : DType::f32;
}

/// A view of a tensor as an entry of a file; the tensor must exist as long.
formats::TensorEntry entry_of(const std::string& name, const at::Tensor& tensor) {
  return {name,
          dtype_of(tensor),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()},
          nullptr};
}

at::Tensor random_bytes(at::IntArrayRef shape) {
  return at::randint(256, shape, at::TensorOptions(at::kByte));
}

/// Codes of F8_E4M3 without NaN.
at::Tensor random_codes(at::IntArrayRef shape) {
  const at::Tensor bytes = random_bytes(shape);
  return at::where(bytes.bitwise_and(127).eq(127), at::zeros_like(bytes), bytes).view(at::kFloat8_e4m3fn);
}

at::Tensor decoded_fp8(const at::Tensor& codes, const at::Tensor& scales) {
  const at::Tensor whole = scales.to(at::kFloat).repeat_interleave(128, 0).repeat_interleave(128, 1);
  return codes.to(at::kFloat) * whole.slice(0, 0, codes.size(0)).slice(1, 0, codes.size(1));
}

/// [.., groups, 16] and [.., groups] to [.., 32 groups].
at::Tensor decoded_mxfp4(const at::Tensor& blocks, const at::Tensor& scales) {
  const at::Tensor of_code = at::tensor({0., .5, 1., 1.5, 2., 3., 4., 6., -0., -.5, -1., -1.5, -2., -3., -4., -6.});
  const at::Tensor codes = at::stack({blocks.bitwise_and(15), at::bitwise_right_shift(blocks, 4)}, -1).to(at::kLong);
  const at::Tensor values = of_code.index({codes}).flatten(-2);
  return at::ldexp(values.to(at::kDouble), (scales.to(at::kLong) - 127).unsqueeze(-1)).to(at::kFloat).flatten(-2);
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && at::equal(a.contiguous().view(at::kInt), b.contiguous().view(at::kInt));
}

TEST(ScaledTensors, Fp8EqualsLibtorchForEveryCode) {
  const at::Tensor codes = at::arange(256, at::kByte).view({1, 256}).view(at::kFloat8_e4m3fn),
                   scales = at::ones({1, 2});
  const auto tensor = scaled_tensor(ScaledForm::fp8_blocks, entry_of("w", codes), entry_of("s", scales), "here");
  at::Tensor found = at::empty({1, 256});
  read_scaled(tensor, 0, {found.mutable_data_ptr<float>(), 256});
  const at::Tensor expected = codes.to(at::kFloat);
  EXPECT_TRUE(at::equal(found.isnan(), expected.isnan()));
  EXPECT_TRUE(same_bits(found.nan_to_num(), expected.nan_to_num()));
}

TEST(ScaledTensors, Fp8BlocksOfAllSizes) {
  at::manual_seed(1);
  for (const auto& [rows, columns] : {std::pair{1, 1}, {128, 128}, {129, 127}, {300, 260}, {700, 1030}}) {
    const at::Tensor codes = random_codes({rows, columns});
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor scales = (at::rand({(rows + 127) / 128, (columns + 127) / 128}) + 0.01).to(type);
      const auto tensor = scaled_tensor(ScaledForm::fp8_blocks, entry_of("w", codes), entry_of("s", scales), "here");
      const at::Tensor expected = decoded_fp8(codes, scales);
      EXPECT_TRUE(same_bits(read_values(tensor, at::kFloat, "here"), expected)) << rows << " x " << columns;
      EXPECT_TRUE(at::equal(read_values(tensor, at::kBFloat16, "here"), expected.to(at::kBFloat16)));
      EXPECT_TRUE(at::equal(read_values(tensor, at::kDouble, "here"), expected.to(at::kDouble)));
    }
  }
}

TEST(ScaledTensors, Mxfp4EqualsItsDefinition) {
  at::manual_seed(1);
  for (const std::int64_t groups : {1, 3, 300}) {
    const at::Tensor blocks = random_bytes({3, 40, groups, 16}),
                     scales = at::randint(0, 250, {3, 40, groups}, at::TensorOptions(at::kByte));
    const auto tensor = scaled_tensor(ScaledForm::mxfp4, entry_of("b", blocks), entry_of("s", scales), "here");
    EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{3, 40, 32 * groups}));
    EXPECT_TRUE(same_bits(read_values(tensor, at::kFloat, "here"), decoded_mxfp4(blocks, scales)));
  }
}

TEST(ScaledTensors, NanOfNumbersAndScalesIsRefused) {
  at::Tensor codes = random_codes({2, 4}), scales = at::ones({1, 1});
  const auto refusal = [&] {
    const auto tensor = scaled_tensor(ScaledForm::fp8_blocks, entry_of("w", codes), entry_of("s", scales), "here");
    return message_of([&] { read_values(tensor, at::kFloat, "here"); });
  };
  EXPECT_EQ(refusal(), "");
  codes.view(at::kByte)[1][2].fill_(0x7f);
  EXPECT_THAT(refusal(), HasSubstr("tensor 'w' holds NaN or infinity: 1 of 8 values, the first at [1, 2]"));
  codes = random_codes({2, 4});
  scales.fill_(INFINITY);
  EXPECT_THAT(refusal(), HasSubstr("NaN or infinity"));
  const at::Tensor blocks = at::zeros({2, 1, 16}, at::kByte), damaged = at::full({2, 1}, 255, at::kByte);
  const auto tensor = scaled_tensor(ScaledForm::mxfp4, entry_of("b", blocks), entry_of("s", damaged), "here");
  EXPECT_THAT(message_of([&] { read_values(tensor, at::kFloat, "here"); }), HasSubstr("64 of 64 values"));
}

TEST(ScaledTensors, ShapesThatDoNotFitAreNamed) {
  const at::Tensor codes = random_codes({129, 4}), one = at::ones({1, 1}), bytes = random_bytes({2, 3, 16}),
                   few = random_bytes({2, 2});
  EXPECT_THAT(
      message_of([&] { scaled_tensor(ScaledForm::fp8_blocks, entry_of("w", codes), entry_of("s", one), "here"); }),
      HasSubstr("here: 'w' is F8_E4M3 [129, 4] and 's' is F32 [1, 1]; must be F8_E4M3 with two dimensions"));
  EXPECT_THAT(message_of([&] { scaled_tensor(ScaledForm::mxfp4, entry_of("b", bytes), entry_of("s", few), "here"); }),
              HasSubstr("'b' is U8 [2, 3, 16] and 's' is U8 [2, 2]; must be U8 [.., groups, 16]"));
  EXPECT_THAT(message_of([&] { scaled_tensor(ScaledForm::mxfp4, entry_of("b", one), entry_of("s", few), "here"); }),
              HasSubstr("must be U8"));
}

/// Two checkpoints of the same numbers: one with scales, one of the decoded values.
class TwoCheckpoints {
 public:
  using Tensors = std::map<std::string, at::Tensor>;

  TwoCheckpoints(const OrderedJson& config, const Json& quantization) : config_(config) {
    at::manual_seed(2);
    const DecoderConfig parsed = parse_decoder_config(Json(config), "test");
    for (const NamedTensor& weight : checkpoint_tensors(parsed, RandomWeights(1, at::kFloat).of(parsed)))
      plain[weight.name] = quantised[weight.name] = weight.tensor;
    quantised_config_ = config;
    quantised_config_["quantization_config"] = quantization;
  }
  void write() const {
    write(plain_->path(), config_, plain);
    write(quantised_->path(), quantised_config_, quantised);
  }
  void expect_same_logits() const {
    write();
    Checkpoint a = load_checkpoint(plain_->path()), b = load_checkpoint(quantised_->path());
    Decoder expected(a.config, a.weights), found(b.config, b.weights);
    const hooks::Tokens tokens = some_tokens(a.config, 2, 20);
    EXPECT_TRUE(at::equal(logits(found, tokens), logits(expected, tokens)));
  }
  std::string refusal() const {
    write();
    return message_of([&] { load_checkpoint(quantised_->path()); });
  }

  Tensors plain, quantised;

 private:
  static void write(const std::filesystem::path& folder, const OrderedJson& config, const Tensors& tensors) {
    std::ofstream(folder / "config.json") << config.dump();
    std::vector<formats::TensorToWrite> list;
    for (const auto& [name, tensor] : tensors) {
      const formats::TensorEntry entry = entry_of(name, tensor);
      list.push_back({name, entry.dtype, entry.shape, entry.bytes});
    }
    formats::write_tensors(folder / "model.safetensors", list);
  }

  OrderedJson config_, quantised_config_;
  std::unique_ptr<TemporaryFolder> plain_ = std::make_unique<TemporaryFolder>(),
                                   quantised_ = std::make_unique<TemporaryFolder>();
};

const Json fp8_config = {{"quant_method", "fp8"},
                         {"fmt", "e4m3"},
                         {"activation_scheme", "dynamic"},
                         {"weight_block_size", {128, 128}},
                         {"modules_to_not_convert", {"lm_head"}}};

TwoCheckpoints fp8_checkpoints() {
  TwoCheckpoints two({{"model_type", "qwen3"},
                      {"num_hidden_layers", 2},
                      {"hidden_size", 144},
                      {"intermediate_size", 200},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"head_dim", 40},
                      {"vocab_size", 50},
                      {"max_position_embeddings", 64},
                      {"tie_word_embeddings", false}},
                     fp8_config);
  for (auto& [name, tensor] : two.plain) {
    if (name.find("_proj.weight") == std::string::npos) continue;
    const at::Tensor codes = random_codes(tensor.sizes());
    const at::Tensor scales = at::rand({(tensor.size(0) + 127) / 128, (tensor.size(1) + 127) / 128}) * 1e-3;
    tensor = decoded_fp8(codes, scales);
    two.quantised[name] = codes;
    two.quantised[name + "_scale_inv"] = scales;
  }
  return two;
}

TEST(ScaledTensors, AnFp8CheckpointIsThatOfItsValues) {
  fp8_checkpoints().expect_same_logits();
}

TEST(ScaledTensors, FaultsOfAnFp8CheckpointAreNamed) {
  const std::string weight = "model.layers.1.self_attn.q_proj.weight";
  TwoCheckpoints two = fp8_checkpoints();
  two.quantised.erase(weight + "_scale_inv");
  EXPECT_THAT(two.refusal(), HasSubstr("'" + weight + "' is F8_E4M3, and '" + weight + "_scale_inv' is missing"));
  two.quantised[weight + "_scale_inv"] = at::ones({1, 1});
  EXPECT_THAT(two.refusal(), HasSubstr("one scale for each block of 128 x 128"));
  two = fp8_checkpoints();
  two.quantised["lost.weight_scale_inv"] = at::ones({1, 1});
  EXPECT_THAT(two.refusal(), HasSubstr("'lost.weight_scale_inv' [1, 1] is not part of this model"));
}

TEST(ScaledTensors, AnMxfp4CheckpointIsThatOfItsValues) {
  const auto make = [] {
    TwoCheckpoints two({{"model_type", "gpt_oss"},
                        {"num_hidden_layers", 2},
                        {"hidden_size", 64},
                        {"intermediate_size", 32},
                        {"num_attention_heads", 4},
                        {"num_key_value_heads", 2},
                        {"head_dim", 16},
                        {"vocab_size", 50},
                        {"max_position_embeddings", 64},
                        {"num_local_experts", 3},
                        {"num_experts_per_tok", 2},
                        {"rope_scaling",
                         {{"rope_type", "yarn"},
                          {"factor", 4.0},
                          {"beta_fast", 2.0},
                          {"beta_slow", 1.0},
                          {"original_max_position_embeddings", 32},
                          {"truncate", false}}},
                        {"tie_word_embeddings", false}},
                       {{"quant_method", "mxfp4"}, {"modules_to_not_convert", {"model.embed_tokens"}}});
    for (auto& [name, tensor] : two.plain) {
      if (!name.ends_with("gate_up_proj") && !name.ends_with("experts.down_proj")) continue;
      const std::int64_t experts = tensor.size(0), inputs = tensor.size(1), outputs = tensor.size(2);
      const at::Tensor blocks = random_bytes({experts, outputs, inputs / 32, 16}),
                       scales = at::randint(118, 122, {experts, outputs, inputs / 32}, at::TensorOptions(at::kByte));
      tensor = decoded_mxfp4(blocks, scales).transpose(1, 2).contiguous();
      two.quantised.erase(name);
      two.quantised[name + "_blocks"] = blocks;
      two.quantised[name + "_scales"] = scales;
    }
    return two;
  };
  make().expect_same_logits();
  TwoCheckpoints two = make();
  two.quantised.erase("model.layers.0.mlp.experts.down_proj_scales");
  EXPECT_THAT(two.refusal(), HasSubstr("'model.layers.0.mlp.experts.down_proj_scales' is missing"));
}

TEST(ScaledTensors, MethodsOfQuantisationAreReadOrRefusedWithWhatToFetch) {
  const auto refusal = [](const Json& quantization, const std::string& path = "") {
    Json config = testing::tiny_config();
    config["quantization_config"] = quantization;
    if (!path.empty()) config["_name_or_path"] = path;
    return message_of([&] { parse_decoder_config(config, "c"); });
  };
  EXPECT_EQ(refusal(fp8_config), "");
  EXPECT_EQ(refusal({{"quant_method", "mxfp4"}}), "");
  EXPECT_EQ(refusal(nullptr), "");
  Json changed = fp8_config;
  changed["weight_block_size"] = {64, 64};
  EXPECT_THAT(refusal(changed), HasSubstr("those with 'weight_block_size' [128, 128] are read"));
  changed.erase("weight_block_size");
  EXPECT_THAT(refusal(changed), HasSubstr("those with 'weight_block_size' [128, 128] are read"));
  changed = fp8_config;
  changed["activation_scheme"] = "static";
  EXPECT_THAT(refusal(changed),
              HasSubstr("'quantization_config.activation_scheme' is \"static\"; must be \"dynamic\""));
  changed = fp8_config;
  changed["new_key"] = 1;
  EXPECT_THAT(refusal(changed), HasSubstr("unknown key 'quantization_config.new_key'"));
  EXPECT_THAT(refusal({{"quant_method", "gptq"}, {"bits", 4}}, "Qwen/Qwen1.5-14B-Chat-GPTQ-Int4"),
              HasSubstr("weights quantised by gptq are not read: fetch 'Qwen/Qwen1.5-14B-Chat', or a GGUF file of it"));
  EXPECT_THAT(refusal({{"quant_method", "awq"}}, "/home/me/model"),
              HasSubstr("weights quantised by awq are not read: fetch the checkpoint that they were made from"));
  EXPECT_THAT(refusal({{"quant_method", "bitsandbytes"}}), HasSubstr("MXFP4 and FP8 in blocks of 128 x 128 are read"));
  EXPECT_THAT(refusal({{"bits", 4}}), HasSubstr("MXFP4 and FP8 in blocks of 128 x 128 are read"));
  EXPECT_THAT(refusal("fp8"), HasSubstr("must be an object"));
}

}  // namespace scaled_tensors_test
}  // namespace gainlens::models
