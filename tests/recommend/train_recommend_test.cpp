#include "recommend/train_recommend.h"

#include "core/error.h"
#include "experiment/result_file.h"
#include "formats/tensor_file.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommend_task.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/sampled_softmax.h"
#include "recommend/small_data.h"
#include "recommend/train_seed.h"
#include "recommend/training_memory.h"
#include "runfile/recommend_run.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "support/text_file.h"
#include "training/thread_replicas.h"
#include "training/trainer.h"
#include "training/training_state.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::recommend {
namespace {

using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Settings small() {
  return settings_of({{"width", 16},
                      {"inner_width", 32},
                      {"positions", 8},
                      {"batch", 16},
                      {"epochs", 6},
                      {"dropout", 0.1},
                      {"attention_dropout", 0.1},
                      {"learning_rate", 0.01},
                      {"save_every", 2},
                      {"warm_up", 1}},
                     "test");
}

RecommendRequest request_in(const std::filesystem::path& out) {
  RecommendRequest request;
  request.data_name = "ring";
  request.settings = small();
  request.seeds = 2;
  request.seed = 3;
  request.out = out;
  request.quiet = true;
  return request;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(TrainRecommend, LearnsWhatFollows) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.settings.epochs = 40;
  request.arms = {"plain", "popularity", "markov"};
  const RecommendOutcome outcome = train_recommend(request, ring_of(120, 23));
  ASSERT_EQ(outcome.seeds.size(), 6u);
  for (const auto& [job, result, seconds] : outcome.seeds) {
    SCOPED_TRACE(job.arm);
    const double found = result.test.at("hr@5");
    EXPECT_TRUE(job.arm == "popularity" ? found < 0.7 : found > 0.95) << found;
    EXPECT_EQ(result.best_epoch > 0, job.arm == "plain");
  }
}

/// The loss of one step, and the gradients of all parameters.
std::pair<double, std::vector<at::Tensor>> step_of(RecommendTask& task, std::int64_t step,
                                                   training::Replicas& replicas) {
  training::AdamW optimizer(task.parameters(), {});
  const at::Tensor loss = at::scalar_tensor(task.accumulate_gradients(step), at::kDouble);
  std::vector<at::Tensor> gradients = optimizer.gradients();
  std::vector<at::Tensor> shares = gradients;
  shares.push_back(loss);
  replicas.sum(shares);
  return {loss.item<double>(), gradients};
}

TEST(TrainRecommend, ProcessesTogetherComputeTheStepsOfOne) {
  const data::LeaveOneOut split = ring_of(35, 23);  // batches of 16, 16 and 3 users
  std::vector<std::pair<Settings, Arm>> cases;
  for (const ArmParts& parts : all_arms()) cases.emplace_back(small(), parts.arm);
  cases.emplace_back(small(), Arm::plain);
  cases.back().first.loss = LossKind::sampled;
  for (const auto& [settings, arm] : cases) {
    for (std::int64_t step = 0; step < 3; ++step) {
      training::SingleReplica alone;
      RecommendTask one(
          settings, arm, split, 7, [](const Backbone&) { return Json(); }, alone);
      const auto [loss, gradients] = step_of(one, step, alone);
      const std::vector<float> ranks = one.ranks(data::HeldOut::validation);
      gainlens::testing::with_replicas(
          4, [&, loss = loss, arm = arm, &settings = settings, &gradients = gradients](training::Replicas& replicas) {
            RecommendTask part(
                settings, arm, split, 7, [](const Backbone&) { return Json(); }, replicas);
            const auto [loss_of_four, gradients_of_four] = step_of(part, step, replicas);
            EXPECT_NEAR(loss_of_four, loss, 1e-6 * loss);
            ASSERT_EQ(gradients_of_four.size(), gradients.size());
            for (std::size_t i = 0; i < gradients.size(); ++i) {
              const double scale = gradients[i].abs().max().item<double>();
              EXPECT_LT((gradients_of_four[i] - gradients[i]).abs().max().item<double>(), 1e-6 + 1e-5 * scale)
                  << name_of(arm) << " " << i;
            }
            EXPECT_EQ(part.ranks(data::HeldOut::validation), ranks);
          });
    }
  }
}

/// All weights, also those that are not learned.
std::vector<at::Tensor> copies_of(Backbone& model) {
  std::vector<at::Tensor> copies;
  for (const WeightSlot& slot : model.slots()) copies.push_back(slot.tensor->detach().clone());
  return copies;
}

/// Trains in a folder.
/// @param stop_after  number of evaluations after which it is killed; 0: never
/// @returns  the weights, with the validation metrics and what is known of the filter
auto train_in(const std::filesystem::path& folder, const Settings& settings, Arm arm, const data::LeaveOneOut& split,
              std::int64_t stop_after) {
  training::SingleReplica alone;
  RecommendTask task(
      settings, arm, split, 7, [](const Backbone&) { return Json(); }, alone);
  training::TrainerOptions options;
  options.steps = settings.epochs * task.steps_per_epoch();
  options.evaluate_every = options.save_every = task.steps_per_epoch();
  options.optimizer.learning_rate = settings.learning_rate;
  options.quiet = true;
  std::int64_t evaluated = 0;
  options.evaluated = [&](const training::Evaluation&) {
    if (++evaluated == stop_after) throw std::runtime_error("killed");
  };
  try {
    training::train(task, training::TrainingFolder(folder, {{"seed", 7}}), options);
  } catch (const std::runtime_error&) {
    EXPECT_GT(stop_after, 0);
  }
  return std::tuple(copies_of(task.model()), task.validation(), Json(task.filter()->notes()));
}

TEST(TrainRecommend, InterruptedAnywhereEndsWithTheSameBits) {
  const data::LeaveOneOut split = ring_of(60, 23);
  std::vector<std::pair<Settings, Arm>> cases;
  for (const ArmParts& parts : all_arms()) cases.emplace_back(small(), parts.arm);
  cases.emplace_back(small(), Arm::bft);
  cases.back().first.filter.initial_precision = bft::InitialPrecision::em;
  cases.emplace_back(small(), Arm::bft);
  cases.back().first.filter.initial_precision = bft::InitialPrecision::count;
  cases.back().first.filter.warm_up = 14;
  cases.back().first.filter.warm_up_form = bft::WarmUp::blend;
  for (const auto& [settings, arm] : cases) {
    const TemporaryFolder folder;
    const auto whole = train_in(folder.path() / "whole", settings, arm, split, 0);
    train_in(folder.path() / "parts", settings, arm, split, 2);
    train_in(folder.path() / "parts", settings, arm, split, 2);
    const auto parts = train_in(folder.path() / "parts", settings, arm, split, 0);
    EXPECT_EQ(std::get<1>(parts), std::get<1>(whole)) << name_of(arm);
    EXPECT_EQ(std::get<1>(parts)[0].size(), 6u);
    EXPECT_EQ(std::get<2>(parts), std::get<2>(whole)) << name_of(arm);
    for (std::size_t i = 0; i < std::get<0>(whole).size(); ++i)
      EXPECT_TRUE(at::equal(std::get<0>(parts)[i], std::get<0>(whole)[i])) << name_of(arm) << " " << i;
  }
}

TEST(TrainRecommend, SeedsSideBySideAreThoseOneByOne) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest beside = request_in(folder.path() / "beside"), alone = request_in(folder.path() / "alone");
  beside.threads = 2;
  EXPECT_EQ(train_recommend(beside, split).seeds_at_once, 2);
  EXPECT_EQ(train_recommend(alone, split).seeds_at_once, 1);
  for (const char* file : {"plain/seed-3/result.safetensors", "plain/seed-3/model.safetensors",
                           "plain/seed-4/result.safetensors", "plain/seed-4/model.safetensors"}) {
    const std::string expected = bytes_of(alone.out / file);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(bytes_of(beside.out / file) == expected) << file;
  }
}

