#include "language/train_language_model.h"

#include "core/error.h"
#include "core/sha256.h"
#include "data/text.h"
#include "language/evaluate_language_model.h"
#include "language/language_testing.h"
#include "language/token_windows.h"
#include "models/checkpoint/load_decoder.h"
#include "models/decoder/filter_config.h"
#include "runfile/training_files.h"
#include "support/shared_data.h"
#include "tokenizers/tokenizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <string>

namespace gainlens::language {
namespace train_language_model_test {

using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

LanguageModelRequest request_in(const TemporaryFolder& folder, const Json& recipe = testing::small_recipe(),
                                int lines = 600) {
  LanguageModelRequest request;
  request.recipe = testing::write_text(folder.path() / "recipe.json", recipe.dump());
  request.texts = {testing::write_text(folder.path() / "text.txt", testing::made_up_text(lines))};
  request.out = folder.path() / "model";
  request.quiet = true;
  return request;
}

TEST(TokenWindows, PutBosFirstAndTargetsOnePlaceAhead) {
  const std::vector<tokenizers::TokenId> tokens = {10, 11, 12, 13, 14, 15};
  const std::vector<std::int64_t> begins = {2, 0};
  const Batch batch = windows_at(tokens, 1, 4, begins);
  EXPECT_TRUE(at::equal(batch.inputs, at::tensor({1, 12, 13, 14, 1, 10, 11, 12}, at::kLong).view({2, 4})));
  EXPECT_TRUE(at::equal(batch.targets, at::tensor({12, 13, 14, 15, 10, 11, 12, 13}, at::kLong).view({2, 4})));
  const std::vector<std::int64_t> beyond = {3};
  EXPECT_THROW(windows_at(tokens, 1, 4, beyond), InternalError);
}

TEST(UnigramEntropy, IsThatOfTheFrequencies) {
  EXPECT_NEAR(unigram_entropy(std::vector<tokenizers::TokenId>{5, 5, 5, 5}), 0, 1e-15);
  EXPECT_NEAR(unigram_entropy(std::vector<tokenizers::TokenId>{1, 2, 3, 4}), std::log(4.0), 1e-15);
  EXPECT_NEAR(unigram_entropy(std::vector<tokenizers::TokenId>{1, 1, 1, 2}),
              -0.75 * std::log(0.75) - 0.25 * std::log(0.25), 1e-15);
}

TEST(TrainLanguageModel, KeepsCheckpointsAlongTheWay) {
  const TemporaryFolder folder;
  Json recipe = testing::small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 60}}};
  recipe["evaluate_every"] = recipe["save_every"] = 20;
  recipe["dtype"] = "float32";
  LanguageModelRequest request = request_in(folder, recipe);
  request.keep_checkpoints = true;
  const LanguageModelOutcome outcome = train_language_model(request);
  const auto kept = [&](int step) { return request.out / "checkpoints" / ("step-" + std::to_string(step)); };
  std::set<std::string> weights;
  for (const int step : {0, 20, 40, 60}) weights.insert(sha256_file(kept(step) / "model.safetensors"));
  EXPECT_EQ(weights.size(), 4u);
  // The best one lies in the folder itself too.
  EXPECT_EQ(sha256_file(kept(static_cast<int>(outcome.training.best_step)) / "model.safetensors"),
            sha256_file(request.out / "model.safetensors"));
  const auto tokens = tokenizers::open_tokenizer(kept(20))->encode(testing::made_up_text(50, 9));
  const auto loss = [&](int step) {
    return evaluate_language_model(*models::load_decoder(kept(step)), tokens, std::nullopt, 16, true).loss;
  };
  EXPECT_GT(loss(0), loss(20));
  EXPECT_GT(loss(20), loss(60));

  // The weights are those of a training that keeps none.
  LanguageModelRequest plain = request;
  plain.out = folder.path() / "plain";
  plain.keep_checkpoints = false;
  train_language_model(plain);
  EXPECT_EQ(sha256_file(plain.out / "model.safetensors"), sha256_file(request.out / "model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(plain.out / "checkpoints"));
}

TEST(TrainLanguageModel, LeavesACheckpointThatPredictsItsText) {
  const TemporaryFolder folder;
  Json recipe = testing::small_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 150}}, {{"context", 32}, {"steps", 50}}};
  recipe["evaluate_every"] = 50;
  const LanguageModelRequest request = request_in(folder, recipe);
  const LanguageModelOutcome outcome = train_language_model(request);
  EXPECT_EQ(outcome.training.steps, 200);
  EXPECT_EQ(outcome.training.history.size(), 4u);
  EXPECT_LT(outcome.training.history.back().validation_loss, outcome.training.history.front().validation_loss);

  const auto model = models::load_decoder(request.out);  // needs only the checkpoint
  EXPECT_TRUE(model->layout().gated);
  const auto tokenizer = tokenizers::open_tokenizer(request.out);
  const auto tokens = tokenizer->encode(testing::made_up_text(50, 9));
  const LanguageModelLoss loss = evaluate_language_model(*model, tokens, tokenizer->bos_token(), 32, true);
  EXPECT_EQ(loss.tokens, static_cast<std::int64_t>(tokens.size()));
  EXPECT_EQ(loss.predicted, loss.tokens);
  EXPECT_EQ(loss.chunks, (loss.tokens + 30) / 31);
  EXPECT_LT(loss.loss, 0.9 * loss.unigram_entropy);
  const LanguageModelLoss without_bos = evaluate_language_model(*model, tokens, std::nullopt, 32, true);
  EXPECT_EQ(without_bos.predicted, without_bos.tokens - without_bos.chunks);

  const std::string weights = sha256_file(request.out / "model.safetensors");
  const LanguageModelOutcome again = train_language_model(request);  // complete: nothing to do
  EXPECT_EQ(again.training.resumed_at, 200);
  EXPECT_EQ(sha256_file(request.out / "model.safetensors"), weights);
}

