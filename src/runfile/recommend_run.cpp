#include "runfile/recommend_run.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/divergence.h"
#include "core/ranking_metrics.h"
#include "runfile/hdf5.h"
#include "runfile/recommend_layout.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <system_error>
#include <utility>

namespace gainlens::runfile {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

using Axes = std::vector<std::string>;

std::vector<std::int64_t> counted_from_one(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 1; i <= count; ++i) numbers.push_back(i);
  return numbers;
}

std::int64_t most_epochs(const RecommendRun& run) {
  std::int64_t epochs = 0;
  for (const auto& result : run.results) epochs = std::max(epochs, result ? epochs_of(*result) : 0);
  return epochs;
}

/// Layers of the filter of a result; 0: it has none.
std::int64_t layers_of(const TrainedSeed& seed) {
  return seed.filter.empty() ? 0 : std::ssize(seed.filter.begin()->second) / std::max<std::int64_t>(epochs_of(seed), 1);
}

/// The most layers that a filter has. Variants may have fewer.
std::int64_t filter_layers(const RecommendRun& run) {
  std::int64_t layers = 0;
  for (const auto& result : run.results) layers = std::max(layers, result ? layers_of(*result) : 0);
  return layers;
}

void describe(const hdf5::Handle& object, std::string_view unit, std::string_view meaning) {
  if (!unit.empty()) hdf5::write_attribute(object.get(), "units", unit);
  hdf5::write_attribute(object.get(), "long_name", meaning);
}

/// Writes the datasets of a run with their dimension scales.
class RecommendWriter {
 public:
  RecommendWriter(const hdf5::Handle& file, const RecommendRun& run)
      : file_(file),
        run_(run),
        arms_(std::ssize(run.arms)),
        seeds_(std::ssize(run.seeds)),
        users_(std::ssize(run.users)),
        epochs_(most_epochs(run)),
        layers_(filter_layers(run)) {}

  void write() {
    hdf5::write_attribute(file_.get(), "format", recommend_run_format);
    hdf5::write_attribute(file_.get(), "format_version", recommend_run_version);
    describe(hdf5::write_strings(file_.get(), "request", {run_.request.dump()}, {}), "", "request of the run, as JSON");
    write_scales();
    integers(file_, "target", run_.target, {"user"}, "1", "id of the test item");
    integers(file_, "history_length", run_.history_length, {"user"}, "items", "number of items known at the test");
    integers(file_, "training_length", run_.training_length, {"user"}, "items", "number of training items");
    integers(items_, "train_count", run_.item_train_count, {"item"}, "1", "how often the training items hold the item");
    std::vector<std::int64_t> best;
    for (const auto& result : run_.results) best.push_back(result ? result->best_epoch : -1);
    integers(file_, "best_epoch", best, {"arm", "seed"}, "epochs",
             "epoch whose weights were tested, from 1; 0: an arm without training; -1: not finished");
    if (epochs_ > 0) write_curves();
    if (layers_ > 0) write_filter();
    write_tests();
    write_ranks();
  }

 private:
  void write_scales() {
    const auto text_scale = [&](const std::string& name, const std::vector<std::string>& texts) -> const hdf5::Handle& {
      hdf5::Handle made = hdf5::write_strings(file_.get(), name, texts, {std::ssize(texts)});
      hdf5::make_scale(made, name);
      return scales_[name] = std::move(made);
    };
    describe(text_scale("arm", run_.arms), "", "what was trained or evaluated");
    describe(text_scale("user", run_.users), "", "name of the user");
    seed_scale();
    if (epochs_ > 0)
      integer_scale(file_, "epoch", counted_from_one(epochs_), "number of passes over the training data, from 1");
    if (layers_ > 0) {
      std::vector<std::int64_t> layers(static_cast<std::size_t>(layers_));
      std::iota(layers.begin(), layers.end(), std::int64_t{0});
      integer_scale(file_, "layer", layers, "layer of the model, from 0");
    }
    items_ = hdf5::create_group(file_.get(), "item");
    integer_scale(items_, "item", counted_from_one(std::ssize(run_.item_train_count)), "id of the item");
  }

