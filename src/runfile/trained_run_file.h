#pragma once

#include "runfile/hdf5.h"
#include "runfile/run_kind.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::runfile {

/// A dataset with numbers of each result and unit: its type, shape and chunks. Readers check it.
/// @param type   H5T_IEEE_F64LE or H5T_IEEE_F32LE
/// @param shape  arms, seeds, units, and the sizes of what each unit has, if it is more than one number
hdf5::Layout layout_by_unit(hid_t type, const hdf5::Shape& shape);

/// Whether the dataset of the seeds is int64; else it is uint64.
bool seeds_fit_int64(const std::vector<std::uint64_t>& seeds);

/// What a dataset holds: its unit of measurement (empty: text) and its meaning.
struct Description {
  std::string measure, meaning;
};

/// Writes what the run of every experiment holds, with dimension scales. The order of the calls is the order in the
/// file.
class TrainedRunWriter {
 public:
  using Axes = std::vector<std::string>;

  /// @param unit  the name of the axis of units
  TrainedRunWriter(const hdf5::Handle& file, const TrainedRun& run, std::string unit);

  /// The attributes `format` and `format_version`, and /request.
  void head(std::string_view format, std::int64_t version);
  /// The axes arm, of units, seed, epoch and layer; the last two where a result has them.
  void scales();
  void best_epochs() const;
  /// /metric. @param describe  by the name of the curve
  void curves(const std::vector<std::string>& names,
              const std::function<Description(const std::string& name)>& describe) const;
  /// /filter, if a result has one.
  void filter() const;
  /// /test. Every result has these metrics. @param on  "on the test items", for the meaning
  /// @param more  further ones, which a result may lack: then its number is missing. One that no result has is not
  ///     written
  void tests(const std::vector<std::string>& names, std::string_view on,
             const std::vector<std::pair<std::string, Description>>& more = {}) const;
  /// @param type  of the numbers on the disk, to which the score is converted
  void score(const hdf5::Handle& folder, const std::string& name, hid_t type, const Description& description) const;
  /// Numbers of each result and unit.
  /// @param more       axes of what each unit has, if it is more than one number
  /// @param values_of  [unit, more..] of the result at a place of TrainedRun::results; null: it has none
  void by_unit(const hdf5::Handle& folder, const std::string& name, hid_t type, const Axes& more,
               const std::function<const std::vector<double>*(std::size_t place)>& values_of,
               const Description& description) const;

  const hdf5::Handle& file() const { return file_; }
  /// Makes an axis.
  void text_scale(const std::string& name, const std::vector<std::string>& texts, std::string_view meaning);
  void integer_scale(const hdf5::Handle& folder, const std::string& name, const std::vector<std::int64_t>& values,
                     std::string_view meaning);
  /// One text for each entry of an axis.
  void texts(const std::string& name, const std::vector<std::string>& texts, const std::string& axis,
             std::string_view meaning) const;
  void integers(const hdf5::Handle& folder, const std::string& name, const std::vector<std::int64_t>& values,
                const Axes& axes, const Description& description) const;
  void doubles(const hdf5::Handle& folder, const std::string& name, const std::vector<double>& values, const Axes& axes,
               const Description& description) const;
  /// A group in which readers find the scales of its datasets.
  hdf5::Handle group(const std::string& name, const Axes& axes) const;

 private:
  hdf5::Handle dataset(const hdf5::Handle& folder, const std::string& name, const hdf5::Layout& layout,
                       const Axes& axes) const;
  hdf5::Shape shape_of(const Axes& axes) const;
  template <typename Number>
  void number_scale(const hdf5::Handle& folder, const std::string& name, const std::vector<Number>& values,
                    hid_t disk_type, hid_t memory_type, std::string_view meaning);

  const hdf5::Handle& file_;
  const TrainedRun& run_;
  std::string unit_;
  std::int64_t seeds_, epochs_, layers_;
  std::map<std::string, hdf5::Handle> scales_;
  std::map<std::string, std::int64_t> sizes_;  // of the axes
};

/// So many whole numbers in order.
std::vector<std::int64_t> counted_from(std::int64_t first, std::int64_t count);