TEST(TrainRecommend, GrowsBySeedsAndRefusesAnotherRequest) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  train_recommend(request, split);
  request.seeds = 3;
  request.threads = 8;  // the run keeps its one thread for each seed
  const RecommendOutcome more = train_recommend(request, split);
  EXPECT_EQ(more.threads_of_seed, 1);
  EXPECT_EQ(more.seeds_at_once, 3);
  EXPECT_EQ(more.seeds[0].seconds, 0);  // done before
  EXPECT_GT(more.seeds[2].seconds, 0);
  EXPECT_EQ(more.seeds[2].job.seed, 5u);
  request.settings.dropout = 0.2;
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }), HasSubstr("dropout is 0.1 in the stored request"));
  EXPECT_THAT(refusal_of([&] { train_recommend(request_in(folder.path() / "run"), ring_of(59, 23)); }),
              HasSubstr("in the stored request"));
}

TEST(TrainRecommend, EachArmIsTrainedWithEachVariant) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "bft"};
  request.seeds = 1;
  request.variants = {{"narrow", {{"width", 8}}}, {"long", {{"epochs", 8}, {"patience", 0}}}};
  const RecommendOutcome outcome = train_recommend(request, split);
  ASSERT_EQ(outcome.seeds.size(), 4u);
  EXPECT_EQ(outcome.seeds[3].job.folder, request.out / "bft/long/seed-3");
  EXPECT_EQ(runfile::epochs_of(outcome.seeds[3].result), 8);

  // A variant has the numbers of a run with its settings.
  RecommendRequest alone = request;
  alone.out = folder.path() / "alone";
  alone.variants = {};
  alone.settings.model["width"] = 8;
  train_recommend(alone, split);
  for (const char* arm : {"plain", "bft"})
    EXPECT_TRUE(bytes_of(request.out / arm / "narrow/seed-3/model.safetensors") ==
                bytes_of(alone.out / arm / "seed-3/model.safetensors"));

  // The file of the run has them as arms of their own, also after another call with another variant, or with none.
  request.variants = {{"deep", {{"layers", 3}}}};
  train_recommend(request, split);
  request.variants = {};
  train_recommend(request, split);
  const ProvenRun proven = read_proven_run(request.out);
  EXPECT_EQ(proven.compared, 8u);
  EXPECT_THAT(proven.run.arms, ::testing::ElementsAre("plain", "plain/deep", "plain/long", "plain/narrow", "bft",
                                                      "bft/deep", "bft/long", "bft/narrow"));
  EXPECT_EQ(proven.run.request.at("variants").size(), 3u);
  const auto layers = [&](std::size_t arm) {
    const runfile::TrainedSeed& seed = *proven.run.result(arm, 0);
    return seed.filter.at("gain").size() / seed.curve.at("hr@10").size();
  };
  EXPECT_EQ(layers(4), 2u);
  EXPECT_EQ(layers(5), 3u);
  EXPECT_EQ(proven.run.result(3, 0)->rank, runfile::read_recommend_run(alone.out).result(0, 0)->rank);
  EXPECT_EQ(label_of_folder(request.out / "bft/long/seed-3"), "bft/long");
  EXPECT_EQ(label_of_folder(request.out / "bft/seed-3"), "bft");
}

