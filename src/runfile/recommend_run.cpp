#include "runfile/recommend_run.h"

#include "core/check.h"
#include "runfile/hdf5.h"
#include "runfile/run_file.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace gainlens::runfile {
namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t most_text = std::uint64_t{1} << 32;

/// Names of all entries of a kind over the finished seeds, sorted.
template <typename Of>
std::set<std::string> names_of(const RecommendRun& run, const Of& of) {
  std::set<std::string> names;
  for (const auto& result : run.results) {
    if (!result) continue;
    for (const auto& [name, value] : of(*result)) names.insert(name);
  }
  return names;
}

std::int64_t most_epochs(const RecommendRun& run) {
  std::int64_t epochs = 0;
  for (const auto& result : run.results) {
    if (!result) continue;
    for (const auto& [name, values] : result->curve) epochs = std::max(epochs, std::ssize(values));
  }
  return epochs;
}

/// Writes the datasets of a run with their dimension scales.
class Writer {
 public:
  Writer(const hdf5::Handle& file, const RecommendRun& run) : file_(file), run_(run) {
    scales_["arm"] = hdf5::write_strings(file_.get(), "arm", run.arms, {std::ssize(run.arms)});
    scales_["user"] = hdf5::write_strings(file_.get(), "user", run.users, {std::ssize(run.users)});
    scales_["seed"] = integers(file_, "seed", run.seeds);
    scales_["epoch"] = integers(file_, "epoch", counted(most_epochs(run)));
    items_ = hdf5::create_group(file_.get(), "item");  // a group: its scale lies in it
    scales_["item"] = integers(items_, "item", counted(std::ssize(run.item_train_count)));
    for (auto& [name, scale] : scales_) hdf5::make_scale(scale, name);
  }

  void write() const {
    attach(integers(file_, "target", run_.target), {"user"});
    attach(integers(file_, "history_length", run_.history_length), {"user"});
    attach(integers(file_, "training_length", run_.training_length), {"user"});
    attach(integers(items_, "train_count", run_.item_train_count), {"item"});
    write_results();
  }

 private:
  static std::vector<std::int64_t> counted(std::int64_t count) {
    std::vector<std::int64_t> numbers;
    for (std::int64_t i = 1; i <= count; ++i) numbers.push_back(i);
    return numbers;
  }

  static hdf5::Handle integers(const hdf5::Handle& folder, const std::string& name,
                               const std::vector<std::int64_t>& values) {
    hdf5::Handle made = hdf5::create_dataset(folder.get(), name, {H5T_STD_I64LE, {std::ssize(values)}, {}});
    if (!values.empty()) hdf5::write(made, H5T_NATIVE_INT64, values.data());
    return made;
  }

  void attach(const hdf5::Handle& dataset, const std::vector<std::string>& axes) const {
    for (unsigned i = 0; i < axes.size(); ++i) hdf5::attach_scale(dataset, scales_.at(axes[i]), i);
  }

  /// A group in which readers find the scales of its datasets.
  hdf5::Handle group(const std::string& name, const std::vector<std::string>& axes) const {
    hdf5::Handle made = hdf5::create_group(file_.get(), name);
    for (const std::string& axis : axes) hdf5::hard_link(scales_.at(axis), made.get(), axis);
    return made;
  }

  void doubles(const hdf5::Handle& folder, const std::string& name, const std::vector<double>& values,
               const hdf5::Shape& shape, const std::vector<std::string>& axes) const {
    const hdf5::Handle made = hdf5::create_dataset(folder.get(), name, {H5T_IEEE_F64LE, shape, {}});
    if (!values.empty()) hdf5::write(made, H5T_NATIVE_DOUBLE, values.data());
    attach(made, axes);
  }

  void write_results() const {
    const std::int64_t arms = std::ssize(run_.arms), seeds = std::ssize(run_.seeds), epochs = most_epochs(run_);
    const hdf5::Handle curves = group("metric", {"arm", "seed", "epoch"});
    for (const std::string& name : names_of(run_, [](const TrainedSeed& seed) { return seed.curve; })) {
      std::vector<double> values;
      for (const auto& result : run_.results) {
        std::vector<double> row(static_cast<std::size_t>(epochs), missing);
        if (result && result->curve.contains(name))
          std::copy(result->curve.at(name).begin(), result->curve.at(name).end(), row.begin());
        values.insert(values.end(), row.begin(), row.end());
      }
      doubles(curves, name, values, {arms, seeds, epochs}, {"arm", "seed", "epoch"});
    }
    const hdf5::Handle tests = group("test", {"arm", "seed"});
    for (const std::string& name : names_of(run_, [](const TrainedSeed& seed) { return seed.test; })) {
      std::vector<double> values;
      for (const auto& result : run_.results)
        values.push_back(result && result->test.contains(name) ? result->test.at(name) : missing);
      doubles(tests, name, values, {arms, seeds}, {"arm", "seed"});
    }
    std::vector<std::int64_t> best;
    for (const auto& result : run_.results) best.push_back(result ? result->best_epoch : -1);
    const hdf5::Handle epoch = hdf5::create_dataset(file_.get(), "best_epoch", {H5T_STD_I64LE, {arms, seeds}, {}});
    hdf5::write(epoch, H5T_NATIVE_INT64, best.data());
    attach(epoch, {"arm", "seed"});
    const std::int64_t users = std::ssize(run_.users);
    const hdf5::Handle ranks =
        hdf5::create_dataset(file_.get(), "rank", {H5T_IEEE_F32LE, {arms, seeds, users}, {1, 1, users}});
    for (std::int64_t arm = 0; arm < arms; ++arm) {
      for (std::int64_t seed = 0; seed < seeds; ++seed) {
        const auto& result = run_.result(static_cast<std::size_t>(arm), static_cast<std::size_t>(seed));
        if (result) hdf5::write_box(ranks, {arm, seed, 0}, {1, 1, users}, H5T_NATIVE_FLOAT, result->rank.data());
      }
    }
    attach(ranks, {"arm", "seed", "user"});
  }