/// What a training writes, the readers of its folder read.
TEST(TrainLanguageModel, TheCurvesInItsFolderCanBeReadBack) {
  const TemporaryFolder folder;
  LanguageModelRequest request = request_in(folder);
  request.filter = models::default_decoder_filter();
  request.filter->warm_up = 15;
  const LanguageModelOutcome outcome = train_language_model(request);
  const auto read = runfile::read_history(request.out / "training" / "history.csv");
  ASSERT_EQ(read.size(), outcome.training.history.size());
  for (std::size_t i = 0; i < read.size(); ++i) {
    const training::Evaluation& point = outcome.training.history[i];
    EXPECT_EQ(read[i].step, point.step);
    EXPECT_NEAR(read[i].training_loss, point.training_loss, 1e-5 * point.training_loss);
    EXPECT_NEAR(read[i].validation_loss, point.validation_loss, 1e-5 * point.validation_loss);
    EXPECT_NEAR(read[i].learning_rate, point.learning_rate, 1e-5 * point.learning_rate);
    EXPECT_NEAR(read[i].gradient_norm, point.gradient_norm, 1e-5 * point.gradient_norm);
  }
  const auto filter = runfile::read_filter_history(request.out / "training" / "filter.csv");
  ASSERT_EQ(filter.size(), read.size());  // one layer
  EXPECT_TRUE(std::isnan(filter.front().gain)) << "it warms up";
  EXPECT_NEAR(filter.back().gain, outcome.filter.at("gain").back(), 1e-5);
  EXPECT_EQ(filter.back().step, 40);
}

TEST(TrainLanguageModel, SeedsDiffer) {
  const TemporaryFolder folder;
  LanguageModelRequest request = request_in(folder);
  train_language_model(request);
  LanguageModelRequest other = request;
  other.seed = 1;
  EXPECT_THAT([&] { train_language_model(other); },
              ThrowsMessage<InvalidArgument>(HasSubstr("/seed is 0 in the stored request and 1 in this one")));
  other.out = folder.path() / "other";
  train_language_model(other);
  EXPECT_NE(sha256_file(request.out / "model.safetensors"), sha256_file(other.out / "model.safetensors"));
}