TEST(TrainRecommend, VariantsThatCannotBeToldApartAreRefused) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  const auto refusal = [&](const std::vector<Variant>& variants) {
    request.variants = variants;
    return refusal_of([&] { train_recommend(request, split); });
  };
  EXPECT_EQ(refusal({{"a", {{"width", 8}}}, {"b", {{"width", 8.0}, {"dropout", 0.1}}}}),
            "--variant b: 'width' is 8.0; must be a whole number below 2^63");
  EXPECT_EQ(refusal({{"a", {{"width", 8}}}, {"b", {{"width", 8}, {"dropout", 0.1}}}}),
            "--variant b: has the same settings as variant a; leave one of them out");
  EXPECT_THAT(refusal({{"a", {{"dropout", 0.1}}}}), HasSubstr("--variant a: changes nothing"));
  EXPECT_THAT(refusal({{"a", {{"widht", 8}}}}),
              HasSubstr("--variant a: 'widht' is not a known key; did you mean 'width'"));
  EXPECT_THAT(refusal({{"a", {{"width", 8}}}, {"a", {{"width", 4}}}}), HasSubstr("--variant a: stands twice"));
  EXPECT_THAT(refusal({{"../a", {{"width", 8}}}}), HasSubstr("'../a' cannot be the name of a variant"));
  EXPECT_THAT(refusal({{"a", {{"heads", 3}}}}), HasSubstr("--variant a: "));
  EXPECT_FALSE(std::filesystem::exists(request.out));
  request.variants = {{"a", {{"width", 8}}}};
  train_recommend(request, split);
  EXPECT_THAT(refusal({{"b", {{"width", 8}}}}), HasSubstr("--variant b: has the same settings as variant a"));
  EXPECT_THAT(refusal({{"a", {{"width", 4}}}}), HasSubstr("/variants/a/width is 8 in the stored request and 4 in"));
}

/// A run of one seed with 6 epochs.
RecommendRequest one_seed_in(const std::filesystem::path& out) {
  RecommendRequest request = request_in(out);
  request.seeds = 1;
  return request;
}

/// Changes the last bit of the byte at `place`; negative places count from the end.
void flip(const std::filesystem::path& file, std::ptrdiff_t place) {
  std::string bytes = bytes_of(file);
  bytes[place < 0 ? bytes.size() - static_cast<std::size_t>(-place) : static_cast<std::size_t>(place)] ^= 1;
  gainlens::testing::write_file(file, bytes);
}

TEST(TrainRecommend, AChangedFileOfAFinishedTrainingIsNamedAndRestored) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  const RecommendRequest request = one_seed_in(folder.path() / "run");
  train_recommend(request, split);
  const std::filesystem::path seed = request.out / "plain/seed-3";
  const std::string run = bytes_of(request.out / "run.h5");
  const std::vector<std::pair<std::filesystem::path, std::filesystem::path>> cures = {
      {seed / "result.safetensors", seed / "result.safetensors"},
      {seed / "model.safetensors", seed},
      {seed / "config.json", seed},
      {seed / "training/state.safetensors", seed / "training/state.safetensors"}};
  for (const auto& [file, cure] : cures) {
    const std::string whole = bytes_of(file);
    for (const char* damage : {"flipped", "emptied", "deleted"}) {
      SCOPED_TRACE(file.string() + " " + damage);
      const bool deleted = damage == std::string("deleted");
      if (deleted)
        std::filesystem::remove(file);
      else
        gainlens::testing::write_file(file, "");
      if (damage == std::string("flipped")) {
        gainlens::testing::write_file(file, whole);
        flip(file, -5);
      }
      // A result that was deleted is computed again; a state is needed only by a training that goes on.
      if (deleted && file == cure) {
        train_recommend(request, split);
      } else {
        const std::string refusal = refusal_of([&] { train_recommend(request, split); });
        EXPECT_THAT(refusal, HasSubstr(file.filename().string()));
        EXPECT_THAT(refusal, HasSubstr("delete "));
        EXPECT_TRUE(bytes_of(request.out / "run.h5") == run) << "run.h5 was made from damaged files";
        std::filesystem::remove_all(cure);
        train_recommend(request, split);
      }
      if (file.filename() != "state.safetensors") {
        EXPECT_TRUE(bytes_of(file) == whole);
      }
      EXPECT_TRUE(bytes_of(request.out / "run.h5") == run);
    }
  }
}

