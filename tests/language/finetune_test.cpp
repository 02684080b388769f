#include "language/finetune.h"

#include "core/error.h"
#include "core/json.h"
#include "core/listener.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/load_decoder.h"
#include "runfile/experiment_run.h"
#include "support/file_bytes.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "training/thread_replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gainlens::language {
namespace finetune_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

/// Questions whose answer stands in the prompt.
std::vector<data::Question> questions(int count) {
  const std::vector<std::string> colors = {"red", "green", "blue"};
  std::vector<data::Question> all;
  for (int i = 0; i < count; ++i) {
    const std::string id = std::to_string(i), color = colors[static_cast<std::size_t>(i) % 3];
    const std::string prompt = "Number " + id + " is " + color + ". What is it?";
    all.push_back({id, id, prompt, prompt, {color, "the " + color}});
  }
  return all;
}

FinetuneRequest request(const std::filesystem::path& out) {
  FinetuneRequest made;
  made.model = demo;
  made.split = data::split_questions(questions(30), {.training = 8, .validation = 3, .test = 4}, 1);
  made.data_name = "numbers";
  made.arms = {"sft"};
  made.noise = {0};
  made.settings.learning_rate = 1e-3;
  made.settings.max_new = 3;
  made.out = out;
  made.quiet = true;
  return made;
}

/// A listener that fails when so many steps of the progress are told: as if the process were killed.
class Killer : public Listener {
 public:
  explicit Killer(int after) : after_(after) {}
  void notice(const Notice&) override {}
  std::unique_ptr<WorkListener> begun(const Work&) override { return std::make_unique<Ear>(*this); }

 private:
  class Ear : public WorkListener {
   public:
    explicit Ear(Killer& killer) : killer_(killer) {}
    void advanced(double, double, std::string_view) override {
      if (killer_.after_-- == 0) throw std::runtime_error("killed");
    }
    void skipped(double, std::string_view) override {}

   private:
    Killer& killer_;
  };
  int after_;
  ScopedListener told_{*this};
};

class Finetune : public ::testing::Test {
 protected:
  std::filesystem::path out(const std::string& name) const { return folder_.path() / name; }
  gainlens::testing::TemporaryFolder folder_;
};

TEST_F(Finetune, StoresScoresOfEveryQuestionAndACheckpointThatOpens) {
  FinetuneRequest asked = request(out("run"));
  asked.arms = {"sft", "focal"};
  asked.noise = {0, 40};
  const auto outcomes = finetune(asked);
  ASSERT_EQ(outcomes.size(), 4u);
  const runfile::ExperimentRun run = runfile::read_experiment_run(out("run"));
  EXPECT_EQ(run.unit(), "question");
  EXPECT_THAT(run.arms, ElementsAre("sft/np0", "sft/np40", "focal/np0", "focal/np40"));
  EXPECT_EQ(run.units.size(), 4u);
  for (const auto& result : run.results) {
    ASSERT_TRUE(result);
    EXPECT_EQ(result->scores.at("f1").size(), 4u);
    EXPECT_EQ(result->curve.at("validation_loss").size(), 2u);
  }
  const std::filesystem::path job = out("run") / "focal" / "np40" / "seed-0";
  EXPECT_NO_THROW(models::load_decoder(job));
  EXPECT_TRUE(std::filesystem::exists(job / "tokenizer.model"));
  EXPECT_THAT(read_text_file(job / "training" / "gamma.csv"), HasSubstr("step,gamma\n2,0.69"));
  const std::string lines = read_text_file(job / "predictions.jsonl");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4);
  EXPECT_TRUE(Json::parse(lines.substr(0, lines.find('\n'))).contains("answer"));
  // The same request again trains nothing; one more arm is added.
  for (const auto& outcome : finetune(asked)) EXPECT_EQ(outcome.seconds, 0);
  asked.arms = {"focal-2"};
  asked.noise = {0};
  EXPECT_EQ(finetune(asked).size(), 1u);
  EXPECT_EQ(runfile::read_experiment_run(out("run")).arms.size(), 5u);
  // The tokenizer and the answers are proven as the weights are.
  const std::string model = gainlens::testing::bytes_of(job / "tokenizer.model");
  gainlens::testing::write_file(job / "tokenizer.model", model + "x");
  EXPECT_THAT(gainlens::testing::refusal_of([&] { finetune(asked); }), HasSubstr("tokenizer.model: its sha256 is "));
  gainlens::testing::write_file(job / "tokenizer.model", model);
  gainlens::testing::write_file(job / "predictions.jsonl", lines + "{}\n");
  EXPECT_THAT(gainlens::testing::refusal_of([&] { finetune(asked); }),
              ::testing::AllOf(HasSubstr("predictions.jsonl: its sha256 is "), HasSubstr("delete ")));
}

