#include "runfile/recommend_run.h"

#include "core/check.h"
#include "core/divergence.h"
#include "core/list_metrics.h"
#include "core/ranking_metrics.h"
#include "runfile/hdf5.h"
#include "runfile/trained_run_writer.h"

#include <algorithm>

namespace gainlens::runfile {
namespace {

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const RankingMetric& metric : ranking_metrics()) names.push_back(metric.name());
  return names;
}

Description description_of_curve(const std::string& name) {
  return name == training_loss ? Description{"nats", "mean loss over the training positions of each epoch"}
                               : Description{"1", name + " on the validation items"};
}

const std::vector<double>* validation_ranks_of(const RecommendRun& run, std::size_t place) {
  if (!run.results[place]) return nullptr;
  const auto found = run.results[place]->scores.find(validation_rank_score);
  return found == run.results[place]->scores.end() ? nullptr : &found->second;
}

bool has_validation_ranks(const RecommendRun& run) {
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (validation_ranks_of(run, i) != nullptr) return true;
  }
  return false;
}

void write_run(const hdf5::Handle& file, const RecommendRun& run) {
  TrainedRunWriter writer(file, run, run.unit());
  writer.head(recommend_run_format, recommend_run_version);
  writer.scales();
  const hdf5::Handle items = hdf5::create_group(file.get(), "item");
  writer.integer_scale(items, "item", counted_from_one(std::ssize(run.item_train_count)), "id of the item");
  writer.integers(file, "target", run.target, {"user"}, {"1", "id of the test item"});
  writer.integers(file, "history_length", run.history_length, {"user"}, {"items", "number of items known at the test"});
  writer.integers(file, "training_length", run.training_length, {"user"}, {"items", "number of training items"});
  writer.integers(items, "train_count", run.item_train_count, {"item"},
                  {"1", "how often the training items hold the item"});
  writer.best_epochs();
  writer.curves(curve_names(), description_of_curve);
  writer.filter();
  std::vector<std::pair<std::string, Description>> list_descriptions;
  for (const ListMetric& metric : list_metrics())
    list_descriptions.emplace_back(std::string(metric.name),
                                   Description{std::string(metric.unit), std::string(metric.meaning)});
  writer.tests(metric_names(), "on the test items", list_descriptions);
  writer.score(file, rank_score, H5T_IEEE_F32LE,
               {"1", "rank of the test item among all items, from 1; items with equal scores share ranks"});
  if (!has_validation_ranks(run)) return;
  writer.integers(file, "validation_target", run.validation_target, {"user"}, {"1", "id of the validation item"});
  writer.by_unit(file, validation_rank_score, H5T_IEEE_F32LE, {},
                 [&](std::size_t place) { return validation_ranks_of(run, place); },
                 {"1", "rank of the validation item, by the model that was tested"});
}

void check_result(const TrainedSeed& result) {
  const std::vector<std::string> known = curve_names();
  const std::size_t validation_scores = result.scores.count(validation_rank_score);
  ASSERT(result.scores.size() == 1 + validation_scores && result.scores.contains(rank_score),
         "{} scores; only ranks are wanted", result.scores.size());
  for (const auto& [name, values] : result.curve)
    ASSERT(std::find(known.begin(), known.end(), name) != known.end(), "no curve has the name '{}'", name);
  for (const std::string& name : metric_names()) ASSERT(result.test.contains(name), "a result without {}", name);
}

void check_run(const RecommendRun& run) {
  check_trained_run(run);
  const std::size_t users = run.units.size();
  ASSERT(!run.item_train_count.empty(), "a run without items");
  ASSERT(run.target.size() == users && run.history_length.size() == users && run.training_length.size() == users,
         "users of different numbers");
  ASSERT(!has_validation_ranks(run) || run.validation_target.size() == users, "{} validation items of {} users",
         run.validation_target.size(), users);
  for (const auto& result : run.results) {
    if (result) check_result(*result);
  }
}

}  // namespace

bool have_same_units(const RecommendRun& one, const RecommendRun& other) {
  return one.units == other.units && one.target == other.target;
}

std::vector<std::string> curve_names() {
  std::vector<std::string> names = metric_names();
  names.insert(names.begin(), training_loss);
  return names;
}

std::string divergence_of(const TrainedSeed& seed, std::int64_t items) {
  const auto losses = seed.curve.find(training_loss);
  return losses == seed.curve.end() ? std::string() : divergence(losses->second, items);
}

void write_recommend_run(const std::filesystem::path& path, const RecommendRun& run, std::string_view program_version) {
  check_run(run);
  write_trained_run(path, "Learning curves, test metrics and ranks of recommenders", program_version,
                    [&](const hdf5::Handle& file) { write_run(file, run); });
}

}  // namespace gainlens::runfile