  /// int64, as long as that holds every seed: readers of the first version know no other type.
  void seed_scale() {
    constexpr std::string_view meaning = "seed of initial weights, data order and dropout";
    if (seeds_fit_int64(run_.seeds))
      integer_scale(file_, "seed", std::vector<std::int64_t>(run_.seeds.begin(), run_.seeds.end()), meaning);
    else
      number_scale(file_, "seed", run_.seeds, H5T_STD_U64LE, H5T_NATIVE_UINT64, meaning);
  }

  void integer_scale(const hdf5::Handle& folder, const std::string& name, const std::vector<std::int64_t>& values,
                     std::string_view meaning) {
    number_scale(folder, name, values, H5T_STD_I64LE, H5T_NATIVE_INT64, meaning);
  }

  template <typename Number>
  void number_scale(const hdf5::Handle& folder, const std::string& name, const std::vector<Number>& values,
                    hid_t disk_type, hid_t memory_type, std::string_view meaning) {
    hdf5::Handle made = hdf5::create_dataset(folder.get(), name, {disk_type, {std::ssize(values)}, {}});
    hdf5::write(made, memory_type, values.data());
    hdf5::make_scale(made, name);
    describe(made, "1", meaning);
    scales_[name] = std::move(made);
  }

  hdf5::Shape shape_of(const Axes& axes) const {
    const std::map<std::string, std::int64_t> sizes = {{"arm", arms_},     {"seed", seeds_},
                                                       {"user", users_},   {"epoch", epochs_},
                                                       {"layer", layers_}, {"item", std::ssize(run_.item_train_count)}};
    hdf5::Shape shape;
    for (const std::string& axis : axes) shape.push_back(sizes.at(axis));
    return shape;
  }

  hdf5::Handle dataset(const hdf5::Handle& folder, const std::string& name, const hdf5::Layout& layout,
                       const Axes& axes) const {
    hdf5::Handle made = hdf5::create_dataset(folder.get(), name, layout);
    for (unsigned i = 0; i < axes.size(); ++i) hdf5::attach_scale(made, scales_.at(axes[i]), i);
    return made;
  }

  void integers(const hdf5::Handle& folder, const std::string& name, const std::vector<std::int64_t>& values,
                const Axes& axes, std::string_view unit, std::string_view meaning) const {
    const hdf5::Handle made = dataset(folder, name, {H5T_STD_I64LE, shape_of(axes), {}}, axes);
    hdf5::write(made, H5T_NATIVE_INT64, values.data());
    describe(made, unit, meaning);
  }

  void doubles(const hdf5::Handle& folder, const std::string& name, const std::vector<double>& values, const Axes& axes,
               std::string_view unit, std::string_view meaning) const {
    const hdf5::Handle made = dataset(folder, name, {H5T_IEEE_F64LE, shape_of(axes), {}}, axes);
    hdf5::write(made, H5T_NATIVE_DOUBLE, values.data());
    describe(made, unit, meaning);
  }

  /// A group in which readers find the scales of its datasets.
  hdf5::Handle group(const std::string& name, const Axes& axes) const {
    hdf5::Handle made = hdf5::create_group(file_.get(), name);
    for (const std::string& axis : axes) hdf5::hard_link(scales_.at(axis), made.get(), axis);
    return made;
  }

  void write_curves() const {
    const Axes axes = {"arm", "seed", "epoch"};
    const hdf5::Handle folder = group("metric", axes);
    for (const std::string& name : curve_names()) {
      bool known = false;
      std::vector<double> values(run_.results.size() * static_cast<std::size_t>(epochs_), missing);
      for (std::size_t i = 0; i < run_.results.size(); ++i) {
        if (!run_.results[i] || !run_.results[i]->curve.contains(name)) continue;
        known = true;
        const std::vector<double>& curve = run_.results[i]->curve.at(name);
        std::copy(curve.begin(), curve.end(), values.begin() + static_cast<std::ptrdiff_t>(i) * epochs_);
      }
      const bool is_loss = name == curve_names().front();
      const std::string meaning =
          is_loss ? "mean loss over the training positions of each epoch" : name + " on the validation items";
      if (known) doubles(folder, name, values, axes, is_loss ? "nats" : "1", meaning);
    }
  }