TEST_F(Finetune, AKilledTrainingEndsWithTheSameBytes) {
  const auto check = [&](const char* arm, std::int64_t lora_rank, const char* weights) {
    const std::string name = std::string(arm) + std::to_string(lora_rank);
    FinetuneRequest whole = request(out(name + "-whole"));
    whole.arms = {arm};
    whole.settings.lora.rank = lora_rank;
    finetune(whole);
    FinetuneRequest stopped = whole;
    stopped.out = out(name + "-stopped");
    stopped.quiet = false;
    for (const int after : {0, 1}) {
      const Killer killer(after);
      EXPECT_THROW(finetune(stopped), std::runtime_error) << arm;
    }
    finetune(stopped);
    const std::filesystem::path job = std::filesystem::path(arm) / "np0" / "seed-0";
    for (const char* file : {weights, "result.safetensors", "predictions.jsonl"})
      EXPECT_EQ(gainlens::testing::bytes_of(stopped.out / job / file),
                gainlens::testing::bytes_of(whole.out / job / file))
          << arm << " " << file;
    EXPECT_EQ(gainlens::testing::bytes_of(stopped.out / "run.h5"), gainlens::testing::bytes_of(whole.out / "run.h5"));
  };
  check("focal", 0, "model.safetensors");
  check("bft", 0, "model.safetensors");
  check("focal", 4, "adapter_model.safetensors");
  check("bft", 4, "model.safetensors");
}

TEST_F(Finetune, TwoProcessesHaveTheLossesOfOne) {
  const auto check = [&](const char* arm, std::int64_t lora_rank) {
    const std::string name = std::string(arm) + std::to_string(lora_rank);
    FinetuneRequest one = request(out(name + "-one"));
    one.arms = {arm};
    one.settings.lora.rank = lora_rank;
    one.settings.batch = 3;             // one row and two
    one.settings.learning_rate = 1e-4;  // AdamW makes steps of this size of gradients that are rounding alone
    const auto expected = finetune(one);
    ASSERT_EQ(expected.size(), 1u);
    FinetuneRequest two = one;
    two.out = out(name + "-two");
    gainlens::testing::with_replicas(2, [&](training::Replicas& replicas) {
      const auto outcomes = finetune(two, replicas);
      ASSERT_EQ(outcomes.size(), replicas.leads() ? 1u : 0u);
      if (!replicas.leads()) return;
      for (const char* curve : {"training_loss", "validation_loss"}) {
        const auto& found = outcomes[0].result.curve.at(curve);
        ASSERT_EQ(found.size(), 2u);
        for (std::size_t i = 0; i < found.size(); ++i)
          EXPECT_NEAR(found[i], expected[0].result.curve.at(curve)[i], 1e-5) << name << " " << curve;
      }
    });
    // A run of two processes is one of two.
    EXPECT_THAT([&] { finetune(two); }, ThrowsMessage<InvalidArgument>(HasSubstr("/processes is 2 in the stored")));
  };
  check("sft", 0);
  check("bft", 0);
  check("sft", 4);
}