  const hdf5::Handle& file_;
  const RecommendRun& run_;
  hdf5::Handle items_;
  std::map<std::string, hdf5::Handle> scales_;
};

void check_sizes(const RecommendRun& run) {
  const std::size_t users = run.users.size();
  ASSERT(!run.arms.empty() && !run.seeds.empty() && users > 0 && !run.item_train_count.empty(), "an empty run");
  ASSERT(run.results.size() == run.arms.size() * run.seeds.size(), "results of another number of seeds");
  ASSERT(run.target.size() == users && run.history_length.size() == users && run.training_length.size() == users,
         "users of different numbers");
  for (const auto& result : run.results) ASSERT(!result || result->rank.size() == users, "ranks of other users");
}

/// Reads a run from an untrusted file.
class Reader {
 public:
  Reader(const std::filesystem::path& path, const hdf5::Handle& file) : where_(printable(path.string())), file_(file) {
    const auto format = hdf5::read_text_attribute(file_.get(), "format");
    const auto version = hdf5::read_integer_attribute(file_.get(), "format_version");
    CHECK(format == recommend_run_format, "{}: is not a recommender run{}", where_,
          format == "gainlens-sweep" ? " but a sweep" : "");
    CHECK(version == recommend_run_version, "{}: format version {}; this program reads {}", where_,
          version ? std::to_string(*version) : "unknown", recommend_run_version);
  }

  RecommendRun read() {
    RecommendRun run;
    run.request = parse_json(hdf5::read_strings(file_.get(), "request", {}, most_text).at(0), where_ + " (request)");
    CHECK(run.request.is_object() && run.request.contains("data") && run.request["data"].is_object(),
          "{}: the request has no 'data'", where_);
    run.arms = texts("arm");
    run.users = texts("user");
    run.seeds = integers("seed", -1, 0, std::numeric_limits<std::int64_t>::max());
    run.item_train_count = integers("item/train_count", -1, 0, most_count);
    const std::int64_t users = std::ssize(run.users), items = std::ssize(run.item_train_count);
    CHECK(!run.arms.empty() && !run.seeds.empty() && users > 0 && items > 0, "{}: has no arm, seed, user or item",
          where_);
    run.target = integers("target", users, 1, items);
    run.history_length = integers("history_length", users, 1, most_count);
    run.training_length = integers("training_length", users, 1, most_count);
    read_results(run, items);
    return run;
  }

 private:
  static constexpr std::int64_t most_count = std::int64_t{1} << 40;

  /// The size of a dataset of one dimension.
  std::int64_t size_of(const std::string& path) const {
    const hdf5::Handle dataset = hdf5::open_any(file_.get(), path);
    const hdf5::Handle space(H5Dget_space(dataset.get()), H5Sclose, "cannot be described");
    hsize_t size = 0;
    CHECK(H5Sget_simple_extent_ndims(space.get()) == 1 && H5Sget_simple_extent_dims(space.get(), &size, nullptr) == 1,
          "{}: '{}' must have one dimension", where_, path);
    CHECK(size < (hsize_t{1} << 40), "{}: '{}' has {} entries; that is too many", where_, path, size);
    return static_cast<std::int64_t>(size);
  }

  std::vector<std::string> texts(const std::string& path) const {
    return hdf5::read_strings(file_.get(), path, {size_of(path)}, most_text);
  }

