#pragma once

#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

// What every command that reads a training checks of its request.

namespace gainlens::runfile {

/// Versions of the training procedures, part of a request. To be raised when the same request would give other weights.
inline constexpr std::int64_t recommend_request_version = 2, language_request_version = 2;

/// What this version of gainlens knows of the request of a training.
struct KnownRequest {
  std::int64_t version = 0;                              ///< the newest
  std::map<std::string, std::vector<std::string>> keys;  ///< by the JSON pointer to an object, all that it can have
};

/// Refuses a request that a newer version of gainlens made: what it says of the training is not known here.
/// @param where  names the request in messages
/// @throws InvalidArgument  its version is higher, or objects in it have keys that are not known; all are named
void refuse_newer_request(const Json& request, const KnownRequest& known, const std::string& where);

/// @param settings  the keys of 'training'
KnownRequest known_recommend_request(std::vector<std::string> settings);
/// @param filter  the keys of 'filter'
KnownRequest known_language_request(std::vector<std::string> filter);

/// Reads request.json of a recommender run.
/// @param folder  that holds the file
/// @returns  an object with the text 'backbone' and the object 'training'
/// @throws InvalidArgument  it cannot be read or is another file; the message names it and says what can be done
Json read_recommend_request(const std::filesystem::path& folder);

// The tables that a training leaves in its folder: their writers and their readers.

/// One evaluation of a training: a point of its curves.
struct Evaluation {
  std::int64_t step = 0;     ///< number of steps done
  double training_loss = 0;  ///< mean over the steps since the last evaluation
  double validation_loss = 0;
  double learning_rate = 0;
  double gradient_norm = 0;  ///< mean over the same steps, before clipping
};

/// The text of history.csv: a header line, and one line per evaluation. Numbers have six digits.
std::string history_csv(std::span<const Evaluation> history);
/// @throws InvalidArgument  it cannot be read, or is no such table
std::vector<Evaluation> read_history(const std::filesystem::path& file);

/// What is known of a filter along a training.
struct FilterHistory {
  std::vector<std::int64_t> steps;  ///< [evaluation]
  std::size_t layers = 0;
  std::map<std::string, std::vector<double>> curves;  ///< by name (filter_curves()), [evaluation, layer]; NaN: none
};

/// The text of filter.csv: a header line, and one line per evaluation and layer. NaN is an empty cell.
std::string filter_csv(const FilterHistory& history);

/// A line of filter.csv.
struct FilterPoint {
  double step = 0, gain = 0, share_at_most = 0;  ///< NaN while the filter warms up
};
/// @throws InvalidArgument  as read_history()
std::vector<FilterPoint> read_filter_history(const std::filesystem::path& file);

}  // namespace gainlens::runfile