TEST(TrainRecommend, FilesOfAnotherRequestAreNotTaken) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run"), other = one_seed_in(folder.path() / "other");
  other.settings.learning_rate *= 2;
  train_recommend(request, split);
  train_recommend(other, split);
  const std::filesystem::path seed = request.out / "plain/seed-3", foreign = other.out / "plain/seed-3";
  const std::string run = bytes_of(request.out / "run.h5");
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  // A whole finished seed.
  for (const char* file : {"result.safetensors", "model.safetensors", "config.json"})
    std::filesystem::copy_file(foreign / file, seed / file, overwrite);
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }),
              HasSubstr("is the result of a training with another request"));
  std::filesystem::remove_all(seed);
  train_recommend(request, split);
  EXPECT_TRUE(bytes_of(request.out / "run.h5") == run);
  // The state alone, from which more epochs would go on.
  std::filesystem::copy_file(foreign / "training/state.safetensors", seed / "training/state.safetensors", overwrite);
  RecommendRequest longer = request;
  longer.settings.epochs += 1;
  EXPECT_THAT(refusal_of([&] { train_recommend(longer, split); }),
              HasSubstr("is the state of a training with another request"));
}

TEST(TrainRecommend, ACheckpointThatChangedBeforeTheEndIsNamed) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  const RecommendRequest request = one_seed_in(folder.path() / "run");
  train_recommend(request, split);
  const std::filesystem::path seed = request.out / "plain/seed-3";
  std::filesystem::remove(seed / experiment::result_name);  // as if it had been killed before its end
  flip(seed / "model.safetensors", -5);
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }),
              ::testing::AllOf(HasSubstr("model.safetensors: its sha256 is"), HasSubstr("the training state says"),
                               HasSubstr("state.safetensors to train again")));
  std::filesystem::remove(seed / "training/state.safetensors");
  train_recommend(request, split);
}

/// Writes a file of tensors without some keys of its metadata.
void forget(const std::filesystem::path& file, const std::vector<std::string>& keys) {
  const formats::TensorFile stored = formats::TensorFile::open(file);
  std::map<std::string, std::string> metadata = stored.metadata();
  for (const std::string& key : keys) metadata.erase(key);
  std::vector<std::string> bytes;
  std::vector<formats::TensorToWrite> tensors;
  bytes.reserve(stored.entries().size());
  for (const auto& [name, entry] : stored.entries()) {
    bytes.emplace_back(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
    tensors.push_back({name, entry.dtype, entry.shape, std::as_bytes(std::span(bytes.back()))});
  }
  formats::write_tensors(file, tensors, metadata);
}

/// Writes a result as earlier versions did: without checksums.
void forget_checksums(const std::filesystem::path& file) {
  forget(file, {"sha256", "kept"});
}

/// Changes a JSON file.
void edit(const std::filesystem::path& file, const std::function<void(Json&)>& change) {
  Json document = read_json_file(file);
  change(document);
  gainlens::testing::write_file(file, document.dump(2) + "\n");
}

/// Writes a finished run as the version did that first had arms with a filter (commit 86328b5): before the option
/// `output_projection` and before checksums, and with results that do not say whose they are.
void make_older(const std::filesystem::path& run) {
  const auto forget_option = [](Json& request) { request.at("training").erase("output_projection"); };
  edit(run / "request.json", forget_option);
  std::filesystem::remove(run / "run.h5");
  for (const char* arm : {"plain", "bft"}) {
    for (const auto& seed : std::filesystem::directory_iterator(run / arm)) {
      forget(seed.path() / experiment::result_name, {"sha256", "kept", "request", "arm", "seed"});
      forget(seed.path() / "model.safetensors", {"seed"});
      edit(seed.path() / "config.json", [](Json& config) {
        if (config.contains("filter")) config["filter"].erase("output_projection");
        config["data"] = {{"item_names", config["data"]["item_names"]}};
      });
      edit(seed.path() / "training/request.json", forget_option);
      const std::filesystem::path file = seed.path() / "training/state.safetensors";
      training::TrainingState state = training::load_training_state(file);
      state.notes.erase("request");
      state.notes.at("task").erase("kept");
      training::save_training_state(file, state);
    }
  }
}

TEST(TrainRecommend, ARunFromBeforeAnOptionIsContinued) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest whole = request_in(folder.path() / "whole"), parts = request_in(folder.path() / "parts");
  for (RecommendRequest* request : {&whole, &parts}) {
    request->arms = {"plain", "bft"};
    request->settings.patience = 0;
  }
  parts.seeds = 1;
  train_recommend(parts, split);
  make_older(parts.out);
  const std::string stored = bytes_of(parts.out / "request.json");
  EXPECT_NE(stored, bytes_of(parts.out / "bft/seed-3/training/request.json"));
  EXPECT_EQ(Json(open_recommender(parts.out / "bft/seed-3").model->document())["filter"]["output_projection"], false);

  parts.seeds = 2;  // one more, in the form of the run
  train_recommend(parts, split);
  train_recommend(whole, split);
  EXPECT_EQ(bytes_of(parts.out / "request.json"), stored);
  const auto same_results = [&] {
    const runfile::RecommendRun left = runfile::read_recommend_run(parts.out),
                                right = runfile::read_recommend_run(whole.out);
    ASSERT_EQ(left.results.size(), right.results.size());
    for (std::size_t i = 0; i < left.results.size(); ++i) {
      EXPECT_EQ(left.results[i]->rank, right.results[i]->rank);
      EXPECT_EQ(left.results[i]->curve, right.results[i]->curve);
    }
  };
  same_results();
  for (RecommendRequest* request : {&whole, &parts}) {
    request->settings.epochs = 8;  // states of the earlier version and of this one go on
    train_recommend(*request, split);
  }
  EXPECT_FALSE(read_json_file(parts.out / "request.json").at("training").contains("output_projection"));
  EXPECT_EQ(read_proven_run(parts.out).compared, 4u);
  same_results();

  parts.settings.filter.output_projection = true;
  EXPECT_THAT(refusal_of([&] { train_recommend(parts, split); }),
              HasSubstr("/training/output_projection is false in the stored request (which does not name it) and true "
                        "in this one"));
  parts.settings.filter.output_projection = false;
  edit(parts.out / "request.json", [](Json& request) { request["training"]["new_option"] = 1; });
  EXPECT_THAT(refusal_of([&] { train_recommend(parts, split); }),
              HasSubstr("made by a newer version of gainlens; unknown keys: /training/new_option"));
  edit(parts.out / "request.json", [](Json& request) {
    request["training"].erase("new_option");
    request["training"].erase("dropout");
  });
  EXPECT_THAT(refusal_of([&] { train_recommend(parts, split); }),
              HasSubstr("its request.json lacks /training/dropout, which every version writes"));
}