  /// @param count  -1: any
  std::vector<std::int64_t> integers(const std::string& path, std::int64_t count, std::int64_t least,
                                     std::int64_t most) const {
    const std::int64_t found = size_of(path);
    CHECK(count < 0 || found == count, "{}: '{}' has {} entries; must have {}", where_, path, found, count);
    std::vector<std::int64_t> values(static_cast<std::size_t>(found));
    const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), path, {H5T_STD_I64LE, {found}, {}});
    if (found > 0) hdf5::read(dataset, H5T_NATIVE_INT64, values.data());
    for (const std::int64_t value : values)
      CHECK(value >= least && value <= most, "{}: '{}' holds {}; must be {} to {}", where_, path, value, least, most);
    return values;
  }

  std::vector<std::string> members(const std::string& group) const {
    std::vector<std::string> names;
    if (!hdf5::has_object(file_.get(), group)) return names;
    const hdf5::Handle folder(H5Gopen2(file_.get(), group.c_str(), H5P_DEFAULT), H5Gclose, "cannot be opened");
    const auto add = [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
      static_cast<std::vector<std::string>*>(to)->emplace_back(name);
      return 0;
    };
    CHECK(H5Literate(folder.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &names) >= 0, "{}: '{}' cannot be read",
          where_, group);
    std::erase_if(names, [](const std::string& name) { return name == "arm" || name == "seed" || name == "epoch"; });
    return names;
  }

  void read_results(RecommendRun& run, std::int64_t items) const {
    const std::int64_t arms = std::ssize(run.arms), seeds = std::ssize(run.seeds), users = std::ssize(run.users);
    const std::int64_t epochs = size_of("epoch");
    std::vector<std::int64_t> best(static_cast<std::size_t>(arms * seeds));
    hdf5::read(hdf5::open_dataset(file_.get(), "best_epoch", {H5T_STD_I64LE, {arms, seeds}, {}}), H5T_NATIVE_INT64,
               best.data());
    const hdf5::Handle ranks =
        hdf5::open_dataset(file_.get(), "rank", {H5T_IEEE_F32LE, {arms, seeds, users}, {1, 1, users}});
    for (std::int64_t i = 0; i < arms * seeds; ++i) {
      auto& result = run.results.emplace_back();
      const std::int64_t epoch = best[static_cast<std::size_t>(i)];
      CHECK(epoch >= -1 && epoch <= epochs, "{}: 'best_epoch' holds {}; must be -1 to {}", where_, epoch, epochs);
      if (epoch < 0) continue;
      result.emplace();
      result->best_epoch = epoch;
      result->rank.resize(static_cast<std::size_t>(users));
      hdf5::read_box(ranks, {i / seeds, i % seeds, 0}, {1, 1, users}, H5T_NATIVE_FLOAT, result->rank.data());
      for (const float rank : result->rank) {
        CHECK(rank >= 1 && rank <= static_cast<float>(items), "{}: 'rank' holds {}; must be 1 to {}", where_, rank,
              items);
      }
    }
    read_metrics(run, "test", {arms, seeds}, 1);
    read_metrics(run, "metric", {arms, seeds, epochs}, epochs);
  }

  /// Gives each finished seed its numbers of a group: [arm, seed] for "test", [arm, seed, epoch] for "metric".
  void read_metrics(RecommendRun& run, const std::string& group, const hdf5::Shape& shape, std::int64_t count) const {
    for (const std::string& name : members(group)) {
      std::vector<double> values(run.results.size() * static_cast<std::size_t>(count));
      const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), group + "/" + name, {H5T_IEEE_F64LE, shape, {}});
      if (!values.empty()) hdf5::read(dataset, H5T_NATIVE_DOUBLE, values.data());
      for (std::size_t i = 0; i < run.results.size(); ++i) {
        if (!run.results[i]) continue;
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(i) * count;
        const auto last = std::find_if(first, first + count, [](double value) { return std::isnan(value); });
        if (group == "test") {
          CHECK(last != first, "{}: 'test/{}' of a finished seed is missing", where_, printable(name, 60));
          run.results[i]->test[name] = *first;
        } else if (last != first) {
          run.results[i]->curve[name] = std::vector<double>(first, last);
        }
      }
    }
  }

  std::string where_;
  const hdf5::Handle& file_;
};

std::filesystem::path file_of(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? path / run_file_name : path;
}

}  // namespace

void write_recommend_run(const std::filesystem::path& path, const RecommendRun& run, std::string_view program_version) {
  check_sizes(run);
  try {
    hdf5::write_file(path, [&](const hdf5::Handle& file) {
      hdf5::write_attribute(file.get(), "format", recommend_run_format);
      hdf5::write_attribute(file.get(), "format_version", recommend_run_version);
      if (!program_version.empty())
        hdf5::write_attribute(file.get(), "source", fmt::format("gainlens {}", program_version));
      hdf5::write_strings(file.get(), "request", {run.request.dump()}, {});
      Writer(file, run).write();
    });
  } catch (const hdf5::Error& error) {
    throw_run_failed("{}: cannot be written: {}", printable(path.string()), error.what());
  }
}

bool is_recommend_run(const std::filesystem::path& path) {
  try {
    const std::filesystem::path file = file_of(path);
    if (!std::filesystem::exists(file)) return false;
    return hdf5::read_text_attribute(hdf5::open_file(file).get(), "format") == recommend_run_format;
  } catch (const hdf5::Error&) {
    return false;
  }
}

RecommendRun read_recommend_run(const std::filesystem::path& path) {
  const std::filesystem::path file = file_of(path);
  CHECK(std::filesystem::exists(file), "{}: no such file{}", printable(file.string()),
        std::filesystem::is_directory(path) ? "; the training has not ended" : "");
  try {
    const hdf5::Handle opened = hdf5::open_file(file);
    return Reader(file, opened).read();
  } catch (const hdf5::Error& error) {
    throw_invalid("{}: cannot be read: {}", printable(file.string()), error.what());
  }
}

}  // namespace gainlens::runfile
