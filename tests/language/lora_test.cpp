#include "language/lora.h"

#include "core/error.h"
#include "formats/adapter_folder.h"
#include "language/answer_task.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/initial_weights.h"
#include "models/checkpoint/load_decoder.h"
#include "models/checkpoint/save_checkpoint.h"
#include "models/checkpoint/slot_tensors.h"
#include "models/checkpoint/tensor_values.h"
#include "models/decoder/filter_config.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace gainlens::language {
namespace lora_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::string golden_folder = GAINLENS_SOURCE_DIR "/tests/golden/";

std::vector<AnswerRow> golden_rows() {
  const Json golden = read_json_file(golden_folder + "finetune.json");
  std::vector<AnswerRow> rows;
  for (const Json& row : golden.at("rows"))
    rows.push_back({row.at("ids").get<std::vector<std::int64_t>>(), row.at("first_answer").get<std::int64_t>(), false});
  return rows;
}

/// A model of the golden checkpoints with the factors of a golden adapter, trainable.
struct Adapted {
  models::Checkpoint base;
  std::vector<models::LoraFactors> factors;

  explicit Adapted(const std::string& name)
      : base(models::load_checkpoint(golden_folder + "models/" + name.substr(0, name.find('.')))),
        factors(models::open_lora_adapter(golden_folder + "lora/" + name,
                                          models::family_named(base.config.family, "golden"), base.config)
                    .factors) {
    for (const models::LoraFactors& of : factors) {
      const at::Tensor down = models::read_values(of.down, at::kFloat, name).set_requires_grad(true);
      const at::Tensor up = models::read_values(of.up, at::kFloat, name);
      const std::vector<at::Tensor> parts = models::unpack(models::row_slot(of.slot, up.size(1)), up);
      for (std::size_t i = 0; i < parts.size(); ++i)
        low_rank(of)[of.slot.parts[i].field] = {down, parts[i].clone().set_requires_grad(true), of.scale};
    }
  }
  std::map<std::string_view, models::LowRank>& low_rank(const models::LoraFactors& of) {
    return base.weights.layers[static_cast<std::size_t>(of.slot.layer)].low_rank;
  }
  /// The gradients of both factors as the file stores them, by PEFT's names.
  std::map<std::string, at::Tensor> gradients() {
    std::map<std::string, at::Tensor> found;
    for (const models::LoraFactors& of : factors) {
      std::vector<at::Tensor> parts;
      for (const models::SlotPart& part : of.slot.parts) {
        if (!low_rank(of).contains(part.field)) continue;
        parts.push_back(low_rank(of).at(part.field).up.grad());
        found[of.down.name] = low_rank(of).at(part.field).down.grad();
      }
      if (!parts.empty()) found[of.up.name] = models::pack(models::row_slot(of.slot, parts[0].size(1)), parts);
    }
    return found;
  }
  /// @returns  the loss
  double step() {
    const std::vector<AnswerRow> rows = golden_rows();
    AnswerTask task(base.config, base.weights, rows, {rows[0]}, 1, {.batch = std::ssize(rows)},
                    [](const auto&) { return Json(); });
    return task.accumulate_gradients(0);
  }
};

double error_of(const at::Tensor& gradient, const Json& numbers) {
  const at::Tensor flat = gradient.flatten().to(at::kDouble);
  const double norm = numbers.at(0);
  const double product = at::dot(flat, at::arange(flat.size(0), at::kDouble).cos()).item<double>();
  return std::max(std::abs(flat.norm().item<double>() - norm), std::abs(product - numbers.at(1).get<double>())) / norm;
}

TEST(Lora, LossAndGradientsOfAStepAreThoseOfPeft) {
  double worst = 0;
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder + "lora")) {
    const std::string name = entry.path().filename().string();
    if (name == "llama.ends") continue;  // the embedding and the head are read, not trained
    SCOPED_TRACE(name);
    const Json expected = read_json_file(entry.path() / "expected.json");
    Adapted model(name);
    EXPECT_NEAR(model.step(), expected.at("loss").get<double>(), 1e-5 * expected.at("loss").get<double>());
    const auto found = model.gradients();
    EXPECT_EQ(found.size(), expected.at("gradients").size());
    for (const auto& [factor, gradient] : found) {
      const double error = error_of(gradient, expected.at("gradients").at(factor));
      EXPECT_LT(error, 1e-5) << factor;
      worst = std::max(worst, error);
      ++compared;
    }
    for (const models::LayerWeights& layer : model.base.weights.layers) {
      EXPECT_FALSE(layer.output.requires_grad());
      EXPECT_FALSE(layer.output.grad().defined());
    }
  }
  std::printf("largest error of %zu gradients, of their norm: %.3g\n", compared, worst);
}

