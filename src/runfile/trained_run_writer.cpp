#include "runfile/trained_run_file.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/checked.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace gainlens::runfile {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

std::int64_t max_epochs(const TrainedRun& run) {
  std::int64_t epochs = 0;
  for (const auto& result : run.results) epochs = std::max(epochs, result ? epochs_of(*result) : 0);
  return epochs;
}

/// Layers of the filter of a result; 0: it has none.
std::int64_t layers_of(const TrainedSeed& seed) {
  return seed.filter.empty() ? 0 : std::ssize(seed.filter.begin()->second) / std::max<std::int64_t>(epochs_of(seed), 1);
}

/// The most layers that a filter has. Variants may have fewer.
std::int64_t filter_layers(const TrainedRun& run) {
  std::int64_t layers = 0;
  for (const auto& result : run.results) layers = std::max(layers, result ? layers_of(*result) : 0);
  return layers;
}

void describe(const hdf5::Handle& object, const Description& description) {
  if (!description.measure.empty()) hdf5::write_attribute(object.get(), "units", description.measure);
  hdf5::write_attribute(object.get(), "long_name", description.meaning);
}

void check_result(const TrainedSeed& result, std::size_t units) {
  for (const auto& [name, values] : result.scores)
    ASSERT(values.size() == units, "{} scores '{}' of {} units", values.size(), name, units);
  for (const auto& [name, values] : result.curve)
    ASSERT(std::ssize(values) == epochs_of(result), "curves of {} and {} epochs", values.size(), epochs_of(result));
  for (const auto& [name, values] : result.filter)
    ASSERT(std::ssize(values) == epochs_of(result) * layers_of(result), "a filter of {} numbers", values.size());
  for (const FilterCurve& curve : filter_curves())
    ASSERT(result.filter.empty() || result.filter.contains(std::string(curve.name)), "a filter without {}", curve.name);
}

}  // namespace

