#include "language/finetune.h"

#include "core/error.h"
#include "core/json.h"
#include "core/listener.h"
#include "models/checkpoint/load_decoder.h"
#include "runfile/experiment_run.h"
#include "support/file_bytes.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace gainlens::language {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
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
}

TEST_F(Finetune, AKilledTrainingEndsWithTheSameBytes) {
  for (const char* arm : {"focal", "bft"}) {
    FinetuneRequest whole = request(out(std::string(arm) + "-whole"));
    whole.arms = {arm};
    finetune(whole);
    FinetuneRequest stopped = whole;
    stopped.out = out(std::string(arm) + "-stopped");
    stopped.quiet = false;
    for (const int after : {0, 1}) {
      const Killer killer(after);
      EXPECT_THROW(finetune(stopped), std::runtime_error) << arm;
    }
    finetune(stopped);
    const std::filesystem::path job = std::filesystem::path(arm) / "np0" / "seed-0";
    for (const char* file : {"model.safetensors", "result.safetensors", "predictions.jsonl"})
      EXPECT_EQ(gainlens::testing::bytes_of(stopped.out / job / file),
                gainlens::testing::bytes_of(whole.out / job / file))
          << arm << " " << file;
    EXPECT_EQ(gainlens::testing::bytes_of(stopped.out / "run.h5"), gainlens::testing::bytes_of(whole.out / "run.h5"));
  }
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
  asked.settings.dtype = "bfloat16";
  finetune(asked);
  const std::filesystem::path job = out("run") / "sft" / "np0" / "seed-0";
  EXPECT_THAT(read_text_file(job / "config.json"), HasSubstr("\"float32\""));
  const auto size = [](const std::filesystem::path& folder) {
    return std::filesystem::file_size(folder / "model.safetensors");
  };
  EXPECT_GT(size(job), 3 * size(demo) / 2);  // the demo is stored in bfloat16
}

TEST_F(Finetune, EveryArmWithAFilterIsTrained) {
  FinetuneRequest asked = request(out("run"));
  asked.arms = {"bft", "constant-k", "gate", "plain-decay"};
  asked.settings.epochs = 1;
  for (const auto& outcome : finetune(asked)) {
    EXPECT_EQ(outcome.result.test.size(), 2u);
    EXPECT_EQ(outcome.result.filter.empty(), outcome.job.arm != "bft") << outcome.job.arm;
  }
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
  refused([](auto& r) { r.settings.dtype = "float16"; }, "--dtype: 'float16'");
  refused([](auto& r) { r.settings.learning_rate = -1; }, "--learning-rate: -1");
  refused([](auto& r) { r.settings.max_length = 3; }, "every row is longer than 3 tokens");
  refused([](auto& r) { r.settings.max_new = 5000; }, "--max-new asks for 5000 more");
  refused([&](auto& r) { r.model = golden + "mixtral"; }, "one of a stack");
  refused([&](auto& r) { r.model = golden + "qwen3-next"; }, "linear attention");
}

}  // namespace
}  // namespace gainlens::language