TEST(Lora, OneTargetAloneHasTheGradientsThatItHasBesideOthers) {
  const Json expected = read_json_file(golden_folder + "lora/llama/expected.json").at("gradients");
  for (const char* field : {"query", "key", "value", "output", "mlp_gate", "mlp_up", "mlp_down"}) {
    SCOPED_TRACE(field);
    Adapted model("llama");
    models::DecoderWeights all = models::merged(model.base.weights);
    for (std::size_t layer = 0; layer < all.layers.size(); ++layer) {
      models::LayerWeights& weights = model.base.weights.layers[layer];
      const models::LowRank kept = weights.low_rank.at(field);
      const at::Tensor own = *models::tensors_by_field(weights).at(field);
      weights = all.layers[layer];
      *models::tensors_by_field(weights).at(field) = own;
      weights.low_rank[field] = kept;
    }
    model.step();
    const auto found = model.gradients();
    EXPECT_EQ(found.size(), 2 * all.layers.size());
    for (const auto& [factor, gradient] : found) EXPECT_LT(error_of(gradient, expected.at(factor)), 1e-5) << factor;
  }
}

TEST(Lora, AFreshAdapterIsTheBaseAndItsFactorsFollowFromTheSeed) {
  const std::string folder = golden_folder + "models/phi3-window";
  models::Checkpoint one = models::load_checkpoint(folder), other = models::load_checkpoint(folder);
  const models::LoraOptions options{.rank = 3, .alpha = 6};
  models::begin_lora(one.config, options, 5, one.weights);
  models::begin_lora(other.config, options, 6, other.weights);
  const auto parameters = models::decoder_parameters(one.config, one.weights);
  ASSERT_EQ(parameters.size(), one.weights.layers.size() * (4 * 2 + 2 + 1));  // a B for each of q, k, v; gate, up
  EXPECT_EQ(parameters[0].name, "model.layers.0.self_attn.qkv_proj.lora_A.weight");
  EXPECT_EQ(parameters[2].name, "model.layers.0.self_attn.qkv_proj.lora_B.weight.key");
  const at::Tensor down = parameters[0].tensor;
  EXPECT_LE(down.abs().max().item<double>(), 1 / std::sqrt(48.0));
  EXPECT_GT(down.abs().max().item<double>(), 0.9 / std::sqrt(48.0));
  EXPECT_FALSE(down.equal(models::decoder_parameters(other.config, other.weights)[0].tensor));
  EXPECT_TRUE(parameters[1].tensor.equal(at::zeros({48, 3})));
  const models::DecoderWeights merged = models::merged(one.weights);
  const models::Checkpoint plain = models::load_checkpoint(folder);
  for (std::size_t layer = 0; layer < merged.layers.size(); ++layer) {
    EXPECT_TRUE(merged.layers[layer].low_rank.empty());
    EXPECT_TRUE(merged.layers[layer].query.equal(plain.weights.layers[layer].query));
  }
  const std::vector<AnswerRow> rows = golden_rows();
  const auto loss = [&](const models::DecoderWeights& weights) {
    return AnswerTask(one.config, weights, rows, rows, 1, {.batch = 3}, [](const auto&) { return Json(); })
        .validation_loss();
  };
  EXPECT_EQ(loss(one.weights), loss(plain.weights));
}