TEST(TrainRecommend, ResultsOfEarlierVersionsAreReadAndTheirMetricsChecked) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  const RecommendRequest request = one_seed_in(folder.path() / "run");
  train_recommend(request, split);
  EXPECT_EQ(read_proven_run(request.out).compared, 1u);
  EXPECT_EQ(read_proven_run(request.out).unproven, "");
  EXPECT_THAT(read_proven_run(request.out / "run.h5").unproven, HasSubstr("without its folder"));
  const std::filesystem::path seed = request.out / "plain/seed-3", file = seed / experiment::result_name;
  forget_checksums(file);
  train_recommend(request, split);
  EXPECT_EQ(read_proven_run(request.out).compared, 0u);
  EXPECT_THAT(read_proven_run(request.out).unproven, HasSubstr("1 of 1 training were not compared"));
  EXPECT_THAT(open_recommender(seed).unproven, HasSubstr("earlier version"));
  // One bit of the exponent of a rank: the tensor "rank" lies before those of the test.
  const formats::TensorFile stored = formats::TensorFile::open(file);
  const std::string bytes = bytes_of(file), ranks(reinterpret_cast<const char*>(stored.at("rank").bytes.data()), 240);
  flip(file, static_cast<std::ptrdiff_t>(bytes.find(ranks)) + 3);
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }), HasSubstr("and its ranks give"));
  EXPECT_THAT(refusal_of([&] { read_proven_run(request.out); }), HasSubstr("and its ranks give"));
}

TEST(TrainRecommend, MoreEpochsContinueToTheBitsOfAnUninterruptedTraining) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  for (const std::int64_t patience : {0, 2}) {
    SCOPED_TRACE(patience);
    const std::string name = patience == 0 ? "all" : "patient";
    RecommendRequest whole = request_in(folder.path() / (name + "-whole")), parts = request_in(folder.path() / name);
    for (RecommendRequest* request : {&whole, &parts}) {
      request->arms = {"plain", "bft", "markov"};
      request->settings.patience = patience;
      request->settings.epochs = 9;
    }
    train_recommend(whole, split);
    parts.settings.epochs = 5;
    train_recommend(parts, split);
    parts.settings.epochs = 9;
    parts.data_name = "moved";
    train_recommend(parts, split);
    for (const char* file :
         {"run.h5", "request.json", "plain/seed-3/result.safetensors", "bft/seed-4/model.safetensors",
          "bft/seed-4/result.safetensors", "bft/seed-4/training/state.safetensors", "markov/seed-3/result.safetensors"})
      EXPECT_TRUE(bytes_of(parts.out / file) == bytes_of(whole.out / file)) << file;
    parts.settings.epochs = 8;
    EXPECT_THAT(refusal_of([&] { train_recommend(parts, split); }),
                HasSubstr("/training/epochs is 9 in the stored request and 8 in this one"));
  }
}