TEST(TrainLanguageModel, ARefusedRequestTouchesNothing) {
  const TemporaryFolder folder;
  const auto thesis = folder.path() / "important" / "thesis.txt";
  std::filesystem::create_directories(thesis.parent_path());
  testing::write_text(thesis, "precious");
  Json recipe = testing::small_recipe();
  recipe["model"]["model_type"] = "nosuch";
  LanguageModelRequest request = request_in(folder, recipe);
  for (const char* out : {"absent/../important", "important", "new"}) {
    request.out = folder.path() / out;
    EXPECT_THROW(train_language_model(request), InvalidArgument);
    testing::write_text(request.texts[0], "too small");
  }
  EXPECT_EQ(data::read_text(thesis), "precious");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path() / "important"), {}), 1);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "new"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "absent"));
}

TEST(TrainLanguageModel, ATextOfOneLineIsHeldOutToo) {
  const TemporaryFolder folder;
  const LanguageModelRequest request = request_in(folder);
  std::string line = testing::made_up_text(600);
  std::replace(line.begin(), line.end(), '\n', ' ');
  testing::write_text(request.texts[0], line + "\xC3\xA9\xC3\xA9");
  const LanguageModelOutcome outcome = train_language_model(request);
  EXPECT_GT(outcome.validation_tokens, outcome.training_tokens / 20);
}

TEST(TrainLanguageModel, AMissingModelIsNoCompleteTraining) {
  const TemporaryFolder folder;
  const LanguageModelRequest request = request_in(folder);
  train_language_model(request);
  std::filesystem::remove(request.out / "model.safetensors");
  EXPECT_THAT([&] { train_language_model(request); },
              ThrowsMessage<InvalidArgument>(HasSubstr("model.safetensors of the best step")));
}

TEST(TrainLanguageModel, AChangedFileOfAFinishedTrainingIsNamed) {
  const TemporaryFolder folder;
  const LanguageModelRequest request = request_in(folder);
  train_language_model(request);
  for (const char* name : {"model.safetensors", "config.json"}) {
    const auto file = request.out / name;
    const std::string whole = read_text_file(file);
    std::string flipped = whole;
    flipped[flipped.size() - 4] = static_cast<char>(flipped[flipped.size() - 4] ^ 1);
    testing::write_text(file, flipped);
    EXPECT_THAT(
        [&] { train_language_model(request); },
        ThrowsMessage<InvalidArgument>(AllOf(HasSubstr(std::string(name) + ": its sha256 is " + sha256_file(file)),
                                             HasSubstr("the training state says \"" + sha256_hex(whole)))));
    testing::write_text(file, whole);
    train_language_model(request);
  }
}

TEST(TrainLanguageModel, TheDamagedOneOfTwoVocabulariesIsNamed) {
  const TemporaryFolder folder;
  const LanguageModelRequest request = request_in(folder);
  train_language_model(request);
  const auto published = request.out / "tokenizer.model", kept = request.out / "training" / "tokenizer.model";
  const std::string right = read_text_file(kept);
  std::string wrong = right;
  wrong[wrong.size() / 2] = static_cast<char>(wrong[wrong.size() / 2] ^ 1);
  testing::write_text(kept, wrong);
  EXPECT_THAT([&] { train_language_model(request); },
              ThrowsMessage<InvalidArgument>(HasSubstr("training/tokenizer.model: is not the vocabulary that this "
                                                       "training began with; copy " +
                                                       published.string() + " there")));
  testing::write_text(published, wrong + "x");
  EXPECT_THAT([&] { train_language_model(request); },
              ThrowsMessage<InvalidArgument>(HasSubstr("neither is the vocabulary of these texts; delete ")));
  testing::write_text(kept, right);
  EXPECT_THAT([&] { train_language_model(request); },
              ThrowsMessage<InvalidArgument>(HasSubstr("copy " + kept.string() + " there")));
  std::filesystem::copy_file(kept, published, std::filesystem::copy_options::overwrite_existing);
  train_language_model(request);
}

