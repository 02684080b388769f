
#include "core/check.h"
#include "core/checked.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"
#include "runfile/trained_run_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace gainlens::runfile {
namespace {

constexpr std::uint64_t max_bytes_of_texts = std::uint64_t{1} << 30;
constexpr std::int64_t max_int64_value = std::numeric_limits<std::int64_t>::max();

/// Removes the layers behind the last one in which a curve has a number. @param layers  of each curve
void cut_to_layers(std::map<std::string, std::vector<double>>& filter, std::int64_t layers) {
  std::int64_t own = 0;
  for (const auto& [name, values] : filter) {
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
      if (!std::isnan(values[static_cast<std::size_t>(i)])) own = std::max(own, i % layers + 1);
  }
  for (auto& [name, values] : filter) {
    std::vector<double> kept;
    for (std::int64_t i = 0; i < std::ssize(values); ++i)
      if (i % layers < own) kept.push_back(values[static_cast<std::size_t>(i)]);
    values = std::move(kept);
  }
}

}  // namespace

void TrainedRunReader::check_format(RunKind kind, std::int64_t version) const {
  const RunMark& needed = mark_of(kind);
  const auto found = hdf5::read_text_attribute(file_.get(), "format");
  CHECK(found, "{}: has no attribute 'format'; it is not a run of gainlens", where_);
  for (const RunMark& mark : run_marks())
    CHECK(mark.instead_of_others.empty() || *found != mark.attribute, "{}: {}", where_,
          fmt::format(fmt::runtime(mark.instead_of_others), needed.words));
  CHECK(*found == needed.attribute, "{}: its format is '{}'; {} ('{}') is needed here", where_, printable(*found),
        needed.words, needed.attribute);
  const auto found_version = hdf5::read_integer_attribute(file_.get(), "format_version");
  CHECK(found_version == version, "{}: its format version is {}; this gainlens reads version {}", where_,
        found_version ? std::to_string(*found_version) : "missing", version);
}

void TrainedRunReader::axes(TrainedRun& run, const std::string& unit) const {
  run.request =
      parse_json(hdf5::read_strings(file_.get(), "request", {}, max_bytes_of_texts).front(), where_ + ": /request");
  run.arms = texts("arm");
  run.seeds = seeds();
  run.units = texts(unit);
  const Json& request = run.request;
  require(request.is_object() && request.contains("data") && request.at("data").is_object(), "object 'data'");
  const Json& data = request.at("data");
  for (const char* key : {"name", "split"})
    require(data.contains(key) && data.at(key).is_string(), fmt::format("text 'data.{}'", key));
}

void TrainedRunReader::check_names(const TrainedRun& run) const {
  for (const std::string& arm : run.arms)
    CHECK(!arm.empty() && printable(arm) == arm, "{}: the arm '{}' has no usable name", where_, printable(arm));
  CHECK(std::set(run.arms.begin(), run.arms.end()).size() == run.arms.size(), "{}: two arms have one name", where_);
  CHECK(std::set(run.seeds.begin(), run.seeds.end()).size() == run.seeds.size(), "{}: a seed stands twice", where_);
}

std::int64_t TrainedRunReader::size_of(const std::string& path) const {
  const hdf5::Shape shape = hdf5::shape_at(file_.get(), path);
  CHECK(shape.size() == 1 && shape[0] > 0,
        "{}: dataset '{}' has {} axes and the size {}; expected 1 axis and at "
        "least 1 entry",
        where_, path, shape.size(), shape.empty() ? 0 : shape[0]);
  return shape[0];
}

std::vector<std::string> TrainedRunReader::texts(const std::string& path) const {
  return hdf5::read_strings(file_.get(), path, {size_of(path)}, max_bytes_of_texts);
}

std::vector<std::int64_t> TrainedRunReader::integers(const std::string& path, const hdf5::Shape& shape,
                                                     std::int64_t least, std::int64_t most) const {
  const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), path, {H5T_STD_I64LE, shape, {}});
  std::vector<std::int64_t> values(static_cast<std::size_t>(checked_elements(shape, path)));
  hdf5::read(dataset, H5T_NATIVE_INT64, values.data());
  for (const std::int64_t value : values)
    CHECK(value >= least && value <= most, "{}: dataset '{}' holds {}; must be {} to {}", where_, path, value, least,
          most);
  return values;
}