TEST(TrainRecommend, SeedsOfFewerEpochsAreLeftOutOfTheRunFile) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.settings.patience = 0;
  train_recommend(request, split);
  request.settings.epochs = 7;
  request.seeds = 1;
  train_recommend(request, split);
  runfile::RecommendRun run = runfile::read_recommend_run(request.out);
  EXPECT_EQ(run.request.at("training").at("epochs"), 7);
  EXPECT_EQ(run.seeds, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(run.result(0, 0)->curve.at("hr@10").size(), 7u);
  EXPECT_FALSE(run.result(0, 1).has_value());
  request.seeds = 2;
  train_recommend(request, split);
  EXPECT_EQ(runfile::read_recommend_run(request.out).result(0, 1)->curve.at("hr@10").size(), 7u);
}

TEST(TrainRecommend, EverySeedIsReadBack) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "popularity"};
  request.settings.epochs = 1;
  constexpr std::uint64_t half = std::uint64_t{1} << 63, most = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [seed, seeds] :
       {std::pair<std::uint64_t, std::int64_t>{0, 1}, {half - 1, 2}, {most - 1, 2}, {most, 1}}) {
    request.seed = seed;
    request.seeds = seeds;
    EXPECT_EQ(train_recommend(request, split).seeds.front().job.seed, seed);
    EXPECT_EQ(train_recommend(request, split).seeds.front().seconds, 0) << "was trained again";
  }
  const ProvenRun proven = read_proven_run(request.out);
  EXPECT_EQ(proven.run.seeds, (std::vector<std::uint64_t>{0, half - 1, half, most - 1, most}));
  EXPECT_EQ(proven.compared, 10u);
  EXPECT_THAT(refusal_of([] { check_seeds(most, 2); }), HasSubstr("go beyond 2^64 - 1"));
  EXPECT_THAT(refusal_of([] { check_seeds(0, 1000000); }), HasSubstr("at most 10000 are supported"));
  check_seeds(most - 9999, 10000);
}

TEST(TrainRecommend, AnExplodedLossIsSaid) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = one_seed_in(folder.path() / "run");
  EXPECT_EQ(runfile::divergence_of(train_recommend(request, split).seeds[0].result, 23), "");
  request.out = folder.path() / "exploded";
  request.settings.learning_rate = 1000;
  EXPECT_THAT(runfile::divergence_of(train_recommend(request, split).seeds[0].result, 23),
              HasSubstr("its last training loss is "));
  EXPECT_THAT(runfile::divergence_of(train_recommend(request, split).seeds[0].result, 23),
              HasSubstr("its last training loss is "));
}

TEST(TrainRecommend, TakesNoFolderWithForeignFiles) {
  const TemporaryFolder folder;
  RecommendRequest request = one_seed_in(folder.path() / "run");
  std::filesystem::create_directory(request.out);
  gainlens::testing::write_file(request.out / "thesis.txt", "precious");
  EXPECT_THAT(refusal_of([&] { train_recommend(request, ring_of(60, 23)); }),
              HasSubstr("is not empty and not a run (it holds 'thesis.txt' and no request.json)"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(request.out), {}), 1);
}

TEST(TrainRecommend, NanIsNamedByEpochAndBatch) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.settings.learning_rate = 1e30;
  request.seeds = 1;
  EXPECT_THAT([&] { train_recommend(request, ring_of(60, 23)); },
              ThrowsMessage<RunFailed>(::testing::ContainsRegex("epoch [0-9]+, batch [0-9]+")));
}

TEST(TrainRecommend, EveryArmIsTrainedAndItsFilterIsKept) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.seeds = 1;
  request.arms.clear();
  for (const ArmParts& parts : all_arms()) request.arms.emplace_back(parts.name);
  request.settings.precision_learning_rate = 1;  // the first epoch leaves the gain near where it begins
  const data::LeaveOneOut split = ring_of(60, 23);
  train_recommend(request, split);
  const runfile::RecommendRun run = runfile::read_recommend_run(request.out);
  ASSERT_EQ(run.arms.size(), all_arms().size());
  for (std::size_t i = 0; i < run.arms.size(); ++i) {
    SCOPED_TRACE(run.arms[i]);
    const auto& result = run.result(i, 0);
    ASSERT_TRUE(result.has_value());
    const RecommenderCheckpoint checkpoint = open_recommender(request.out / run.arms[i] / "seed-3");
    EXPECT_EQ(Json(checkpoint.model->document()).value("arm", "plain"), run.arms[i]);
    if (run.arms[i] != "bft") {
      EXPECT_TRUE(result->filter.empty());
      continue;
    }
    // Two layers; the filter acts from the second step on, so after each epoch.
    const std::size_t epochs = result->curve.at("training_loss").size();
    for (const runfile::FilterCurve& curve : runfile::filter_curves()) {
      const std::vector<double>& values = result->filter.at(std::string(curve.name));
      ASSERT_EQ(values.size(), 2 * epochs) << curve.name;
      for (std::size_t j = 0; j < values.size(); ++j)
        EXPECT_EQ(std::isnan(values[j]), curve.name == "stretch" && j % 2 == 1) << curve.name;
    }
    EXPECT_NEAR(result->filter.at("gain").front(), 0.9, 0.1);  // K0
    const auto& precision = result->filter.at("precision");
    EXPECT_GT(precision[1], precision[0]);  // more is known after the first layer
  }
}