  void write_filter() const {
    const Axes axes = {"arm", "seed", "epoch", "layer"};
    const hdf5::Handle folder = group("filter", axes);
    for (const FilterCurve& curve : filter_curves()) {
      const std::string name(curve.name);
      std::vector<double> values(run_.results.size() * static_cast<std::size_t>(epochs_ * layers_), missing);
      for (std::size_t i = 0; i < run_.results.size(); ++i) {
        if (!run_.results[i] || run_.results[i]->filter.empty()) continue;
        const std::vector<double>& known = run_.results[i]->filter.at(name);
        const std::int64_t own = layers_of(*run_.results[i]);
        for (std::int64_t epoch = 0; epoch < epochs_of(*run_.results[i]); ++epoch)
          std::copy_n(known.begin() + epoch * own, own,
                      values.begin() + (static_cast<std::ptrdiff_t>(i) * epochs_ + epoch) * layers_);
      }
      doubles(folder, name, values, axes, "1", curve.meaning);
    }
  }

  void write_tests() const {
    const hdf5::Handle folder = group("test", {"arm", "seed"});
    for (const RankingMetric& metric : ranking_metrics()) {
      std::vector<double> values;
      for (const auto& result : run_.results) values.push_back(result ? result->test.at(metric.name()) : missing);
      doubles(folder, metric.name(), values, {"arm", "seed"}, "1", metric.name() + " on the test items");
    }
  }

  void write_ranks() const {
    const hdf5::Handle ranks = dataset(file_, "rank", rank_layout(arms_, seeds_, users_), {"arm", "seed", "user"});
    for (std::size_t i = 0; i < run_.results.size(); ++i) {
      if (!run_.results[i]) continue;
      const auto place = static_cast<std::int64_t>(i);
      hdf5::write_box(ranks, {place / seeds_, place % seeds_, 0}, {1, 1, users_}, H5T_NATIVE_FLOAT,
                      run_.results[i]->rank.data());
    }
    describe(ranks, "1", "rank of the test item among all items, from 1; items with equal scores share ranks");
  }

  const hdf5::Handle& file_;
  const RecommendRun& run_;
  std::int64_t arms_, seeds_, users_, epochs_, layers_;
  hdf5::Handle items_;
  std::map<std::string, hdf5::Handle> scales_;
};

void check_result(const TrainedSeed& result, std::size_t users) {
  const std::vector<std::string> known = curve_names();
  ASSERT(result.rank.size() == users, "{} ranks of {} users", result.rank.size(), users);
  for (const auto& [name, values] : result.curve) {
    ASSERT(std::find(known.begin(), known.end(), name) != known.end(), "no curve has the name '{}'", name);
    ASSERT(std::ssize(values) == epochs_of(result), "curves of {} and {} epochs", values.size(), epochs_of(result));
  }
  for (const auto& [name, values] : result.filter)
    ASSERT(std::ssize(values) == epochs_of(result) * layers_of(result), "a filter of {} numbers", values.size());
  for (const FilterCurve& curve : filter_curves())
    ASSERT(result.filter.empty() || result.filter.contains(std::string(curve.name)), "a filter without {}", curve.name);
  for (const RankingMetric& metric : ranking_metrics())
    ASSERT(result.test.contains(metric.name()), "a result without {}", metric.name());
}

void check_sizes(const RecommendRun& run) {
  const std::size_t users = run.users.size();
  ASSERT(!run.arms.empty() && !run.seeds.empty() && users > 0 && !run.item_train_count.empty(), "an empty run");
  ASSERT(run.results.size() == run.arms.size() * run.seeds.size(), "{} results of {} arms and {} seeds",
         run.results.size(), run.arms.size(), run.seeds.size());
  ASSERT(run.target.size() == users && run.history_length.size() == users && run.training_length.size() == users,
         "users of different numbers");
  for (const auto& result : run.results) {
    if (result) check_result(*result, users);
  }
}

}  // namespace

bool seeds_fit_int64(const std::vector<std::uint64_t>& seeds) {
  return std::all_of(seeds.begin(), seeds.end(), [](std::uint64_t seed) { return std::in_range<std::int64_t>(seed); });
}