/// int64, or uint64 where a seed needs it.
std::vector<std::uint64_t> TrainedRunReader::seeds() const {
  const hdf5::Shape shape = {size_of("seed")};
  if (!hdf5::has_type(hdf5::open_any(file_.get(), "seed"), H5T_STD_U64LE)) {
    const std::vector<std::int64_t> small = integers("seed", shape, 0, max_int64_value);
    return {small.begin(), small.end()};
  }
  const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), "seed", {H5T_STD_U64LE, shape, {}});
  std::vector<std::uint64_t> values(static_cast<std::size_t>(checked_elements(shape, "seed")));
  hdf5::read(dataset, H5T_NATIVE_UINT64, values.data());
  return values;
}

std::vector<double> TrainedRunReader::doubles(const std::string& path, const hdf5::Shape& shape) const {
  const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), path, {H5T_IEEE_F64LE, shape, {}});
  std::vector<double> values(static_cast<std::size_t>(checked_elements(shape, path)));
  hdf5::read(dataset, H5T_NATIVE_DOUBLE, values.data());
  return values;
}

void TrainedRunReader::require(bool condition, std::string_view wanted) const {
  CHECK(condition, "{}: /request has no {}; the file is damaged", where_, wanted);
}

std::int64_t TrainedRunReader::epochs() const {
  return hdf5::has_object(file_.get(), "epoch") ? size_of("epoch") : 0;
}

bool TrainedRunReader::has(const std::string& path) const {
  return hdf5::has_object(file_.get(), path);
}

void TrainedRunReader::best_epochs(TrainedRun& run) const {
  for (const std::int64_t best : integers("best_epoch", {std::ssize(run.arms), std::ssize(run.seeds)}, -1, epochs())) {
    auto& result = run.results.emplace_back();
    if (best >= 0) result.emplace().best_epoch = best;
  }
}

void TrainedRunReader::score(TrainedRun& run, const std::string& dataset, const std::string& name, hid_t type) const {
  by_unit(run, dataset, type, {},
          [&](std::size_t place) { return run.results[place] ? &run.results[place]->scores[name] : nullptr; });
}

void TrainedRunReader::by_unit(const TrainedRun& run, const std::string& dataset, hid_t type, const hdf5::Shape& more,
                               const std::function<std::vector<double>*(std::size_t place)>& into) const {
  const std::int64_t seeds = std::ssize(run.seeds);
  hdf5::Shape shape = {std::ssize(run.arms), seeds, std::ssize(run.units)};
  shape.insert(shape.end(), more.begin(), more.end());
  const hdf5::Handle opened = hdf5::open_dataset(file_.get(), dataset, layout_by_unit(type, shape));
  hdf5::check_content(opened, shape, dataset);
  hdf5::Shape offset(shape.size(), 0), count = shape;
  count[0] = count[1] = 1;
  for (std::size_t i = 0; i < run.arms.size() * run.seeds.size(); ++i) {
    std::vector<double>* const own = into(i);
    if (own == nullptr) continue;
    own->resize(static_cast<std::size_t>(checked_elements(count, dataset)));
    offset[0] = static_cast<std::int64_t>(i) / seeds;
    offset[1] = static_cast<std::int64_t>(i) % seeds;
    hdf5::read_box(opened, offset, count, H5T_NATIVE_DOUBLE, own->data());
  }
}

void TrainedRunReader::tests(TrainedRun& run, const std::vector<std::string>& names,
                             const std::vector<std::string>& more) const {
  const auto read = [&](const std::string& name, bool may_lack) {
    const std::vector<double> values = doubles("test/" + name, {std::ssize(run.arms), std::ssize(run.seeds)});
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!run.results[i] || (may_lack && std::isnan(values[i]))) continue;
      CHECK(!may_lack || (std::isfinite(values[i]) && values[i] >= 0),
            "{}: dataset 'test/{}' holds {}; must be a number from 0", where_, name, values[i]);
      run.results[i]->test[name] = values[i];
    }
  };
  for (const std::string& name : names) read(name, false);
  for (const std::string& name : more)
    if (has("test/" + name)) read(name, true);
}

void TrainedRunReader::curves(TrainedRun& run, const std::vector<std::string>& names) const {
  const std::int64_t count = epochs();
  if (count == 0) return;
  for (const std::string& name : names) {
    if (has("metric/" + name)) curve(run, name, count);
  }
  if (has("filter")) filter(run, count);
}

void TrainedRunReader::curve(TrainedRun& run, const std::string& name, std::int64_t epochs) const {
  const std::vector<double> values = doubles("metric/" + name, {std::ssize(run.arms), std::ssize(run.seeds), epochs});
  for (std::size_t i = 0; i < run.results.size(); ++i) {
    if (!run.results[i] || run.results[i]->best_epoch == 0) continue;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(i) * epochs, end = first + epochs;
    const auto last = std::find_if(first, end, [](double value) { return std::isnan(value); });
    CHECK(std::all_of(first, last, [](double value) { return std::isfinite(value); }) &&
              std::all_of(last, end, [](double value) { return std::isnan(value); }),
          "{}: dataset 'metric/{}' is not finite in an epoch of a finished seed; the file is damaged", where_, name);
    if (first != last) run.results[i]->curve[name] = std::vector<double>(first, last);
  }
}

