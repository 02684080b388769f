#include "runfile/attention_run.h"

#include "core/check.h"
#include "core/listener.h"
#include "runfile/hdf5.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"
#include "runfile/trained_run_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gainlens::runfile {
namespace {

constexpr std::int64_t max_count = std::int64_t{1} << 31, max_layers = 4096;
constexpr double max_rounding = 1e-5;
constexpr const char* user_axis = "user";

/// Sizes of the axes: the most that a model has. Variants may have fewer.
struct HeadAxes {
  std::int64_t layers = 0, heads = 0;
};

HeadAxes axes_of(const AttentionRun& run) {
  HeadAxes axes;
  for (const auto& swept : run.swept) {
    if (!swept) continue;
    axes.layers = std::max(axes.layers, swept->layers);
    axes.heads = std::max(axes.heads, swept->heads);
  }
  return axes;
}

/// The numbers of a model on the axes of the run: NaN where it has no such head.
std::vector<double> on_axes(const UserAttention& model, const std::vector<double>& values, const HeadAxes& axes) {
  if (model.layers == axes.layers && model.heads == axes.heads) return values;
  std::vector<double> all(static_cast<std::size_t>(model.users * axes.layers * axes.heads),
                          std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t row = 0; row < model.users * model.layers; ++row)
    std::copy_n(values.begin() + row * model.heads, model.heads,
                all.begin() + (row / model.layers * axes.layers + row % model.layers) * axes.heads);
  return all;
}

/// The other way: the heads of a model that have numbers.
void cut_to_heads(UserAttention& model, const HeadAxes& axes) {
  const std::vector<double>& known = model.numbers.find(attention_numbers.front().name)->second;
  const auto has = [&](std::int64_t layer, std::int64_t head) {
    return !std::isnan(known[static_cast<std::size_t>(layer * axes.heads + head)]);
  };
  model.layers = model.heads = 0;
  while (model.layers < axes.layers && has(model.layers, 0)) ++model.layers;
  while (model.heads < axes.heads && has(0, model.heads)) ++model.heads;
  if (model.layers == axes.layers && model.heads == axes.heads) return;
  for (auto& [name, values] : model.numbers) {
    std::vector<double> kept;
    for (std::int64_t user = 0; user < model.users; ++user) {
      for (std::int64_t layer = 0; layer < model.layers; ++layer) {
        const auto first = values.begin() + (user * axes.layers + layer) * axes.heads;
        kept.insert(kept.end(), first, first + model.heads);
      }
    }
    values = std::move(kept);
  }
}

void write_attention(const hdf5::Handle& file, const AttentionRun& run) {
  const HeadAxes axes = axes_of(run);
  TrainedRunWriter writer(file, run, user_axis);
  writer.head(attention_run_format, attention_run_version);
  writer.scales();
  writer.integer_scale(file, "layer", counted_from(0, axes.layers), "layer of the model, from 0");
  writer.integer_scale(file, "head", counted_from(0, axes.heads), "attention head of the layer, from 0");
  const hdf5::Handle items = hdf5::create_group(file.get(), "item");
  writer.integer_scale(items, "item", counted_from(1, std::ssize(run.users.item_train_count)), "id of the item");
  writer.integers(file, "target", run.users.target, {user_axis}, {"1", "id of the test item"});
  writer.integers(file, "last_item", run.last_item, {user_axis}, {"1", "id of the last item known at the test"});
  writer.integers(file, "history_length", run.users.history_length, {user_axis},
                  {"items", "number of items known at the test"});
  writer.integers(file, "training_length", run.users.training_length, {user_axis},
                  {"items", "number of training items"});
  writer.integers(items, "train_count", run.users.item_train_count, {"item"},
                  {"1", "how often the training items hold the item"});
  std::vector<std::int64_t> complete;
  for (const auto& swept : run.swept) complete.push_back(swept ? 1 : 0);
  writer.integers(file, "complete", complete, {"arm", "seed"}, {"1", "1: swept; 0: the training is not finished"});
  const hdf5::Handle folder = writer.group("attention", {"arm", "seed", user_axis, "layer", "head"});
  for (const AttentionNumber& number : attention_numbers) {
    std::vector<double> values;
    writer.by_unit(folder, std::string(number.name), H5T_IEEE_F32LE, {"layer", "head"},
                   [&](std::size_t place) -> const std::vector<double>* {
                     const auto& swept = run.swept[place];
                     if (!swept) return nullptr;
                     values = on_axes(*swept, swept->numbers.find(number.name)->second, axes);
                     return &values;
                   },
                   {std::string(number.unit), std::string(number.meaning)});
  }
}

void check_run(const AttentionRun& run) {
  check_trained_run(run);
  const std::size_t users = run.units.size();
  ASSERT(run.users.users() == users && run.users.history_length.size() == users &&
             run.users.training_length.size() == users && run.last_item.size() == users,
         "users of different numbers");
  ASSERT(run.swept.size() == run.results.size(), "{} sweeps of {} results", run.swept.size(), run.results.size());
  for (std::size_t i = 0; i < run.swept.size(); ++i) {
    const auto& swept = run.swept[i];
    ASSERT(swept.has_value() == run.results[i].has_value(), "result {} and its sweep", i);
    if (!swept) continue;
    ASSERT(swept->users == std::ssize(run.units) && swept->layers > 0 && swept->heads > 0, "a sweep of {} users",
           swept->users);
    for (const AttentionNumber& number : attention_numbers)
      ASSERT(swept->numbers.contains(number.name) &&
                 std::ssize(swept->numbers.find(number.name)->second) == swept->users * swept->layers * swept->heads,
             "numbers '{}' of another size", number.name);
  }
}

/// The numbers of a model lie within their bounds, up to rounding; of what it may lack it has all or none.
void check_numbers(const TrainedRunReader& reader, const AttentionRun& run, std::size_t place) {
  const std::string words = TrainedRunReader::result_in_words(run, place);
  CHECK(run.swept[place]->layers > 0 && run.swept[place]->heads > 0, "{}: {} has no head; the file is damaged",
        reader.where(), words);
  for (const AttentionNumber& number : attention_numbers) {
    const std::vector<double>& values = run.swept[place]->numbers.find(number.name)->second;
    const auto count = std::ranges::count_if(values, [&](double x) {
      return std::isfinite(x) && x >= number.least - max_rounding && x <= number.most + max_rounding;
    });
    const auto missing = std::ranges::count_if(values, [](double x) { return std::isnan(x); });
    CHECK(count == std::ssize(values) || (!number.always && missing == std::ssize(values)),
          "{}: dataset 'attention/{}' has a number of {} that cannot be; the file is damaged", reader.where(),
          number.name, words);
  }
}

void read_users(const TrainedRunReader& reader, AttentionRun& run) {
  UserCounts& users = run.users;
  const hdf5::Shape shape = {std::ssize(run.units)};
  users.item_train_count = reader.integers("item/train_count", {reader.size_of("item/train_count")}, 0, max_count);
  const std::int64_t items = std::ssize(users.item_train_count);
  users.target = reader.integers("target", shape, 1, items);
  run.last_item = reader.integers("last_item", shape, 1, items);
  users.history_length = reader.integers("history_length", shape, 1, max_count);
  users.training_length = reader.integers("training_length", shape, 1, max_count);
}

AttentionRun attention_run_of(const TrainedRunReader& reader) {
  AttentionRun run;
  reader.check_format(RunKind::recommender_sweep, attention_run_version);
  reader.axes(run, user_axis);
  reader.require(run.request.contains("backbone") && run.request.at("backbone").is_string(), "text 'backbone'");
  reader.check_names(run);
  read_users(reader, run);
  for (const std::int64_t complete : reader.integers("complete", {std::ssize(run.arms), std::ssize(run.seeds)}, 0, 1)) {
    auto& result = run.results.emplace_back();
    if (complete == 1) result.emplace();
  }
  const HeadAxes axes{reader.size_of("layer"), reader.size_of("head")};
  CHECK(axes.layers <= max_layers && axes.heads <= max_layers, "{}: {} layers of {} heads; the file is damaged",
        reader.where(), axes.layers, axes.heads);
  run.swept.resize(run.results.size());
  for (std::size_t i = 0; i < run.swept.size(); ++i) {
    if (run.results[i]) run.swept[i] = UserAttention{std::ssize(run.units), axes.layers, axes.heads, {}};
  }
  for (const AttentionNumber& number : attention_numbers) {
    reader.by_unit(run, fmt::format("attention/{}", number.name), H5T_IEEE_F32LE, {axes.layers, axes.heads},
                   [&](std::size_t place) {
                     return run.swept[place] ? &run.swept[place]->numbers[std::string(number.name)] : nullptr;
                   });
  }
  for (std::size_t i = 0; i < run.swept.size(); ++i) {
    if (!run.swept[i]) continue;
    cut_to_heads(*run.swept[i], axes);
    check_numbers(reader, run, i);
  }
  return run;
}

}  // namespace

void write_attention_run(const std::filesystem::path& path, const AttentionRun& run, std::string_view program_version) {
  check_run(run);
  write_trained_run(path, "What the attention of recommenders rests on, for each user and head", program_version,
                    [&](const hdf5::Handle& file) { write_attention(file, run); });
}

AttentionRun read_attention_run(const std::filesystem::path& path) {
  AttentionRun run;
  read_trained_run(path, RunKind::recommender_sweep,
                   [&](const TrainedRunReader& reader) { run = attention_run_of(reader); });
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / run_file_name : path;
  if (!std::filesystem::exists(checksum_file_of(file))) tell_warning("{}: {}", printable(path.string()), no_checksum);
  return run;
}

}  // namespace gainlens::runfile
