#include "core/json.h"
#include "experiment/result_file.h"
#include "formats/tensor_file.h"
#include "recommend/finished_seeds.h"
#include "recommend/recommender_checkpoint.h"
#include "recommend/small_data.h"
#include "recommend/small_training.h"
#include "recommend/train_recommend.h"
#include "runfile/recommend_run.h"
#include "runfile/run_proof.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"
#include "training/training_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::recommend {
namespace train_recommend_files_test {

using gainlens::testing::bytes_of;
using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_file;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Changes the last bit of the byte at `place`; negative places count from the end.
void flip(const std::filesystem::path& file, std::ptrdiff_t place) {
  std::string bytes = bytes_of(file);
  bytes[place < 0 ? bytes.size() - static_cast<std::size_t>(-place) : static_cast<std::size_t>(place)] ^= 1;
  write_file(file, bytes);
}

TEST(TrainRecommendFiles, AChangedFileOfAFinishedTrainingIsNamedAndRestored) {
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
        write_file(file, "");
      if (damage == std::string("flipped")) {
        write_file(file, whole);
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

TEST(TrainRecommendFiles, FilesOfAnotherRequestAreNotTaken) {
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

TEST(TrainRecommendFiles, ACheckpointThatChangedBeforeTheEndIsNamed) {
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

TEST(TrainRecommendFiles, ACheckpointOfAnotherArmIsRefused) {
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

TEST(TrainRecommendFiles, TakesNoFolderWithForeignFiles) {
  const TemporaryFolder folder;
  RecommendRequest request = one_seed_in(folder.path() / "run");
  std::filesystem::create_directory(request.out);
  write_file(request.out / "thesis.txt", "precious");
  EXPECT_THAT(refusal_of([&] { train_recommend(request, ring_of(60, 23)); }),
              HasSubstr("is not empty and not a run (it holds 'thesis.txt' and no request.json)"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(request.out), {}), 1);
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
  write_file(file, document.dump(2) + "\n");
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

TEST(TrainRecommendFiles, ARunFromBeforeAnOptionIsContinued) {
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
      EXPECT_EQ(left.results[i]->scores.at("rank"), right.results[i]->scores.at("rank"));
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

TEST(TrainRecommendFiles, ResultsOfEarlierVersionsAreReadAndTheirMetricsChecked) {
  const TemporaryFolder folder;
  const data::LeaveOneOut split = ring_of(60, 23);
  const RecommendRequest request = one_seed_in(folder.path() / "run");
  train_recommend(request, split);
  EXPECT_EQ(read_proven_run(request.out).compared, 1u);
  EXPECT_EQ(read_proven_run(request.out).unproven, "");
  EXPECT_THAT(read_proven_run(request.out / "run.h5").unproven, StartsWith("run.h5 was given without its folder"));
  std::filesystem::rename(request.out / "run.h5.sha256", folder.path() / "sum");
  EXPECT_EQ(read_proven_run(request.out).unproven, runfile::no_checksum);
  EXPECT_THAT(read_proven_run(request.out / "run.h5").unproven,
              StartsWith(std::string(runfile::no_checksum) + " run.h5 was given without its folder"));
  std::filesystem::rename(folder.path() / "sum", request.out / "run.h5.sha256");
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

}  // namespace train_recommend_files_test
}  // namespace gainlens::recommend