TEST_F(Finetune, AnAdapterIsStoredInPlaceOfTheCheckpoint) {
  FinetuneRequest asked = request(out("run"));
  asked.arms = {"sft", "bft"};
  asked.settings.lora = {.rank = 4, .targets = {"q", "v"}};
  finetune(asked);
  const std::filesystem::path job = out("run") / "sft" / "np0" / "seed-0";
  EXPECT_FALSE(std::filesystem::exists(job / "model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(job / "adapter_model.safetensors"));
  EXPECT_EQ(read_json_file(job / "adapter_config.json").at("base_model_name_or_path"), demo);
  EXPECT_NO_THROW(models::load_decoder(job));
  // PEFT knows no filter: its arm stores a whole checkpoint.
  EXPECT_NO_THROW(models::load_decoder(out("run") / "bft" / "np0" / "seed-0"));
  EXPECT_TRUE(std::filesystem::exists(out("run") / "bft" / "np0" / "seed-0" / "model.safetensors"));
  // The adapter learns: the same request without it is another one.
  asked.settings.lora = {};
  EXPECT_THAT([&] { finetune(asked); }, ThrowsMessage<InvalidArgument>(HasSubstr("lora")));
  // The merged checkpoint answers as the adapter does.
  FinetuneRequest whole = request(out("merged"));
  whole.settings.lora = {.rank = 4, .targets = {"q", "v"}, .merge = true};
  finetune(whole);
  const std::filesystem::path merged = out("merged") / "sft" / "np0" / "seed-0";
  EXPECT_FALSE(std::filesystem::exists(merged / "adapter_config.json"));
  EXPECT_EQ(gainlens::testing::bytes_of(merged / "predictions.jsonl"),
            gainlens::testing::bytes_of(job / "predictions.jsonl"));
  // An adapter has the tokenizer of its base, and can be trained on as a whole model, but not by another adapter.
  std::filesystem::remove(job / "tokenizer.model");
  FinetuneRequest further = request(out("further"));
  further.model = job;
  EXPECT_EQ(finetune(further).size(), 1u);
  further.settings.lora.rank = 2;
  EXPECT_THAT([&] { finetune(further); }, ThrowsMessage<InvalidArgument>(HasSubstr("is an adapter")));
}

/// A copy of the demo with one weight as numbers and scales (FP8).
std::filesystem::path write_fp8_demo(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::filesystem::copy(demo, folder);
  Json config = read_json_file(demo + "/config.json");
  config["quantization_config"] = {
      {"quant_method", "fp8"}, {"activation_scheme", "dynamic"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}};
  gainlens::testing::write_file(folder / "config.json", config.dump());
  const auto file = formats::TensorFile::open(demo + "/model.safetensors");
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [other, entry] : file.entries()) {
    if (other != name) tensors.push_back({other, entry.dtype, entry.shape, entry.bytes});
  }
  const std::vector<std::int64_t> shape = file.at(name).shape;
  const std::vector<std::byte> numbers(static_cast<std::size_t>(shape[0] * shape[1]), std::byte{0x20});
  const std::vector<float> scales(static_cast<std::size_t>((shape[0] + 127) / 128 * ((shape[1] + 127) / 128)), 0.1f);
  tensors.push_back({name, formats::DType::f8_e4m3, shape, numbers});
  tensors.push_back({name + "_scale_inv",
                     formats::DType::f32,
                     {(shape[0] + 127) / 128, (shape[1] + 127) / 128},
                     std::as_bytes(std::span(scales))});
  formats::write_tensors(folder / "model.safetensors", tensors, {{"format", "pt"}});
  return folder;
}

TEST_F(Finetune, NumbersAndScalesAreTheBaseOfAnAdapterAndNotTrained) {
  FinetuneRequest asked = request(out("none"));
  asked.model = write_fp8_demo(out("fp8"));
  EXPECT_THAT([&] { finetune(asked); }, ThrowsMessage<InvalidArgument>(HasSubstr("or train an adapter (--lora-rank)")));
  asked.out = out("run");
  asked.settings.lora.rank = 2;
  asked.settings.epochs = 1;
  EXPECT_EQ(finetune(asked).size(), 1u);
  asked.out = out("merged");
  asked.settings.lora.merge = true;
  EXPECT_EQ(finetune(asked).size(), 1u);
  EXPECT_EQ(gainlens::testing::bytes_of(out("run") / "sft/np0/seed-0/predictions.jsonl"),
            gainlens::testing::bytes_of(out("merged") / "sft/np0/seed-0/predictions.jsonl"));
}

TEST_F(Finetune, RecomputedLayersEndWithTheSameBytes) {
  FinetuneRequest kept = request(out("kept"));
  kept.arms = {"bft"};
  kept.settings.epochs = 1;
  FinetuneRequest again = kept;
  again.out = out("again");
  again.settings.recompute = true;
  finetune(kept);
  finetune(again);
  for (const char* file : {"bft/np0/seed-0/model.safetensors", "run.h5"})
    EXPECT_EQ(gainlens::testing::bytes_of(again.out / file), gainlens::testing::bytes_of(kept.out / file)) << file;
}

TEST_F(Finetune, BFloat16StoresItsMasters) {
  FinetuneRequest asked = request(out("run"));
  asked.settings.epochs = 1;
  asked.settings.dtype = models::ComputeDtype::bfloat16;
  finetune(asked);
  const std::filesystem::path job = out("run") / "sft" / "np0" / "seed-0";
  EXPECT_THAT(read_text_file(job / "config.json"), HasSubstr("\"float32\""));
  const auto size = [](const std::filesystem::path& folder) {
    return std::filesystem::file_size(folder / "model.safetensors");
  };
  EXPECT_GT(size(job), 3 * size(demo) / 2);  // the demo is stored in bfloat16
  // An adapter too, and a whole checkpoint beside its filter.
  asked.out = out("adapter");
  asked.arms = {"sft", "bft"};
  asked.settings.lora.rank = 2;
  finetune(asked);
  const auto factors = formats::TensorFile::open(asked.out / "sft/np0/seed-0/adapter_model.safetensors");
  for (const auto& [name, entry] : factors.entries()) EXPECT_EQ(entry.dtype, formats::DType::f32) << name;
  EXPECT_GT(size(asked.out / "bft/np0/seed-0"), size(job));
}

TEST_F(Finetune, EveryArmWithAFilterIsTrained) {
  FinetuneRequest asked = request(out("run"));
  asked.arms = {"bft", "constant-k", "gate", "plain-decay"};
  asked.settings.epochs = 1;
  for (const auto& outcome : finetune(asked)) {
    EXPECT_EQ(outcome.result.test.size(), outcome.job.arm == "bft" ? 4u : 2u);  // with the losses before training
    EXPECT_EQ(outcome.result.filter.empty(), outcome.job.arm != "bft") << outcome.job.arm;
    const std::filesystem::path start = outcome.job.folder / "training" / "start.csv";
    EXPECT_EQ(std::filesystem::exists(start), outcome.job.arm == "bft") << outcome.job.arm;
    if (outcome.job.arm != "bft") continue;
    EXPECT_THAT(read_text_file(start), HasSubstr("held_out_loss,with_filter\n"));
  }
}

TEST_F(Finetune, WhatIsNotReadOfTheModelIsSaid) {
  using ::testing::Contains;
  const std::filesystem::path model = out("model");
  std::filesystem::copy(demo, model, std::filesystem::copy_options::recursive);
  Json config = read_json_file(model / "config.json");
  config["my_private_note"] = 1;
  gainlens::testing::write_file(model / "config.json", config.dump());
  FinetuneRequest asked = request(out("run"));
  asked.settings.epochs = 1;
  const auto warnings = [&] {
    const gainlens::testing::RecordingListener heard;
    finetune(asked);
    return heard.notices();
  };
  EXPECT_THAT(warnings(), Not(Contains(HasSubstr("it is ignored"))));
  asked.model = model;
  asked.out = out("noted");
  EXPECT_THAT(warnings(), Contains(HasSubstr("does not read: 'my_private_note'; it is ignored")));
}

TEST_F(Finetune, BadInputIsRefusedInOneLine) {
  const auto refused = [&](const auto& change, const std::string& reason) {
    FinetuneRequest asked = request(out("none"));
    change(asked);
    EXPECT_THAT([&] { finetune(asked); }, ThrowsMessage<InvalidArgument>(HasSubstr(reason))) << reason;
    EXPECT_FALSE(std::filesystem::exists(out("none")));
  };
  const std::string golden = GAINLENS_SOURCE_DIR "/tests/golden/models/";
  refused([](auto& r) { r.arms = {"stf"}; }, "did you mean 'sft'?");
  refused([](auto& r) { r.arms = {"sft", "sft"}; }, "'sft' is given twice");
  refused([](auto& r) { r.arms = {}; }, "at least one");
  refused([](auto& r) { r.noise = {101}; }, "--noise: 101");
  refused([](auto& r) { r.noise = {5, 5}; }, "--noise: 5 is given twice");
  refused([](auto& r) { r.seeds = 0; }, "seeds");
  refused([](auto& r) { r.settings.batch = 0; }, "--batch: 0");
  refused([](auto& r) { r.settings.tokens_at_once = 0; }, "--tokens-at-once: 0");
  refused([](auto& r) { r.settings.dtype = models::ComputeDtype::float16; }, "--dtype: 'float16'");
  refused([](auto& r) { r.settings.learning_rate = -1; }, "--learning-rate: -1");
  refused([](auto& r) { r.settings.max_length = 3; }, "every row is longer than 3 tokens");
  refused([](auto& r) { r.settings.max_new = 5000; }, "--max-new asks for 5000 more");
  refused([](auto& r) { r.settings.lora.rank = 1000; }, "--lora-rank: 1000; must be 1 to");
  refused([](auto& r) { r.settings.lora.alpha = 8; }, "--lora-rank, which is 0");
  refused([](auto& r) { r.settings.lora = {.rank = 2, .targets = {"qkv"}}; }, "--lora-targets: 'qkv'");
  refused([&](auto& r) { r.model = golden + "mixtral"; }, "one of a stack");
  refused([&](auto& r) { r.model = golden + "qwen3-next"; }, "linear attention");
}

}  // namespace finetune_test
}  // namespace gainlens::language