TEST(TrainLanguageModel, RefusesAFolderThatHoldsACheckpoint) {
  const TemporaryFolder folder;
  const LanguageModelRequest request = request_in(folder);
  std::filesystem::create_directories(request.out);
  testing::write_text(request.out / "config.json", "{}");
  EXPECT_THAT([&] { train_language_model(request); },
              ThrowsMessage<InvalidArgument>(HasSubstr("holds a config.json that this command did not make")));
  EXPECT_EQ(data::read_text(request.out / "config.json"), "{}");
  EXPECT_FALSE(std::filesystem::exists(request.out / "training"));
}

TEST(TrainLanguageModel, RefusesTextsThatAreTooSmall) {
  const TemporaryFolder folder;
  LanguageModelRequest request = request_in(folder);
  testing::write_text(request.texts[0], "");
  EXPECT_THROW(train_language_model(request), InvalidArgument);
  testing::write_text(request.texts[0], "A line.\n");
  EXPECT_THAT([&] { train_language_model(request); }, ThrowsMessage<InvalidArgument>(HasSubstr("give more text")));
  EXPECT_FALSE(std::filesystem::exists(request.out)) << "a refused request must leave nothing behind";
  Json long_context = testing::small_recipe();
  long_context["model"]["max_position_embeddings"] = 65536;
  long_context["stages"] = {{{"context", 65536}, {"steps", 1}}};
  long_context["tokens_per_step"] = long_context["tokens_at_once"] = 65536;
  const TemporaryFolder second;
  EXPECT_THAT([&] { train_language_model(request_in(second, long_context)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a context of 65536 needs at least 131072")));
}

TEST(TrainLanguageModel, RefusesLayersOfLinearAttention) {
  const TemporaryFolder folder;
  Json recipe = testing::small_recipe();
  recipe["model"].update({{"model_type", "qwen3_5_text"}, {"partial_rotary_factor", 1.0}, {"rope_theta", 10000}});
  recipe["model"].erase("headwise_attn_output_gate");
  const LanguageModelRequest request = request_in(folder, recipe);
  EXPECT_THAT(
      [&] { train_language_model(request); },
      ThrowsMessage<InvalidArgument>(HasSubstr("'model' has layers of linear attention (the gated delta rule)")));
  EXPECT_FALSE(std::filesystem::exists(request.out));
}

TEST(TrainLanguageModel, RefusesStagesBeyondThePositions) {
  const TemporaryFolder folder;
  Json recipe = testing::small_recipe();
  recipe["model"]["max_position_embeddings"] = 16;
  EXPECT_THAT([&] { train_language_model(request_in(folder, recipe)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("max_position_embeddings")));
}

TEST(TrainLanguageModel, AnExplodedLossIsSaid) {
  const TemporaryFolder folder, exploded;
  EXPECT_EQ(train_language_model(request_in(folder)).diverged, "");
  Json recipe = testing::small_recipe();
  recipe["learning_rate"] = 20;
  recipe["final_factor"] = 0.5;
  EXPECT_THAT(train_language_model(request_in(exploded, recipe)).diverged, HasSubstr("its last training loss is "));
}

TEST(TrainLanguageModel, StopsWhenTheLossIsNanAndKeepsTheLastGoodCheckpoint) {
  const TemporaryFolder folder;
  Json recipe = testing::small_recipe();
  recipe["learning_rate"] = 1000;  // the loss is no longer finite after a few steps
  recipe["warmup_steps"] = 0;
  recipe["max_gradient_norm"] = 0;
  recipe["evaluate_every"] = 1;
  recipe["schedule"] = "constant";
  recipe["beta2"] = 0;
  recipe["stages"] = {{{"context", 16}, {"steps", 5000}}};
  const LanguageModelRequest request = request_in(folder, recipe);
  EXPECT_THAT([&] { train_language_model(request); }, ThrowsMessage<RunFailed>(HasSubstr("is kept")));
  EXPECT_NO_THROW(models::load_decoder(request.out));
}

}  // namespace train_language_model_test
}  // namespace gainlens::language
