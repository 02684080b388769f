#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

// The tables that a training leaves in its folder: their writers and their readers.

namespace gainlens::runfile {

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
