#include "core/check.h"
#include "core/checked.h"
#include "core/list_metrics.h"
#include "core/ranking_metrics.h"
#include "runfile/recommend_run.h"
#include "runfile/trained_run_reader.h"

#include <algorithm>
#include <cmath>

namespace gainlens::runfile {
namespace {

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
  reader.check_format(recommend_run_format, recommend_run_version, "a recommender run");
  reader.axes(run, run.unit());
  run.item_train_count = reader.integers("item/train_count", {reader.size_of("item/train_count")}, 0, max_count);
  check_request(reader, run);
  read_users(reader, run);
  reader.check_names(run);
  reader.best_epochs(run);
  reader.score(run, rank_score, rank_score, H5T_IEEE_F32LE);
  read_validation(reader, run);
  std::vector<std::string> metrics;
  for (const RankingMetric& metric : ranking_metrics()) metrics.push_back(metric.name());
  std::vector<std::string> list_names;
  for (const ListMetric& metric : list_metrics()) list_names.emplace_back(metric.name);
  reader.tests(run, metrics, list_names);
  reader.curves(run, curve_names());
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i]) continue;
    check_ranks(reader, run, i);
    reader.check_curves(run, i);
  }
  return run;
}

}  // namespace

RecommendRun read_recommend_run(const std::filesystem::path& path) {
  RecommendRun run;
  read_trained_run(path, "gainlens train recommend", "recommender run", RunKind::recommenders,
                   [&](const TrainedRunReader& reader) { run = read_run(reader); });
  return run;
}

}  // namespace gainlens::runfile
