#include "runfile/recommend_run.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/divergence.h"
#include "core/list_metrics.h"
#include "core/ranking_metrics.h"
#include "runfile/hdf5.h"
#include "runfile/trained_run_file.h"

#include <algorithm>
#include <cmath>

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
  writer.integer_scale(items, "item", counted_from(1, std::ssize(run.item_train_count)), "id of the item");
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

constexpr std::int64_t max_count = std::int64_t{1} << 31, max_items = std::int64_t{1} << 53;

void check_request(const TrainedRunReader& reader, const RecommendRun& run) {
  const Json& request = run.request;
  reader.require(request.contains("backbone") && request.at("backbone").is_string(), "text 'backbone'");
  reader.require(request.contains("training") && request.at("training").is_object(), "object 'training'");
  const Json& data = request.at("data");
  reader.require(data.contains("format") && data.at("format").is_string(), "text 'data.format'");
  for (const char* key : {"users", "items", "interactions"})
    reader.require(data.contains(key) && data.at(key).is_number_integer(), fmt::format("whole number 'data.{}'", key));
  CHECK(data.at("users") == run.units.size() && data.at("items") == run.item_train_count.size(),
        "{}: holds {} users and {} items, and /request says {} and {}; the file is damaged", reader.where(),
        run.units.size(), run.item_train_count.size(), data.at("users").dump(), data.at("items").dump());
}

void read_users(const TrainedRunReader& reader, RecommendRun& run) {
  const std::string& where = reader.where();
  const hdf5::Shape shape = {std::ssize(run.units)};
  run.target = reader.integers("target", shape, 1, std::ssize(run.item_train_count));
  run.history_length = reader.integers("history_length", shape, 1, max_count);
  run.training_length = reader.integers("training_length", shape, 1, max_count);
  for (std::size_t user = 0; user < run.units.size(); ++user)
    CHECK(run.training_length[user] <= run.history_length[user],
          "{}: user {} has {} training items of {} known items; the file is damaged", where, user,
          run.training_length[user], run.history_length[user]);
  const auto sum = [&](const std::vector<std::int64_t>& values) {
    std::int64_t total = 0;
    for (const std::int64_t value : values) total = checked_add(total, value, where);
    return total;
  };
  const Json& data = run.request.at("data");
  std::int64_t untested = 0;
  if (data.contains("untested_items")) {
    CHECK(data.at("untested_items").is_number_unsigned() && data.at("untested_items") <= max_items,
          "{}: 'untested_items' of the request is {}; must be a whole number", where,
          printable(data.at("untested_items").dump(), 40));
    untested = data.at("untested_items").get<std::int64_t>();
  }
  const std::int64_t user_total = checked_add(sum(run.training_length), untested, where);
  CHECK(user_total == sum(run.item_train_count),
        "{}: users have {} training items, and items are in training {} times; the file is damaged", where, user_total,
        sum(run.item_train_count));
}

/// @param name  of the ranks: rank_score or validation_rank_score
void check_range(const TrainedRunReader& reader, const RecommendRun& run, std::size_t place, const char* name) {
  const auto items = static_cast<double>(run.item_train_count.size());
  for (const double rank : run.results[place]->scores.at(name))
    CHECK(rank >= 1 && rank <= items && std::floor(2 * rank) == 2 * rank,
          "{}: dataset '{}' holds {} for {}; must be 1 to {} in steps of a half", reader.where(), name, rank,
          TrainedRunReader::result_in_words(run, place), items);
}

/// The ranks of validation items, where the file and a result have them.
void read_validation(const TrainedRunReader& reader, RecommendRun& run) {
  if (!reader.has(validation_rank_score)) return;
  run.validation_target =
      reader.integers("validation_target", {std::ssize(run.units)}, 1, std::ssize(run.item_train_count));
  reader.score(run, validation_rank_score, validation_rank_score, H5T_IEEE_F32LE);
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i]) continue;
    const auto ranks = run.results[i]->scores.find(validation_rank_score);
    if (std::ranges::all_of(ranks->second, [](double rank) { return std::isnan(rank); }))
      run.results[i]->scores.erase(ranks);  // of an earlier version
    else
      check_range(reader, run, i, validation_rank_score);
  }
}

void check_ranks(const TrainedRunReader& reader, const RecommendRun& run, std::size_t place) {
  check_range(reader, run, place, rank_score);
  const std::vector<double>& ranks = ranks_of(*run.results[place]);
  for (const RankingMetric& metric : ranking_metrics())
    reader.check_metric(run, place, metric.name(), mean_of(metric, ranks), "ranks");
}

RecommendRun read_run(const TrainedRunReader& reader) {
  RecommendRun run;
  reader.check_format(RunKind::recommenders, recommend_run_version);
  reader.axes(run, run.unit());
  run.item_train_count = reader.integers("item/train_count", {reader.size_of("item/train_count")}, 0, max_count);
  check_request(reader, run);
  read_users(reader, run);
  reader.check_names(run);
  reader.best_epochs(run);
  reader.score(run, rank_score, rank_score, H5T_IEEE_F32LE);
  read_validation(reader, run);
  std::vector<std::string> list_names;
  for (const ListMetric& metric : list_metrics()) list_names.emplace_back(metric.name);
  reader.tests(run, metric_names(), list_names);
  reader.curves(run, curve_names());
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i]) continue;
    check_ranks(reader, run, i);
    reader.check_curves(run, i);
  }
  return run;
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

RecommendRun read_recommend_run(const std::filesystem::path& path) {
  RecommendRun run;
  read_trained_run(path, RunKind::recommenders, [&](const TrainedRunReader& reader) { run = read_run(reader); });
  return run;
}

RecommendRun on_validation_items(const RecommendRun& run, const std::string& where) {
  RecommendRun changed = run;
  changed.target = run.validation_target;
  changed.history_length = run.training_length;  // the validation item is not known yet
  for (std::size_t i = 0; i < changed.results.size(); ++i) {
    if (!changed.results[i]) continue;
    TrainedSeed& result = *changed.results[i];
    const auto ranks = result.scores.find(validation_rank_score);
    CHECK(ranks != result.scores.end() && !run.validation_target.empty(),
          "{}: {}, seed {}, has no ranks of validation items, which earlier versions did not store; delete {} in its "
          "folder and repeat its gainlens train recommend command, which computes them",
          where, printable(run.arms[i / run.seeds.size()], 60), run.seeds[i % run.seeds.size()], "result.safetensors");
    result.scores = {{rank_score, ranks->second}};
    result.test.clear();
    for (const RankingMetric& metric : ranking_metrics())
      result.test[metric.name()] = mean_of(metric, ranks_of(result));
  }
  return changed;
}

}  // namespace gainlens::runfile
