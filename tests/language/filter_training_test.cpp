#include "core/error.h"
#include "language/evaluate_language_model.h"
#include "language/filter_host.h"
#include "language/language_model_task.h"
#include "language/language_testing.h"
#include "language/train_language_model.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/initial_weights.h"
#include "models/decoder/filter_config.h"
#include "support/recording_listener.h"
#include "support/shared_data.h"
#include "tokenizers/tokenizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <stdexcept>

namespace gainlens::language {
namespace filter_training_test {

using gainlens::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// The small recipe without a gate, with two layers: the first predicts.
Json plain_recipe() {
  Json recipe = testing::small_recipe();
  recipe["model"].erase("headwise_attn_output_gate");
  recipe["model"]["num_hidden_layers"] = 2;
  return recipe;
}

bft::FilterOptions small_filter() {
  bft::FilterOptions filter = models::default_decoder_filter();
  filter.warm_up = 12;
  filter.jacobian_rank = 4;
  return filter;
}

/// A task on made-up ids, with its folder.
class SmallTraining {
 public:
  /// @param recipe  keys that differ from plain_recipe()
  explicit SmallTraining(const bft::FilterOptions& filter, const Json& recipe = Json::object())
      : recipe_(parse_recipe(changed(recipe), "recipe")), folder_(scratch_.path(), Json{{"kind", "test"}}) {
    Json document = plain_recipe()["model"];
    document["vocab_size"] = 40;
    document["bos_token_id"] = 1;
    document[models::filter_key] = Json(knobs_to_json(bft::filter_knobs(), filter));
    config_ = models::parse_decoder_config(document, "test");
  }

  /// @param stop_at  the training is stopped at this new best value, counted from 1; 0: never
  void run(int stop_at, const std::function<void(models::DecoderWeights&)>& change = {}) {
    weights = models::initial_weights(config_, 3);
    if (change) change(weights);
    int kept = 0;
    LanguageModelTask task(
        recipe_, config_, weights, tokens(), 5,
        [&](const models::DecoderWeights&) {
          if (++kept == stop_at) throw std::runtime_error("stopped");
          return Json();
        },
        10);
    training::TrainerOptions options;
    options.steps = recipe_.schedule.total_steps;
    options.schedule = recipe_.schedule;
    options.optimizer = recipe_.optimizer;
    options.evaluate_every = recipe_.evaluate_every;
    options.save_every = recipe_.save_every;
    options.quiet = true;
    outcome = training::train(task, folder_, options);
    csv = task.filter().csv();
    curves = task.filter().curves();
  }

  /// Every tensor by its name, in all roles.
  std::map<std::string, at::Tensor> tensors() {
    std::map<std::string, at::Tensor> found;
    for (const auto role : {models::WeightRole::weight, models::WeightRole::precision, models::WeightRole::constant}) {
      for (const auto& [name, tensor] : models::decoder_parameters(config_, weights, role)) found[name] = tensor;
    }
    return found;
  }

  models::DecoderWeights weights;
  training::TrainingOutcome outcome;
  std::string csv;
  std::map<std::string, std::vector<double>> curves;  // [evaluation, layer]

 private:
  static Json changed(const Json& recipe) {
    Json all = plain_recipe();
    all.update(recipe);
    return all;
  }
  static TrainingTokens tokens() {
    TrainingTokens tokens;
    for (int i = 0; i < 4000; ++i) tokens.training.push_back(2 + (i * i / 3 + 7 * i) % 37);
    for (int i = 0; i < 400; ++i) tokens.validation.push_back(2 + (i * i / 3 + 7 * i) % 37);
    tokens.bos = 1;
    return tokens;
  }