TEST(Lora, AWrittenAdapterOpensWithTheSameFactors) {
  const gainlens::testing::TemporaryFolder folder;
  for (const char* name : {"llama", "gpt2", "gpt-neox", "phi3-window"}) {
    SCOPED_TRACE(name);
    models::Checkpoint base = models::load_checkpoint(golden_folder + "models/" + name);
    const models::LoraOptions options{.rank = 2, .alpha = 6};
    models::begin_lora(base.config, options, 5, base.weights);
    {
      const at::NoGradGuard no_gradients;
      for (const models::NamedTensor& parameter : models::decoder_parameters(base.config, base.weights))
        at::Tensor(parameter.tensor).normal_(0, 0.1);
    }
    const std::filesystem::path written = folder.path() / name;
    models::save_lora_adapter(written, base.config, options, name_of_base(base.path), base.weights);
    const Json config = read_json_file(written / formats::adapter_config_name);
    EXPECT_EQ(config.at("fan_in_fan_out"), name == std::string("gpt2"));
    EXPECT_EQ(config.at("base_model_name_or_path"), golden_folder + "models/" + name);
    const models::Checkpoint opened = models::load_checkpoint(written);
    const models::DecoderWeights merged = models::merged(base.weights);
    for (std::size_t layer = 0; layer < merged.layers.size(); ++layer) {
      // A product with all rows of B may round otherwise than one with some of them.
      EXPECT_TRUE(at::allclose(opened.weights.layers[layer].key, merged.layers[layer].key, 1e-6, 1e-7));
      EXPECT_TRUE(at::allclose(opened.weights.layers[layer].mlp_down, merged.layers[layer].mlp_down, 1e-6, 1e-7));
    }
  }
}

/// The filter's own gradients are those that it has when all weights are trained.
TEST(Lora, AFilterLearnsBesideTheAdapter) {
  const std::vector<AnswerRow> rows = golden_rows();
  Json document = read_json_file(golden_folder + "models/llama/config.json");
  document[models::filter_key] = {{"warm_up", 0}};
  const models::DecoderConfig config = models::parse_decoder_config(document, "made");
  const auto gradients = [&](bool lora) {
    models::DecoderWeights weights = models::load_checkpoint(golden_folder + "models/llama").weights;
    const models::DecoderWeights fresh = models::initial_weights(config, 3);
    weights.precision = fresh.precision;
    for (std::size_t layer = 0; layer < weights.layers.size(); ++layer)
      weights.layers[layer].filter = fresh.layers[layer].filter;
    if (lora) models::begin_lora(config, {.rank = 2, .alpha = 4}, 3, weights);
    AnswerTask task(config, weights, rows, {rows[0]}, 1, {.batch = std::ssize(rows)},
                    [](const auto&) { return Json(); });
    task.accumulate_gradients(0);
    std::map<std::string, at::Tensor> found;
    for (const training::ParameterGroup& group : task.parameters()) {
      for (const models::NamedTensor& parameter : group.parameters) found[parameter.name] = parameter.tensor.grad();
    }
    return found;
  };
  const auto all = gradients(false), adapted = gradients(true);
  std::size_t compared = 0;
  for (const auto& [name, gradient] : adapted) {
    if (name.find("lora_") != std::string::npos) continue;
    ASSERT_TRUE(all.contains(name)) << name;
    EXPECT_TRUE(name.find("filter.") != std::string::npos || name.find("precision.") != std::string::npos) << name;
    EXPECT_TRUE(at::allclose(gradient, all.at(name), 1e-5, 1e-7)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 3u);
}

TEST(Lora, InBfloat16TheAdapterHasMastersAndTheBaseIsRoundedOnce) {
  const std::vector<AnswerRow> rows = golden_rows();
  for (const char* name : {"llama", "phi3-window"}) {  // q, k and v of phi3 share one factor A
    SCOPED_TRACE(name);
    const auto step = [&](at::ScalarType dtype) {
      models::Checkpoint base = models::load_checkpoint(golden_folder + "models/" + name, {.dtype = dtype});
      models::begin_lora(base.config, {.rank = 2, .alpha = 6}, 5, base.weights);
      const at::NoGradGuard no_gradients;
      at::manual_seed(3);
      for (const models::NamedTensor& parameter : models::decoder_parameters(base.config, base.weights))
        at::Tensor(parameter.tensor).normal_(0, 0.05);
      AnswerTask task(base.config, base.weights, rows, {rows[0]}, 1, {.batch = std::ssize(rows), .dtype = dtype},
                      [](const auto&) { return Json(); });
      std::map<std::string, at::Tensor> gradients;
      const at::AutoGradMode with_gradients(true);
      const double loss = task.accumulate_gradients(0);
      for (const training::ParameterGroup& group : task.parameters()) {
        for (const models::NamedTensor& parameter : group.parameters) {
          EXPECT_EQ(parameter.tensor.scalar_type(), at::kFloat) << parameter.name;
          gradients[parameter.name] = parameter.tensor.grad();
        }
      }
      return std::pair(loss, gradients);
    };
    const auto [loss, expected] = step(at::kFloat);
    const auto [rounded_loss, found] = step(at::kBFloat16);
    EXPECT_NEAR(rounded_loss, loss, 0.01 * loss);
    EXPECT_NE(rounded_loss, loss);
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [parameter, gradient] : expected) {
      ASSERT_TRUE(found.at(parameter).defined()) << parameter;
      EXPECT_LT((found.at(parameter) - gradient).norm().item<double>(), 0.15 * gradient.norm().item<double>())
          << parameter;
    }
  }
}