TEST(TrainRecommend, NanInAPrecisionIsNamedByLayerAndStep) {
  const data::LeaveOneOut split = ring_of(60, 23);
  training::SingleReplica alone;
  const Settings settings = small();
  RecommendTask task(
      settings, Arm::bft, split, 7, [](const Backbone&) { return Json(); }, alone);
  task.accumulate_gradients(0);
  task.accumulate_gradients(1);
  {
    const at::NoGradGuard no_gradients;
    for (const WeightSlot& slot : task.model().slots()) {
      if (slot.name == "layers.0.filter.process_noise") slot.tensor->fill_(NAN);
    }
  }
  EXPECT_THAT([&] { task.accumulate_gradients(2); },
              ThrowsMessage<RunFailed>(HasSubstr("a precision is NaN, first in layer 1")));
}

TEST(TrainRecommend, WarnsWhereAllPrecisionsAreAtTheirBound) {
  const data::LeaveOneOut split = ring_of(60, 23);
  training::SingleReplica alone;
  Settings settings = small();
  settings.filter.most_precision = 2;
  settings.filter.warm_up = 0;
  RecommendTask task(
      settings, Arm::bft, split, 7, [](const Backbone&) { return Json(); }, alone);
  task.accumulate_gradients(0);
  task.validation_loss();
  EXPECT_THAT(task.filter()->warning(), HasSubstr("100.0% of the observation precisions of layer 0 are at the bound"));
}

TEST(TrainRecommend, ContradictionsAreRefusedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  RecommendRequest request = request_in(folder.path() / "run");
  request.arms = {"plain", "bft"};
  request.settings.model["norm"] = "post";
  EXPECT_THAT(refusal_of([&] { train_recommend(request, ring_of(60, 23)); }),
              HasSubstr("--arm bft: 'norm' is post; arm bft needs norms before each part"));
  EXPECT_FALSE(std::filesystem::exists(request.out));
}

TEST(TrainRecommend, ACheckpointOfAnotherArmIsRefused) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  RecommendRequest request = request_in(folder.path() / "run");
  request.seeds = 1;
  request.arms = {"bft", "gate"};
  train_recommend(request, split);
  const std::filesystem::path bft = request.out / "bft/seed-3", gate = request.out / "gate/seed-3";
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(bft / file, gate / file, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::remove(gate / experiment::result_name);
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }), HasSubstr("config.json: its sha256 is"));
  // A training state of an earlier version does not know the checksums of its checkpoint.
  training::TrainingState state = training::load_training_state(gate / "training/state.safetensors");
  state.notes.at("task").erase("kept");
  training::save_training_state(gate / "training/state.safetensors", state);
  EXPECT_THAT(refusal_of([&] { train_recommend(request, split); }), HasSubstr("its checkpoint (arm bft) is not of"));
}

TEST(TrainRecommend, AFilterThatNeverActsIsSaid) {
  const TemporaryFolder folder;
  RecommendRequest request = one_seed_in(folder.path() / "run");
  request.arms = {"plain", "bft"};
  const auto said = [&](std::int64_t warm_up) {
    request.out = folder.path() / std::to_string(warm_up);
    request.settings.filter.warm_up = warm_up;
    const gainlens::testing::RecordingListener listener;
    train_recommend(request, ring_of(60, 23));
    return listener.notices();
  };
  EXPECT_THAT(said(23), ::testing::IsEmpty());  // 6 epochs of 4 steps
  EXPECT_THAT(said(24),
              ::testing::ElementsAre(HasSubstr(
                  "warning: --arm bft: the filter does not act in this training: its warm-up takes 24 steps")));
}

TEST(TrainRecommend, NeedsUsersWithAPosition) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal_of([&] {
                train_recommend(request_in(folder.path() / "run"), split_of({{1, 2, 3}}, 3));
              }),
              HasSubstr("no user has two training items"));
  EXPECT_THAT(refusal_of([] { check_arms({"plane"}); }), HasSubstr("did you mean 'plain'"));
  EXPECT_THAT(refusal_of([] { check_arms({"plain", "plain"}); }), HasSubstr("given twice"));
}

