#pragma once

#include "runfile/hdf5.h"
#include "runfile/run_kind.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// Largest difference between a stored metric and that of the stored scores, as a share of a metric above 1: sums in
/// another order.
inline constexpr double max_rounding_of_metric = 1e-9;

/// Reads what the run of every experiment holds, from an untrusted file. Every function throws InvalidArgument for what
/// cannot be, and hdf5::Error for a dataset that is absent or of another type or shape.
class TrainedRunReader {
 public:
  /// @param where  the file, for messages
  TrainedRunReader(std::string where, const hdf5::Handle& file);

  /// Compares the attributes `format` and `format_version`.
  /// @param needed  what has to be given: "a recommender run"
  void check_format(std::string_view format, std::int64_t version, std::string_view needed) const;
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
/// @param path      a run folder or a run.h5
/// @param command   that makes such runs: "gainlens train recommend"
/// @param kind      "recommender run"
/// @param of        the kind: a folder of it may have no run.h5 yet
/// @throws InvalidArgument  missing; not HDF5; as `read`
void read_trained_run(const std::filesystem::path& path, std::string_view command, std::string_view kind, RunKind of,
                      const std::function<void(const TrainedRunReader&)>& read);

}  // namespace gainlens::runfile
