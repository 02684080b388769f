#include "core/check.h"
#include "core/checked.h"
#include "core/ranking_metrics.h"
#include "runfile/hdf5.h"
#include "runfile/recommend_layout.h"
#include "runfile/recommend_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace gainlens::runfile {
namespace {

constexpr std::uint64_t most_text_bytes = std::uint64_t{1} << 30;
constexpr std::int64_t most_of_int64 = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t most_count = std::int64_t{1} << 31;
/// Upper limit of deflate's compression, which is at most 1032 to 1.
constexpr std::int64_t most_packing = 1100;
/// Largest difference between a stored metric and that of the stored ranks: sums in another order.
constexpr double most_rounding = 1e-9;

/// Reads a run from an untrusted file.
class RecommendReader {
 public:
  RecommendReader(const std::filesystem::path& path, const hdf5::Handle& file)
      : where_(printable(path.string())), file_(file) {}

  RecommendRun read() {
    check_format();
    run_.request =
        parse_json(hdf5::read_strings(file_.get(), "request", {}, most_text_bytes).front(), where_ + ": /request");
    run_.arms = texts("arm");
    run_.seeds = seeds();
    run_.users = texts("user");
    run_.item_train_count = integers("item/train_count", {size_of("item/train_count")}, 0, most_count);
    check_request();
    read_users();
    check_names();
    read_results();
    return std::move(run_);
  }

 private:
  void check_format() const {
    const auto format = hdf5::read_text_attribute(file_.get(), "format");
    CHECK(format, "{}: has no attribute 'format'; it is not a run of gainlens", where_);
    CHECK(*format != "gainlens-sweep",
          "{}: is a run of gainlens sweep, and a recommender run is needed here; read it with gainlens report", where_);
    CHECK(*format == recommend_run_format, "{}: its format is '{}'; a recommender run ('{}') is needed here", where_,
          printable(*format), recommend_run_format);
    const auto version = hdf5::read_integer_attribute(file_.get(), "format_version");
    CHECK(version == recommend_run_version, "{}: its format version is {}; this gainlens reads version {}", where_,
          version ? std::to_string(*version) : "missing", recommend_run_version);
  }

  /// The size of a dataset with one axis.
  std::int64_t size_of(const std::string& path) const {
    const hdf5::Shape shape = hdf5::shape_at(file_.get(), path);
    CHECK(shape.size() == 1 && shape[0] > 0,
          "{}: dataset '{}' has {} axes and the size {}; expected 1 axis and at "
          "least 1 entry",
          where_, path, shape.size(), shape.empty() ? 0 : shape[0]);
    return shape[0];
  }

  std::vector<std::string> texts(const std::string& path) const {
    return hdf5::read_strings(file_.get(), path, {size_of(path)}, most_text_bytes);
  }

