#pragma once

#include "runfile/hdf5.h"
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

/// 1, 2, ...
std::vector<std::int64_t> counted_from_one(std::int64_t count);

/// @throws InternalError  arms, seeds, units and results do not fit each other; a curve, filter or score of another
///     size than the others
void check_trained_run(const TrainedRun& run);

/// Writes a run.h5 completely or not at all.
/// @param fill  all but the attributes `title` and `gainlens_version`
/// @throws RunFailed  a write, a flush or a closing failed
void write_trained_run(const std::filesystem::path& path, std::string_view title, std::string_view program_version,
                       const std::function<void(const hdf5::Handle& file)>& fill);

}  // namespace gainlens::runfile