void TrainedRunReader::filter(TrainedRun& run, std::int64_t epochs) const {
  const std::int64_t layers = size_of("layer");
  for (const FilterCurve& curve : filter_curves()) {
    const std::string name(curve.name);
    if (curve.came_later && !hdf5::has_object(file_.get(), "filter/" + name)) continue;
    const std::vector<double> values =
        doubles("filter/" + name, {std::ssize(run.arms), std::ssize(run.seeds), epochs, layers});
    CHECK(std::none_of(values.begin(), values.end(), [](double value) { return std::isinf(value); }),
          "{}: dataset 'filter/{}' holds infinity; the file is damaged", where_, name);
    const auto size = static_cast<std::ptrdiff_t>(epochs * layers);
    for (std::size_t i = 0; i < run.results.size(); ++i) {
      if (!run.results[i] || run.results[i]->curve.empty()) continue;
      const auto own = std::ssize(run.results[i]->curve.begin()->second);
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i) * size;
      run.results[i]->filter[name] = std::vector<double>(first, first + static_cast<std::ptrdiff_t>(own * layers));
    }
  }
  // An arm without a filter has no number at all.
  for (auto& result : run.results) {
    if (result && std::all_of(result->filter.begin(), result->filter.end(), [](const auto& curve) {
          return std::all_of(curve.second.begin(), curve.second.end(), [](double x) { return std::isnan(x); });
        }))
      result->filter.clear();
    if (result) complete_filter(result->filter);
  }
  // Variants may have fewer layers than others: theirs end before the last one that has a number.
  if (!run.request.contains("variants")) return;
  for (auto& result : run.results) {
    if (result && !result->filter.empty()) cut_to_layers(result->filter, layers);
  }
}

void TrainedRunReader::check_curves(const TrainedRun& run, std::size_t place) const {
  const TrainedSeed& result = *run.results[place];
  const std::string words = result_in_words(run, place);
  for (const auto& [name, values] : result.curve)
    CHECK(std::ssize(values) >= result.best_epoch && values.size() == result.curve.begin()->second.size(),
          "{}: dataset 'metric/{}' has {} epochs for {}; other curves have {}, and epoch {} is the best", where_, name,
          values.size(), words, result.curve.begin()->second.size(), result.best_epoch);
  CHECK(result.best_epoch == 0 || !result.curve.empty(), "{}: {} has no learning curve", where_, words);
}

void TrainedRunReader::check_metric(const TrainedRun& run, std::size_t place, const std::string& name, double found,
                                    std::string_view scores) const {
  const double stored = run.results[place]->test.at(name);
  CHECK(std::abs(stored - found) <= max_rounding_of_metric * std::max(1.0, std::abs(found)),
        "{}: dataset 'test/{}' holds {} for {}, and the {} give {}; the file is damaged", where_, name, stored,
        result_in_words(run, place), scores, found);
}

std::string TrainedRunReader::result_in_words(const TrainedRun& run, std::size_t place) {
  return fmt::format("arm {}, seed {}", run.arms[place / run.seeds.size()], run.seeds[place % run.seeds.size()]);
}

void read_trained_run(const std::filesystem::path& path, RunKind kind,
                      const std::function<void(const TrainedRunReader&)>& read) {
  const RunMark& mark = mark_of(kind);
  const bool folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = folder ? path / run_file_name : path;
  CHECK(std::filesystem::exists(file), "{}: {}", printable(path.string()),
        !folder ? "no such file or folder; give a run folder or its run.h5"
        : is_run_of(path, kind)
            ? fmt::format("has no run.h5: the training has not finished; repeat its `{}` command with the same "
                          "--out, which continues",
                          mark.command)
            : fmt::format("has no run.h5; give the folder that {} wrote", mark.command));
  prove_by_neighbour(file);
  try {
    const hdf5::Handle opened = hdf5::open_file(file);
    read(TrainedRunReader(printable(file.string()), opened));
  } catch (const hdf5::Error& error) {
    const std::string_view words = mark.words.substr(mark.words.find(' ') + 1);  // "recommender run"
    throw_invalid("{}: {}; it is damaged or not a {} (repeating its `{}` command writes run.h5 again)",
                  printable(file.string()), printable(error.what()), words, mark.command);
  }
}

}  // namespace gainlens::runfile