  std::vector<std::int64_t> integers(const std::string& path, const hdf5::Shape& shape, std::int64_t least,
                                     std::int64_t most) const {
    const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), path, {H5T_STD_I64LE, shape, {}});
    std::vector<std::int64_t> values(static_cast<std::size_t>(checked_elements(shape, path)));
    hdf5::read(dataset, H5T_NATIVE_INT64, values.data());
    for (const std::int64_t value : values)
      CHECK(value >= least && value <= most, "{}: dataset '{}' holds {}; must be {} to {}", where_, path, value, least,
            most);
    return values;
  }

  /// int64, or uint64 where a seed needs it.
  std::vector<std::uint64_t> seeds() const {
    const hdf5::Shape shape = {size_of("seed")};
    if (!hdf5::has_type(hdf5::open_any(file_.get(), "seed"), H5T_STD_U64LE)) {
      const std::vector<std::int64_t> small = integers("seed", shape, 0, most_of_int64);
      return {small.begin(), small.end()};
    }
    const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), "seed", {H5T_STD_U64LE, shape, {}});
    std::vector<std::uint64_t> values(static_cast<std::size_t>(checked_elements(shape, "seed")));
    hdf5::read(dataset, H5T_NATIVE_UINT64, values.data());
    return values;
  }

  std::vector<double> doubles(const std::string& path, const hdf5::Shape& shape) const {
    const hdf5::Handle dataset = hdf5::open_dataset(file_.get(), path, {H5T_IEEE_F64LE, shape, {}});
    std::vector<double> values(static_cast<std::size_t>(checked_elements(shape, path)));
    hdf5::read(dataset, H5T_NATIVE_DOUBLE, values.data());
    return values;
  }

  void check_request() const {
    const Json& request = run_.request;
    const auto require = [&](bool condition, std::string_view wanted) {
      CHECK(condition, "{}: /request has no {}; the file is damaged", where_, wanted);
    };
    require(request.is_object() && request.contains("data") && request.at("data").is_object(), "object 'data'");
    require(request.contains("backbone") && request.at("backbone").is_string(), "text 'backbone'");
    require(request.contains("training") && request.at("training").is_object(), "object 'training'");
    const Json& data = request.at("data");
    for (const char* key : {"name", "format", "split"})
      require(data.contains(key) && data.at(key).is_string(), fmt::format("text 'data.{}'", key));
    for (const char* key : {"users", "items", "interactions"})
      require(data.contains(key) && data.at(key).is_number_integer(), fmt::format("whole number 'data.{}'", key));
    CHECK(data.at("users") == run_.users.size() && data.at("items") == run_.item_train_count.size(),
          "{}: holds {} users and {} items, and /request says {} and {}; the file is damaged", where_,
          run_.users.size(), run_.item_train_count.size(), data.at("users").dump(), data.at("items").dump());
  }

  void check_names() const {
    for (const std::string& arm : run_.arms)
      CHECK(!arm.empty() && printable(arm) == arm, "{}: the arm '{}' has no usable name", where_, printable(arm));
    CHECK(std::set(run_.arms.begin(), run_.arms.end()).size() == run_.arms.size(), "{}: two arms have one name",
          where_);
    CHECK(std::set(run_.seeds.begin(), run_.seeds.end()).size() == run_.seeds.size(), "{}: a seed stands twice",
          where_);
  }

  void read_users() {
    const hdf5::Shape shape = {std::ssize(run_.users)};
    run_.target = integers("target", shape, 1, std::ssize(run_.item_train_count));
    run_.history_length = integers("history_length", shape, 1, most_count);
    run_.training_length = integers("training_length", shape, 1, most_count);
    for (std::size_t user = 0; user < run_.users.size(); ++user)
      CHECK(run_.training_length[user] <= run_.history_length[user],
            "{}: user {} has {} training items of {} known items; the file is damaged", where_, user,
            run_.training_length[user], run_.history_length[user]);
    const auto sum = [&](const std::vector<std::int64_t>& values) {
      std::int64_t total = 0;
      for (const std::int64_t value : values) total = checked_add(total, value, where_);
      return total;
    };
    CHECK(sum(run_.training_length) == sum(run_.item_train_count),
          "{}: users have {} training items, and items are in training {} times; the file is damaged", where_,
          sum(run_.training_length), sum(run_.item_train_count));
  }

  void read_results() {
    const std::int64_t arms = std::ssize(run_.arms), seeds = std::ssize(run_.seeds);
    const std::int64_t epochs = hdf5::has_object(file_.get(), "epoch") ? size_of("epoch") : 0;
    for (const std::int64_t best : integers("best_epoch", {arms, seeds}, -1, epochs)) {
      auto& result = run_.results.emplace_back();
      if (best >= 0) result.emplace().best_epoch = best;
    }
    read_ranks();
    for (const RankingMetric& metric : ranking_metrics()) {
      const std::string path = "test/" + metric.name();
      const std::vector<double> values = doubles(path, {arms, seeds});
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (run_.results[i]) run_.results[i]->test[metric.name()] = values[i];
      }
    }
    for (const std::string& name : curve_names()) {
      if (epochs > 0 && hdf5::has_object(file_.get(), "metric/" + name)) read_curve(name, epochs);
    }
    if (epochs > 0 && hdf5::has_object(file_.get(), "filter")) read_filter(epochs);
    for (std::size_t i = 0; i < run_.results.size(); ++i) {
      if (run_.results[i])
        check_result(*run_.results[i], run_.arms[i / run_.seeds.size()], run_.seeds[i % run_.seeds.size()]);
    }
  }

  void read_ranks() {
    const std::int64_t seeds = std::ssize(run_.seeds), users = std::ssize(run_.users);
    const hdf5::Layout layout = rank_layout(std::ssize(run_.arms), seeds, users);
    const hdf5::Handle ranks = hdf5::open_dataset(file_.get(), "rank", layout);
    const std::int64_t elements = checked_elements(layout.shape, "rank");
    const std::uint64_t stored = std::max<std::uint64_t>(hdf5::stored_bytes(ranks), 1 << 20);
    CHECK(static_cast<std::uint64_t>(elements / most_packing) <= stored,
          "{}: dataset 'rank' claims {} numbers in {} bytes; the file is damaged", where_, elements, stored);
    for (std::size_t i = 0; i < run_.results.size(); ++i) {
      if (!run_.results[i]) continue;
      std::vector<float>& rank = run_.results[i]->rank;
      rank.resize(static_cast<std::size_t>(users));
      const auto place = static_cast<std::int64_t>(i);
      hdf5::read_box(ranks, {place / seeds, place % seeds, 0}, {1, 1, users}, H5T_NATIVE_FLOAT, rank.data());
    }
  }

  void read_curve(const std::string& name, std::int64_t epochs) {
    const std::vector<double> values =
        doubles("metric/" + name, {std::ssize(run_.arms), std::ssize(run_.seeds), epochs});
    for (std::size_t i = 0; i < run_.results.size(); ++i) {
      if (!run_.results[i] || run_.results[i]->best_epoch == 0) continue;
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(i) * epochs, end = first + epochs;
      const auto last = std::find_if(first, end, [](double value) { return std::isnan(value); });
      CHECK(std::all_of(first, last, [](double value) { return std::isfinite(value); }) &&
                std::all_of(last, end, [](double value) { return std::isnan(value); }),
            "{}: dataset 'metric/{}' is not finite in an epoch of a finished seed; the file is damaged", where_, name);
      if (first != last) run_.results[i]->curve[name] = std::vector<double>(first, last);
    }
  }

  void read_filter(std::int64_t epochs) {
    const std::int64_t layers = size_of("layer");
    for (const FilterCurve& curve : filter_curves()) {
      const std::string name(curve.name);
      const std::vector<double> values =
          doubles("filter/" + name, {std::ssize(run_.arms), std::ssize(run_.seeds), epochs, layers});
      CHECK(std::none_of(values.begin(), values.end(), [](double value) { return std::isinf(value); }),
            "{}: dataset 'filter/{}' holds infinity; the file is damaged", where_, name);
      const auto size = static_cast<std::ptrdiff_t>(epochs * layers);
      for (std::size_t i = 0; i < run_.results.size(); ++i) {
        if (!run_.results[i] || run_.results[i]->curve.empty()) continue;
        const auto own = std::ssize(run_.results[i]->curve.begin()->second);
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(i) * size;
        run_.results[i]->filter[name] = std::vector<double>(first, first + static_cast<std::ptrdiff_t>(own * layers));
      }
    }
    // An arm without a filter has no number at all.
    for (auto& result : run_.results) {
      if (result && std::all_of(result->filter.begin(), result->filter.end(), [](const auto& curve) {
            return std::all_of(curve.second.begin(), curve.second.end(), [](double x) { return std::isnan(x); });
          }))
        result->filter.clear();
    }
    // Variants may have fewer layers than others: theirs end before the last one that has a number.
    if (!run_.request.contains("variants")) return;
    for (auto& result : run_.results) {
      if (result && !result->filter.empty()) cut_to_layers(result->filter, layers);
    }
  }

  /// Removes the layers behind the last one in which a curve has a number. @param layers  of each curve
  static void cut_to_layers(std::map<std::string, std::vector<double>>& filter, std::int64_t layers) {
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

  void check_result(const TrainedSeed& result, const std::string& arm, std::uint64_t seed) const {
    const auto items = static_cast<float>(run_.item_train_count.size());
    for (const float rank : result.rank)
      CHECK(rank >= 1 && rank <= items && std::floor(2 * rank) == 2 * rank,
            "{}: dataset 'rank' holds {} for arm {}, seed {}; must be 1 to {} in steps of a half", where_, rank, arm,
            seed, items);
    for (const RankingMetric& metric : ranking_metrics()) {
      const double stored = result.test.at(metric.name()), found = mean_of(metric, result.rank);
      CHECK(std::abs(stored - found) <= most_rounding,
            "{}: dataset 'test/{}' holds {} for arm {}, seed {}, and the ranks give {}; the file is damaged", where_,
            metric.name(), stored, arm, seed, found);
    }
    for (const auto& [name, values] : result.curve)
      CHECK(std::ssize(values) >= result.best_epoch && values.size() == result.curve.begin()->second.size(),
            "{}: dataset 'metric/{}' has {} epochs for arm {}, seed {}; other curves have {}, and epoch {} is the best",
            where_, name, values.size(), arm, seed, result.curve.begin()->second.size(), result.best_epoch);
    CHECK(result.best_epoch == 0 || !result.curve.empty(), "{}: arm {}, seed {} has no learning curve", where_, arm,
          seed);
  }

  std::string where_;
  const hdf5::Handle& file_;
  RecommendRun run_;
};

}  // namespace

RecommendRun read_recommend_run(const std::filesystem::path& path) {
  const bool folder = std::filesystem::is_directory(path);
  const std::filesystem::path file = folder ? path / run_file_name : path;
  CHECK(std::filesystem::exists(file), "{}: {}", printable(path.string()),
        !folder ? "no such file or folder; give a run folder or its run.h5"
        : is_recommend_run(path)
            ? "has no run.h5: the training has not finished; repeat its `gainlens train recommend` "
              "command with the same --out, which continues"
            : "has no run.h5; give the folder that gainlens train recommend wrote");
  prove_by_neighbour(file);  // HDF5 crashes on some damaged files
  try {
    const hdf5::Handle opened = hdf5::open_file(file);
    return RecommendReader(file, opened).read();
  } catch (const hdf5::Error& error) {
    throw_invalid(
        "{}: {}; it is damaged or not a recommender run (repeating its `gainlens train recommend` command "
        "writes run.h5 again)",
        printable(file.string()), printable(error.what()));
  }
}

}  // namespace gainlens::runfile