std::vector<std::string> curve_names() {
  std::vector<std::string> names = {"training_loss"};
  for (const RankingMetric& metric : ranking_metrics()) names.push_back(metric.name());
  return names;
}

std::int64_t epochs_of(const TrainedSeed& seed) {
  return seed.curve.empty() ? 0 : std::ssize(seed.curve.begin()->second);
}

std::map<std::string, double> validation_of(const TrainedSeed& seed) {
  std::map<std::string, double> found;
  for (const auto& [name, values] : seed.curve)
    if (seed.best_epoch > 0) found[name] = values.at(static_cast<std::size_t>(seed.best_epoch) - 1);
  return found;
}

std::string divergence_of(const TrainedSeed& seed, std::int64_t items) {
  const auto losses = seed.curve.find(curve_names().front());
  return losses == seed.curve.end() ? std::string() : divergence(losses->second, items);
}

const std::vector<FilterCurve>& filter_curves() {
  static const std::vector<FilterCurve> curves = {
      {"precision", "mean precision of the stream before the layer"},
      {"observation_precision", "mean precision of what attention observes"},
      {"gain", "mean Kalman gain"},
      {"process_noise", "mean process noise Q"},
      {"stretch", "mean factor of the variance in the MLP, max((1 + J)^2, 0.01); NaN in the last layer"},
      {"share_at_most", "share of the observation precisions at their upper bound"},
      {"decay", "rho, by which a weight falls with each place of distance"},
      {"share_of_precision_at_most", "share of the precisions before the layer at their upper bound"},
      {"jacobian_energy", "share of the squared singular values that the low-rank Jacobian keeps"},
  };
  return curves;
}

hdf5::Layout rank_layout(std::int64_t arms, std::int64_t seeds, std::int64_t users) {
  constexpr std::int64_t most_in_a_chunk = 1 << 18;  // 1 MiB
  return {H5T_IEEE_F32LE, {arms, seeds, users}, {1, 1, std::min(users, most_in_a_chunk)}};
}

void write_recommend_run(const std::filesystem::path& path, const RecommendRun& run, std::string_view program_version) {
  check_sizes(run);
  TemporaryFile temporary(path);
  try {
    hdf5::write_file(temporary.path(), [&](const hdf5::Handle& file) {
      RecommendWriter(file, run).write();
      hdf5::write_attribute(file.get(), "title", "Learning curves, test metrics and ranks of recommenders");
      if (!program_version.empty()) hdf5::write_attribute(file.get(), "gainlens_version", program_version);
    });
  } catch (const hdf5::Error& error) {
    throw_run_failed("{}: cannot be written: {}; make room and repeat the command, which continues",
                     printable(path.string()), printable(error.what()));
  }
  flush_to_disk(temporary.path());
  temporary.publish();
}

namespace {

/// Whether the request of a run is that of recommenders; empty: it cannot be told, for example because it is broken.
std::optional<bool> asks_for_recommenders(const std::filesystem::path& file) {
  try {
    const Json stored = read_json_file(file);
    if (stored.is_object() && stored.contains("backbone")) return true;
    if (stored.is_object() && stored.contains("statistics_version")) return false;
    return std::nullopt;
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

}  // namespace

bool is_recommend_run(const std::filesystem::path& path) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = folder ? path / run_file_name : path;
  const std::filesystem::path request = path / request_file_name;
  // HDF5 is not asked first: the library crashes on some damaged files.
  if (folder && std::filesystem::exists(request, ignored)) {
    if (const auto told = asks_for_recommenders(request)) return *told;
  }
  try {
    if (!std::filesystem::exists(file, ignored)) return false;
    prove_by_neighbour(file);
    return hdf5::read_text_attribute(hdf5::open_file(file).get(), "format") == recommend_run_format;
  } catch (const hdf5::Error&) {
    return false;
  } catch (const InvalidArgument&) {
    return false;
  }
}

void refuse_recommend_run(const std::filesystem::path& path) {
  CHECK(!is_recommend_run(path),
        "{}: is a recommender run; gainlens report and compare read it, and a run of gainlens sweep is needed here",
        printable(path.string()));
}

}  // namespace gainlens::runfile
