#pragma once

#include "core/unit_scores.h"
#include "runfile/trained_run.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

inline constexpr std::string_view experiment_run_format = "gainlens-experiment";
inline constexpr std::int64_t experiment_run_version = 1;

/// Metrics that only some results have: the held-out loss before a training, of the pretrained model and with the whole
/// filter of the arm in force.
inline constexpr const char* start_loss = "start_loss";
inline constexpr const char* start_loss_with_filter = "start_loss_with_filter";
inline bool is_of_start(std::string_view metric) {
  return metric == start_loss || metric == start_loss_with_filter;
}

/// The run of an experiment whose units are no users of recommenders: questions, documents. Every score of
/// `unit_scores` is in every result, [unit], and its mean is the metric of the same name; a result may have other
/// metrics too. Docs: docs/run-file.md.
struct ExperimentRun : TrainedRun {  // the request has the text "unit" too
  std::vector<UnitScore> unit_scores;

  /// What a unit is called: "document".
  std::string unit() const { return request.at("unit"); }
  /// The number of the first units, which chose the best epoch too ("selection_rows" of the request's data); 0 where
  /// there are none, or no others. @throws InvalidArgument  it is no number of units
  std::size_t selection_units() const;
  /// The place of a score. @throws InvalidArgument  there is none of this name (nearest match named)
  const UnitScore& score(const std::string& name, std::string_view where) const;
};

/// Whether two runs are evaluated on the same units.
bool have_same_units(const ExperimentRun& one, const ExperimentRun& other);

/// Writes run.h5 completely or not at all. The same arguments give the same bytes.
/// @throws RunFailed      a write, a flush or a closing failed
/// @throws InternalError  sizes that do not fit each other, names that no dataset can have, a result without a score or
///     with another mean than the metric of its name
void write_experiment_run(const std::filesystem::path& path, const ExperimentRun& run,
                          std::string_view program_version = {});

/// The file is untrusted: it is compared with `run.h5.sha256` beside it, where there is one; shapes, types and values
/// are checked. Unknown groups and datasets are not read.
/// @param path  a run folder or a run.h5
/// @throws InvalidArgument  missing, not HDF5, another format or version, datasets that are absent or do not fit each
///     other, values that are not finite, metrics that are not the means of the scores
ExperimentRun read_experiment_run(const std::filesystem::path& path);

}  // namespace gainlens::runfile