std::vector<std::int64_t> counted_from(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

hdf5::Layout layout_by_unit(hid_t type, const hdf5::Shape& shape) {
  constexpr std::int64_t max_chunk_values = 1 << 18;  // 1 MiB of float32
  hdf5::Shape chunk = shape;
  chunk[0] = chunk[1] = 1;
  std::int64_t unit_values = 1;
  for (std::size_t i = 3; i < shape.size(); ++i) unit_values = checked_mul(unit_values, shape[i], "a dataset by units");
  chunk[2] = std::min(shape[2], std::max<std::int64_t>(max_chunk_values / std::max<std::int64_t>(unit_values, 1), 1));
  return {type, shape, chunk};
}

bool seeds_fit_int64(const std::vector<std::uint64_t>& seeds) {
  return std::all_of(seeds.begin(), seeds.end(), [](std::uint64_t seed) { return std::in_range<std::int64_t>(seed); });
}

TrainedRunWriter::TrainedRunWriter(const hdf5::Handle& file, const TrainedRun& run, std::string unit)
    : file_(file),
      run_(run),
      unit_(std::move(unit)),
      seeds_(std::ssize(run.seeds)),
      epochs_(max_epochs(run)),
      layers_(filter_layers(run)) {}

void TrainedRunWriter::head(std::string_view format, std::int64_t version) {
  hdf5::write_attribute(file_.get(), "format", format);
  hdf5::write_attribute(file_.get(), "format_version", version);
  describe(hdf5::write_strings(file_.get(), "request", {run_.request.dump()}, {}), {"", "request of the run, as JSON"});
}

void TrainedRunWriter::scales() {
  text_scale("arm", run_.arms, "what was trained or evaluated");
  text_scale(unit_, run_.units, "name of the " + unit_);
  // int64, as long as that holds every seed: readers of the first version know no other type.
  constexpr std::string_view meaning = "seed of initial weights, data order and dropout";
  if (seeds_fit_int64(run_.seeds))
    integer_scale(file_, "seed", std::vector<std::int64_t>(run_.seeds.begin(), run_.seeds.end()), meaning);
  else
    number_scale(file_, "seed", run_.seeds, H5T_STD_U64LE, H5T_NATIVE_UINT64, meaning);
  if (epochs_ > 0)
    integer_scale(file_, "epoch", counted_from(1, epochs_), "number of passes over the training data, from 1");
  if (layers_ > 0) integer_scale(file_, "layer", counted_from(0, layers_), "layer of the model, from 0");
}

void TrainedRunWriter::text_scale(const std::string& name, const std::vector<std::string>& texts,
                                  std::string_view meaning) {
  hdf5::Handle made = hdf5::write_strings(file_.get(), name, texts, {std::ssize(texts)});
  hdf5::make_scale(made, name);
  describe(made, {"", std::string(meaning)});
  sizes_[name] = std::ssize(texts);
  scales_[name] = std::move(made);
}

void TrainedRunWriter::texts(const std::string& name, const std::vector<std::string>& texts, const std::string& axis,
                             std::string_view meaning) const {
  const hdf5::Handle made = hdf5::write_strings(file_.get(), name, texts, shape_of({axis}));
  hdf5::attach_scale(made, scales_.at(axis), 0);
  describe(made, {"", std::string(meaning)});
}

void TrainedRunWriter::integer_scale(const hdf5::Handle& folder, const std::string& name,
                                     const std::vector<std::int64_t>& values, std::string_view meaning) {
  number_scale(folder, name, values, H5T_STD_I64LE, H5T_NATIVE_INT64, meaning);
}

template <typename Number>
void TrainedRunWriter::number_scale(const hdf5::Handle& folder, const std::string& name,
                                    const std::vector<Number>& values, hid_t disk_type, hid_t memory_type,
                                    std::string_view meaning) {
  hdf5::Handle made = hdf5::create_dataset(folder.get(), name, {disk_type, {std::ssize(values)}, {}});
  hdf5::write(made, memory_type, values.data());
  hdf5::make_scale(made, name);
  describe(made, {"1", std::string(meaning)});
  sizes_[name] = std::ssize(values);
  scales_[name] = std::move(made);
}

hdf5::Shape TrainedRunWriter::shape_of(const Axes& axes) const {
  hdf5::Shape shape;
  for (const std::string& axis : axes) shape.push_back(sizes_.at(axis));
  return shape;
}

hdf5::Handle TrainedRunWriter::dataset(const hdf5::Handle& folder, const std::string& name, const hdf5::Layout& layout,
                                       const Axes& axes) const {
  hdf5::Handle made = hdf5::create_dataset(folder.get(), name, layout);
  for (unsigned i = 0; i < axes.size(); ++i) hdf5::attach_scale(made, scales_.at(axes[i]), i);
  return made;
}

void TrainedRunWriter::integers(const hdf5::Handle& folder, const std::string& name,
                                const std::vector<std::int64_t>& values, const Axes& axes,
                                const Description& description) const {
  const hdf5::Handle made = dataset(folder, name, {H5T_STD_I64LE, shape_of(axes), {}}, axes);
  hdf5::write(made, H5T_NATIVE_INT64, values.data());
  describe(made, description);
}

void TrainedRunWriter::doubles(const hdf5::Handle& folder, const std::string& name, const std::vector<double>& values,
                               const Axes& axes, const Description& description) const {
  const hdf5::Handle made = dataset(folder, name, {H5T_IEEE_F64LE, shape_of(axes), {}}, axes);
  hdf5::write(made, H5T_NATIVE_DOUBLE, values.data());
  describe(made, description);
}

hdf5::Handle TrainedRunWriter::group(const std::string& name, const Axes& axes) const {
  hdf5::Handle made = hdf5::create_group(file_.get(), name);
  for (const std::string& axis : axes) hdf5::hard_link(scales_.at(axis), made.get(), axis);
  return made;
}

void TrainedRunWriter::best_epochs() const {
  std::vector<std::int64_t> best;
  for (const auto& result : run_.results) best.push_back(result ? result->best_epoch : -1);
  integers(file_, "best_epoch", best, {"arm", "seed"},
           {"epochs", "epoch whose weights were tested, from 1; 0: an arm without training; -1: not finished"});
}

void TrainedRunWriter::curves(const std::vector<std::string>& names,
                              const std::function<Description(const std::string& name)>& describe) const {
  if (epochs_ == 0) return;
  const Axes axes = {"arm", "seed", "epoch"};
  const hdf5::Handle folder = group("metric", axes);
  for (const std::string& name : names) {
    bool known = false;
    std::vector<double> values(run_.results.size() * static_cast<std::size_t>(epochs_), missing);
    for (std::size_t i = 0; i < run_.results.size(); ++i) {
      if (!run_.results[i] || !run_.results[i]->curve.contains(name)) continue;
      known = true;
      const std::vector<double>& curve = run_.results[i]->curve.at(name);
      std::copy(curve.begin(), curve.end(), values.begin() + static_cast<std::ptrdiff_t>(i) * epochs_);
    }
    if (known) doubles(folder, name, values, axes, describe(name));
  }
}

void TrainedRunWriter::filter() const {
  if (layers_ == 0) return;
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
    doubles(folder, name, values, axes, {"1", std::string(curve.meaning)});
  }
}