TEST(Lora, SettingsThatMakeNoSenseAreRefused) {
  const models::CheckpointSource source = models::open_checkpoint(golden_folder + "models/llama");
  const auto refused = [&](const LoraSettings& settings, const std::string& reason) {
    EXPECT_THAT([&] { trained_lora(settings, source); }, ThrowsMessage<InvalidArgument>(HasSubstr(reason))) << reason;
  };
  EXPECT_FALSE(trained_lora({}, source));
  EXPECT_EQ(trained_lora({.rank = 4}, source)->alpha, 8);
  EXPECT_EQ(trained_lora({.rank = 4, .alpha = 2.0}, source)->alpha, 2);
  refused({.rank = -1}, "--lora-rank: -1");
  refused({.rank = 49}, "--lora-rank: 49; must be 1 to 24");
  refused({.alpha = 8.0}, "change nothing without --lora-rank");
  refused({.merge = true}, "change nothing without --lora-rank");
  refused({.rank = 2, .alpha = 0.0}, "--lora-alpha: 0");
  refused({.rank = 2, .targets = {"w"}}, "--lora-targets: 'w'");
}

TEST(Lora, TheBaseIsNamedAsThePeftLibraryFindsIt) {
  EXPECT_EQ(name_of_base("/cache/hub/models--Qwen--Qwen3-0.6B/snapshots/abc1"), "Qwen/Qwen3-0.6B");
  EXPECT_EQ(name_of_base("/some/folder/model.gguf"), "/some/folder/model.gguf");
  EXPECT_EQ(name_of_base("/some/../folder"), "/folder");
}

TEST(Lora, MemoryIsThatOfTheBaseAndOfWhatIsTrained) {
  const models::DecoderConfig config = models::read_decoder_config(golden_folder + "models/llama");
  const models::LoraOptions options{.rank = 2, .alpha = 4, .targets = {"q"}};
  models::Checkpoint base = models::load_checkpoint(golden_folder + "models/llama");
  std::int64_t held = 0, trained = 0;
  for (const models::NamedTensor& weight : models::decoder_parameters(config, base.weights))
    held += weight.tensor.numel();
  models::begin_lora(config, options, 1, base.weights);
  for (const models::NamedTensor& weight : models::decoder_parameters(config, base.weights))
    trained += weight.tensor.numel();
  EXPECT_EQ(trained, 3 * 2 * (48 + 48));
  const auto bytes = [&](const LoraHolding& holding) {
    return static_cast<std::int64_t>(lora_bytes(config, options, holding));
  };
  EXPECT_EQ(bytes({}), 4 * held + 16 * trained);
  EXPECT_EQ(bytes({.processes = 2}), 4 * held + 12 * trained);
  EXPECT_EQ(bytes({.filter_parameters = 5, .writes_whole = true}), 4 * (held + 3 * 48 * 48) + 16 * (trained + 5));
  EXPECT_EQ(bytes({.bfloat16 = true}), std::max(2 * held + 20 * trained, 4 * held));
  EXPECT_EQ(bytes({.writes_whole = true, .bfloat16 = true}), 6 * held + 20 * trained);
}

}  // namespace lora_test
}  // namespace gainlens::language
