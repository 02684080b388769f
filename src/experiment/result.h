#pragma once

#include "core/json.h"
#include "runfile/trained_run.h"

#include <cstdint>
#include <map>
#include <string>

namespace gainlens::experiment {

/// What is known of a job that has been done: curves, metrics, and the scores of every unit, whatever the units are.
/// The file of every run holds these, so the type is its.
using Result = runfile::TrainedSeed;

/// A result with what proves the files beside it.
struct StoredResult {
  Result result;
  /// The sha256 of the files of the checkpoint, by name; null where there is no checkpoint, and in what earlier
  /// versions wrote.
  Json kept = Json(Json::value_t::null);
  /// training::request_identity() of the job's request; empty in what earlier versions wrote.
  std::string request;
  bool has_checksum = false;  ///< the file that it was read from has one of its own; earlier versions wrote none
};

/// Whether so many epochs, or the patience, end a training with this result. A result of fewer epochs is that of a
/// training that goes on.
bool is_finished(const Result& result, std::int64_t epochs, std::int64_t patience);

}  // namespace gainlens::experiment