void TrainedRunWriter::tests(const std::vector<std::string>& names, std::string_view on,
                             const std::vector<std::pair<std::string, Description>>& more) const {
  const hdf5::Handle folder = group("test", {"arm", "seed"});
  std::vector<std::pair<std::string, Description>> all;
  for (const std::string& name : names) all.emplace_back(name, Description{"1", fmt::format("{} {}", name, on)});
  all.insert(all.end(), more.begin(), more.end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, description] = all[i];
    std::vector<double> values;
    bool any = i < names.size();
    for (const auto& result : run_.results) {
      const bool has = result && (i < names.size() || result->test.contains(name));
      any = any || has;
      values.push_back(has ? result->test.at(name) : missing);
    }
    if (any) doubles(folder, name, values, {"arm", "seed"}, description);
  }
}

void TrainedRunWriter::score(const hdf5::Handle& folder, const std::string& name, hid_t type,
                             const Description& description) const {
  const auto values_of = [&](std::size_t place) {
    return run_.results[place] ? &run_.results[place]->scores.at(name) : nullptr;
  };
  by_unit(folder, name, type, {}, values_of, description);
}

void TrainedRunWriter::by_unit(const hdf5::Handle& folder, const std::string& name, hid_t type, const Axes& more,
                               const std::function<const std::vector<double>*(std::size_t place)>& values_of,
                               const Description& description) const {
  Axes axes = {"arm", "seed", unit_};
  axes.insert(axes.end(), more.begin(), more.end());
  const hdf5::Shape shape = shape_of(axes);
  const hdf5::Handle made = dataset(folder, name, layout_by_unit(type, shape), axes);
  hdf5::Shape offset(shape.size(), 0), count = shape;
  count[0] = count[1] = 1;
  for (std::size_t i = 0; i < run_.results.size(); ++i) {
    const std::vector<double>* const values = values_of(i);
    if (values == nullptr) continue;
    ASSERT(std::ssize(*values) == checked_elements(count, name), "{} numbers of '{}'", values->size(), name);
    offset[0] = static_cast<std::int64_t>(i) / seeds_;
    offset[1] = static_cast<std::int64_t>(i) % seeds_;
    hdf5::write_box(made, offset, count, H5T_NATIVE_DOUBLE, values->data());
  }
  describe(made, description);
}

void check_trained_run(const TrainedRun& run) {
  ASSERT(!run.arms.empty() && !run.seeds.empty() && !run.units.empty(), "an empty run");
  ASSERT(run.results.size() == run.arms.size() * run.seeds.size(), "{} results of {} arms and {} seeds",
         run.results.size(), run.arms.size(), run.seeds.size());
  for (const auto& result : run.results) {
    if (result) check_result(*result, run.units.size());
  }
}

void write_trained_run(const std::filesystem::path& path, std::string_view title, std::string_view program_version,
                       const std::function<void(const hdf5::Handle& file)>& fill) {
  TemporaryFile temporary(path);
  try {
    hdf5::write_file(temporary.path(), [&](const hdf5::Handle& file) {
      fill(file);
      hdf5::write_attribute(file.get(), "title", title);
      if (!program_version.empty()) hdf5::write_attribute(file.get(), "gainlens_version", program_version);
    });
  } catch (const hdf5::Error& error) {
    throw_run_failed("{}: cannot be written: {}; make room and repeat the command, which continues",
                     printable(path.string()), printable(error.what()));
  }
  flush_to_disk(temporary.path());
  temporary.publish();
}

}  // namespace gainlens::runfile