  TemporaryFolder scratch_;
  Recipe recipe_;
  models::DecoderConfig config_;
  training::TrainingFolder folder_;
};

TEST(FilterTraining, AStoppedTrainingContinuesWithTheSameBits) {
  for (const bool running : {true, false}) {
    bft::FilterOptions filter = small_filter();
    filter.running_jacobian = running;
    SmallTraining whole(filter), stopped(filter);
    whole.run(0);
    EXPECT_THROW(stopped.run(2), std::runtime_error);  // after 20 steps, of which 15 are saved
    stopped.run(0);
    EXPECT_EQ(stopped.outcome.resumed_at, 15);
    const auto expected = whole.tensors();
    for (const auto& [name, tensor] : stopped.tensors()) EXPECT_TRUE(at::equal(tensor, expected.at(name))) << name;
    EXPECT_EQ(stopped.csv, whole.csv);
  }
}

TEST(FilterTraining, TheFirstPrecisionFollowsFromTheWholeStep) {
  bft::FilterOptions filter = small_filter();
  filter.warm_up = 0;
  const std::int64_t step = plain_recipe().at("tokens_per_step");
  SmallTraining whole(filter, {{"tokens_at_once", step}}), parts(filter, {{"tokens_at_once", step / 2}});
  std::vector<double> found;
  for (SmallTraining* training : {&whole, &parts}) {
    // A model that has just been evaluated for the first time; its range was set before the first step.
    EXPECT_THROW(training->run(1), std::runtime_error);
    found.push_back(training->weights.precision.range.item<double>());
  }
  EXPECT_NEAR(found[1], found[0], 1e-5 * found[0]);
}

TEST(FilterTraining, RecordsEachLayerOfEachEvaluation) {
  SmallTraining training(small_filter());
  training.run(0);
  const auto& curves = training.curves;
  const std::size_t warming = 0, first = 2, last = 3;  // four evaluations of two layers
  for (const auto& [name, values] : curves) EXPECT_EQ(values.size(), 8U) << name;
  EXPECT_TRUE(std::isnan(curves.at("gain")[warming]));  // the plain layer, until step 12
  EXPECT_NEAR(curves.at("decay")[warming], 0.99, 1e-6);
  for (const std::size_t point : {first, last}) {
    EXPECT_GT(curves.at("gain")[point], 0);
    EXPECT_LT(curves.at("gain")[point], 1);
    EXPECT_GT(curves.at("precision")[point], 0);
    EXPECT_GT(curves.at("observation_precision")[point], 1);
    EXPECT_NE(curves.at("decay")[point], curves.at("decay")[warming]);
    EXPECT_GE(curves.at("share_at_most")[point], 0);
  }
  EXPECT_GT(curves.at("process_noise")[first], 0);
  EXPECT_TRUE(std::isnan(curves.at("process_noise")[last]));  // no layer reads the precision after the last one
  EXPECT_GT(curves.at("stretch")[first], 0);
  EXPECT_NE(curves.at("stretch")[first], 1);
  EXPECT_GT(curves.at("jacobian_energy")[first], 0);
  EXPECT_LT(curves.at("jacobian_energy")[first], 1);
  std::istringstream csv(training.csv);
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line,
            "step,layer,precision,observation_precision,gain,process_noise,stretch,share_at_most,decay,"
            "share_of_precision_at_most,jacobian_energy,stream_size,estimate_size,value_size,share_of_raised_sums");
  std::getline(csv, line);
  EXPECT_THAT(line, HasSubstr("10,0,,,,"));
}

TEST(FilterTraining, TheFirstBatchGivesTheInitialGain) {
  bft::FilterOptions filter = small_filter();
  filter.warm_up = 0;
  models::DecoderWeights weights;
  Json document = plain_recipe()["model"];
  document["vocab_size"] = 40;
  document[models::filter_key] = Json(knobs_to_json(bft::filter_knobs(), filter));
  const models::DecoderConfig config = models::parse_decoder_config(document, "test");
  weights = models::initial_weights(config, 3);
  models::Decoder decoder(config, weights, models::WeightUse::trained);
  DecoderFilterHost host(decoder, config, weights);
  training::FilterTraining training(host, 5);
  const at::Tensor inputs = at::arange(64, at::kLong).remainder(40).view({2, 32});
  training.prepare(0, {.batch = [&](const hooks::Hooks& hooks) { decoder.forward({inputs}, {}, hooks); }});
  double gain = 0;
  hooks::Hooks hooks;
  hooks.observe(hooks::Glob("blocks.0.attn.hook_gain"),
                [&](const hooks::Site&, const at::Tensor& seen) { gain = seen.median().item<double>(); });
  decoder.forward({inputs}, {}, hooks);
  EXPECT_NEAR(gain, filter.initial_gain, 0.01);
}

TEST(FilterTraining, ANanPrecisionNamesLayerAndStep) {
  bft::FilterOptions filter = small_filter();
  filter.initial_precision = bft::InitialPrecision::table;
  SmallTraining training(filter);
  EXPECT_THAT(
      [&] { training.run(0, [](models::DecoderWeights& weights) { weights.precision.table.data().fill_(NAN); }); },
      ThrowsMessage<RunFailed>(AllOf(HasSubstr("first in layer 0"), HasSubstr("at step 13"))));
}

LanguageModelRequest request_in(const TemporaryFolder& folder, const Json& recipe) {
  LanguageModelRequest request;
  request.recipe = testing::write_text(folder.path() / "recipe.json", recipe.dump());
  request.texts = {testing::write_text(folder.path() / "text.txt", testing::made_up_text(600))};
  request.out = folder.path() / "model";
  request.quiet = true;
  request.filter = small_filter();
  request.precision_learning_rate = 10;
  return request;
}

TEST(FilterTraining, LeavesACheckpointThatPredictsItsText) {
  const TemporaryFolder folder;
  Json recipe = plain_recipe();
  recipe["stages"] = {{{"context", 16}, {"steps", 150}}, {{"context", 32}, {"steps", 50}}};
  recipe["evaluate_every"] = 50;
  const LanguageModelRequest request = request_in(folder, recipe);
  const LanguageModelOutcome outcome = train_language_model(request);
  const auto& history = outcome.training.history;
  EXPECT_LT(history.back().validation_loss, history.front().validation_loss);
  EXPECT_TRUE(std::filesystem::exists(request.out / "training" / "filter.csv"));

  models::Checkpoint checkpoint = models::load_checkpoint(request.out);
  EXPECT_EQ(checkpoint.config.filter, request.filter);
  models::Decoder model(checkpoint.config, std::move(checkpoint.weights));
  const auto tokenizer = tokenizers::open_tokenizer(request.out);
  const auto tokens = tokenizer->encode(testing::made_up_text(50, 9));
  const LanguageModelLoss loss = evaluate_language_model(model, tokens, tokenizer->bos_token(), 32, true);
  EXPECT_LT(loss.loss, 0.9 * loss.unigram_entropy);

  LanguageModelRequest other = request;
  other.filter->prior_strength = 2;
  EXPECT_THAT([&] { train_language_model(other); },
              ThrowsMessage<InvalidArgument>(HasSubstr("/filter/prior_strength is 1.0 in the stored request")));
}

TEST(FilterTraining, PrecisionsAtTheirBoundAreToldOnce) {
  const TemporaryFolder folder;
  LanguageModelRequest request = request_in(folder, plain_recipe());
  request.filter->most_precision = 0.01;
  request.filter->warm_up = 0;
  const gainlens::testing::RecordingListener listener;
  train_language_model(request);
  std::int64_t told = 0;
  for (const std::string& notice : listener.notices())
    told += notice.find("are at the bound --most-precision") != std::string::npos ? 1 : 0;
  EXPECT_EQ(told, 1);
}

TEST(FilterTraining, ARefusedFilterTouchesNothing) {
  const TemporaryFolder folder;
  Json recipe = plain_recipe();
  LanguageModelRequest request = request_in(folder, recipe);
  const bft::FilterOptions known = request.filter.value();
  request.filter->kriging = bft::Kriging::per_dimension;
  EXPECT_THAT([&] { train_language_model(request); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'kriging' is per_dimension")));
  EXPECT_FALSE(std::filesystem::exists(request.out));
  request.filter = known;
  recipe["model"][models::filter_key] = Json::object();
  testing::write_text(request.recipe, recipe.dump());
  EXPECT_THAT([&] { train_language_model(request); }, ThrowsMessage<InvalidArgument>(HasSubstr("--arm bft gives it")));
}

}  // namespace filter_training_test
}  // namespace gainlens::language