/// @throws InternalError  arms, seeds, units and results do not fit each other; a curve, filter or score of another
///     size than the others
void check_trained_run(const TrainedRun& run);

/// Writes a run.h5 completely or not at all.
/// @param fill  all but the attributes `title` and `gainlens_version`
/// @throws RunFailed  a write, a flush or a closing failed
void write_trained_run(const std::filesystem::path& path, std::string_view title, std::string_view program_version,
                       const std::function<void(const hdf5::Handle& file)>& fill);

/// Largest difference between a stored metric and that of the stored scores, as a share of a metric above 1: sums in
/// another order.
inline constexpr double max_rounding_of_metric = 1e-9;

/// Reads what the run of every experiment holds, from an untrusted file. Every function throws InvalidArgument for what
/// cannot be, and hdf5::Error for a dataset that is absent or of another type or shape.
class TrainedRunReader {
 public:
  /// @param where  the file, for messages
  TrainedRunReader(std::string where, const hdf5::Handle& file) : where_(std::move(where)), file_(file) {}

  /// Compares the attributes `format`, with the mark of a kind, and `format_version`.
  void check_format(RunKind kind, std::int64_t version) const;
  /// /request, the arms, seeds and units. @param unit  the name of the axis of units
  void axes(TrainedRun& run, const std::string& unit) const;
  /// Names of arms that can be shown and differ; seeds that differ.
  void check_names(const TrainedRun& run) const;
  /// /best_epoch, which says what is finished. Makes the results.
  void best_epochs(TrainedRun& run) const;
  /// A dataset of scores, [arm, seed, unit]. @param type  of the numbers on the disk
  void score(TrainedRun& run, const std::string& dataset, const std::string& name, hid_t type) const;
  /// Numbers of each unit of the results, as TrainedRunWriter::by_unit() writes them.
  /// @param more  sizes of what each unit has, if it is more than one number
  /// @param into  takes up the numbers of the result at a place; null: they are not read
  void by_unit(const TrainedRun& run, const std::string& dataset, hid_t type, const hdf5::Shape& more,
               const std::function<std::vector<double>*(std::size_t place)>& into) const;
  /// /test, of finished results.
  /// @param more  further ones, which the file or a result may lack
  void tests(TrainedRun& run, const std::vector<std::string>& names, const std::vector<std::string>& more = {}) const;
  /// Those curves of /metric that are there, and /filter.
  void curves(TrainedRun& run, const std::vector<std::string>& names) const;
  /// The curves of a result have one length and reach its best epoch. @param place  of the result, which is finished
  void check_curves(const TrainedRun& run, std::size_t place) const;
  /// Compares a metric of a result with the mean that its scores give.
  /// @param scores  what gives it, for the message: "ranks"
  void check_metric(const TrainedRun& run, std::size_t place, const std::string& name, double found,
                    std::string_view scores) const;

  /// "arm plain, seed 3", for messages.
  static std::string result_in_words(const TrainedRun& run, std::size_t place);
  bool has(const std::string& path) const;
  /// The size of a dataset with one axis.
  std::int64_t size_of(const std::string& path) const;
  std::vector<std::string> texts(const std::string& path) const;
  std::vector<std::int64_t> integers(const std::string& path, const hdf5::Shape& shape, std::int64_t least,
                                     std::int64_t most) const;
  /// Checks what a request must hold. @param wanted  "text 'backbone'"
  void require(bool condition, std::string_view wanted) const;

  const std::string& where() const { return where_; }

 private:
  std::vector<std::uint64_t> seeds() const;
  std::vector<double> doubles(const std::string& path, const hdf5::Shape& shape) const;
  std::int64_t epochs() const;
  void curve(TrainedRun& run, const std::string& name, std::int64_t epochs) const;
  void filter(TrainedRun& run, std::int64_t epochs) const;

  std::string where_;
  const hdf5::Handle& file_;
};

/// Opens the run.h5 of a run and reads it.
/// @param path  a run folder, which may have no run.h5 yet, or a run.h5
/// @throws InvalidArgument  missing; not HDF5; as `read`
void read_trained_run(const std::filesystem::path& path, RunKind kind,
                      const std::function<void(const TrainedRunReader&)>& read);

}  // namespace gainlens::runfile