TEST(TrainingMemory, GrowsWithTheBatchAndRefusesWhatDoesNotFit) {
  const data::LeaveOneOut split = ring_of(2000, 23);
  Settings settings = small();
  const std::uint64_t one = training_memory(settings, split);
  settings.batch = 1000;
  const std::uint64_t many = training_memory(settings, split);
  EXPECT_GT(many, one);
  settings.batch = 2000000;  // there are only 2,000 users
  EXPECT_LT(training_memory(settings, split), 3 * many);
  check_memory(settings, split, 2);
  settings.model["width"] = 16384;
  settings.model["inner_width"] = 262144;
  settings.model["layers"] = 1000;
  EXPECT_THAT(refusal_of([&] { check_memory(settings, split, 2); }), HasSubstr("no batch fits"));
}

TEST(RecommendSettings, AreReadAsTheyAreWritten) {
  const Settings settings = small();
  const Json document = Json(to_json(settings));
  EXPECT_EQ(document.size(), knobs().size());
  EXPECT_EQ(Json(to_json(settings_of(document, "again"))), document);
  EXPECT_EQ(document["width"], 16);
  EXPECT_EQ(document["loss"], "full");
  const auto refusal = [](const Json& changes) { return refusal_of([&] { settings_of(changes, "f.json"); }); };
  EXPECT_THAT(refusal({{"droput", 0.1}}), HasSubstr("f.json: 'droput' is not a known key; did you mean 'dropout'"));
  EXPECT_THAT(refusal({{"dropout", 1}}), HasSubstr("must be at least 0 and below 1"));
  EXPECT_THAT(refusal({{"dropout", "much"}}), HasSubstr("must be a number"));
  EXPECT_THAT(refusal({{"epochs", 0}}), HasSubstr("must be at least 1"));
  EXPECT_THAT(refusal({{"epochs", 1.5}}), HasSubstr("must be a whole number"));
  EXPECT_THAT(refusal({{"loss", "ful"}}), HasSubstr("must be full or sampled"));
  EXPECT_THAT(refusal({{"embedding_norm", 1}}), HasSubstr("must be true or false"));
  EXPECT_THAT(refusal({{"heads", 3}}), HasSubstr("must divide"));
  EXPECT_THAT(refusal(3), HasSubstr("must be an object"));
  EXPECT_THAT(refusal_of([] { preset("papers"); }), HasSubstr("did you mean 'paper'"));
  EXPECT_THAT(refusal({{"estimator", "sandwich"}, {"initial_precision", "em"}}), HasSubstr("with a likelihood"));
  const Settings tuned = settings_of(preset("beauty-tuned"), "preset");
  EXPECT_EQ(tuned.filter.initial_precision, bft::InitialPrecision::count);
  EXPECT_EQ(tuned.filter.most_precision, 20);
  EXPECT_EQ(tuned.epochs, 300);
}

TEST(SampledSoftmax, DrawsInProportionToCounts) {
  const ItemSampler sampler({0, 30, 10, 0, 59}, 1);  // a count of 0 counts as 1
  const std::vector<double> expected{0.3, 0.1, 0.01, 0.59};
  std::vector<double> found(4);
  for (const std::int64_t id : sampler.draw(100000, 1, 2)) found[static_cast<std::size_t>(id - 1)] += 1e-5;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(found[i], expected[i], 5 * std::sqrt(expected[i] * 1e-5));
    EXPECT_NEAR(sampler.log_probability()[static_cast<std::int64_t>(i)].item<double>(), std::log(expected[i]), 1e-5);
  }
  EXPECT_EQ(sampler.draw(50, 1, 2), sampler.draw(50, 1, 2));
  EXPECT_NE(sampler.draw(50, 1, 2), sampler.draw(50, 1, 3));
}

TEST(SampledSoftmax, WithManyDrawsIsTheFullLoss) {
  at::manual_seed(4);
  const at::Tensor hidden = at::randn({20, 8}, at::kDouble), head = at::randn({50, 8}, at::kDouble);
  const at::Tensor targets = at::randint(50, {20}, at::kLong);
  std::vector<std::int64_t> counts{0};
  for (std::int64_t i = 0; i < 50; ++i) counts.push_back(1 + i % 7);
  const ItemSampler sampler(counts, 1);
  const at::Tensor drawn = at::tensor(sampler.draw(400000, 1, 0), at::kLong) - 1;
  const at::Tensor log_probability = sampler.log_probability().to(at::kDouble);
  const double found = sampled_softmax_loss(hidden, head, targets, drawn, log_probability).item<double>();
  // The drawn targets are left out of their rows. What is left estimates the sum over the other items, and the target
  // stands for 1 / (draws probability) of itself.
  const at::Tensor logits = at::mm(hidden, head.t());
  const at::Tensor of_target = logits.gather(1, targets.unsqueeze(1));
  const at::Tensor others = logits.scatter(1, targets.unsqueeze(1), -INFINITY).logsumexp(1, true);
  const at::Tensor lifted = of_target - log_probability.index_select(0, targets).unsqueeze(1) - std::log(400000.0);
  const double expected = (at::logaddexp(others, lifted) - lifted).mean().item<double>();
  EXPECT_NEAR(found, expected, 0.01);
}

}  // namespace
}  // namespace gainlens::recommend
