#include "analyses/cells.h"

#include "analyses/statistics.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/quantity.h"

#include <cmath>
#include <limits>

namespace gainlens::analyses {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

Measured total_deviation(const Maybe<Cells>& variance, const std::vector<double>& cell_means,
                         const std::vector<double>& cell_variances) {
  if (!variance) return Measured::none(variance.reason());
  if (cell_variances.size() < cell_means.size()) {
    return Measured::none(
        fmt::format("{} of {} cells have no variance", cell_means.size() - cell_variances.size(), cell_means.size()));
  }
  return std::sqrt(mean(cell_variances) + population_variance(cell_means));
}

}  // namespace

Maybe<Cells> Cells::read(const runfile::RunReader& reader, std::string_view name) {
  if (!reader.request().gated && name.ends_with("/gate")) return Maybe<Cells>::none("the model has no attention gate");
  if (!reader.has(name)) return Maybe<Cells>::none(fmt::format("the run has no {}", name));
  runfile::Array array = reader.read(name);
  CHECK(array.shape.size() == 4 || array.shape.size() == 5,
        "{}: {} axes; [length, sample, layer, head] and at most one more are allowed", name, array.shape.size());
  Cells cells;
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis)
    cells.extent_[axis] = checked_cast<std::size_t>(array.shape[axis], name);
  CHECK(cells.extent_[0] == reader.lengths().size() && std::cmp_equal(cells.extent_[1], reader.samples()) &&
            cells.extent_[2] == reader.layers().size() &&
            checked_elements(array.shape, name) == checked_cast<std::int64_t>(array.values.size(), name),
        "{}: its axes do not fit the run's lengths, samples and layers", name);
  cells.values_ = std::move(array.values);
  return cells;
}

Cells Cells::of(const runfile::RunReader& reader, std::vector<double> values) {
  Cells cells;
  cells.extent_[0] = reader.lengths().size();
  cells.extent_[1] = checked_cast<std::size_t>(reader.samples(), "samples");
  cells.extent_[2] = reader.layers().size();
  cells.extent_[3] = checked_cast<std::size_t>(reader.heads(), "heads");
  ASSERT(values.size() == cells.extent_[0] * cells.extent_[1] * cells.extent_[2] * cells.extent_[3],
         "{} values of a run with other axes", values.size());
  cells.values_ = std::move(values);
  return cells;
}

double Cells::at(std::size_t length, std::int64_t sample, std::size_t layer, std::size_t head, std::size_t last) const {
  const std::size_t index[5] = {length, static_cast<std::size_t>(sample), layer, head, last};
  std::size_t offset = 0;
  for (std::size_t axis = 0; axis < 5; ++axis) {
    ASSERT(index[axis] < extent_[axis], "index {} on axis {} of extent {}", index[axis], axis, extent_[axis]);
    offset = offset * extent_[axis] + index[axis];
  }
  return values_[offset];
}

double mean_over_samples(const Cells& cells, const Length& length, std::size_t layer, std::size_t head,
                         std::size_t last, std::size_t& left_out) {
  std::vector<double> values;
  for (const std::int64_t sample : length.samples) {
    const double value = cells.at(length.index, sample, layer, head, last);
    if (std::isfinite(value)) {
      values.push_back(value);
    } else {
      ++left_out;
    }
  }
  return values.empty() ? no_value : mean(values);
}

double mean_over_lengths(const Cells& cells, const std::vector<Length>& lengths, std::size_t layer, std::size_t head,
                         std::size_t last, std::size_t& left_out) {
  std::vector<double> values;
  values.reserve(lengths.size());
  for (const Length& length : lengths) values.push_back(mean_over_samples(cells, length, layer, head, last, left_out));
  return mean(values);
}

Maybe<Aggregate> aggregate(const runfile::RunReader& reader, std::string_view name, const Length& length,
                           const std::vector<std::size_t>& layers) {
  const auto cells = Cells::read(reader, fmt::format("summary/{}", name));
  if (!cells) return Maybe<Aggregate>::none(cells.reason());
  const auto variances = Cells::read(reader, fmt::format("summary/{}_var", name));

  std::vector<double> cell_means, cell_variances, chunk_means;
  std::vector<std::int64_t> chunks;
  std::size_t left_out = 0;
  for (const std::int64_t sample : length.samples) {
    const std::size_t before = cell_means.size();
    for (const std::size_t layer : layers) {
      for (std::size_t head = 0; head < cells->heads(); ++head) {
        const double value = cells->at(length.index, sample, layer, head);
        if (!std::isfinite(value)) {
          ++left_out;
          continue;
        }
        cell_means.push_back(value);
        const double variance = variances ? variances->at(length.index, sample, layer, head) : no_value;
        if (std::isfinite(variance)) cell_variances.push_back(variance);
      }
    }
    if (cell_means.size() == before) continue;
    chunk_means.push_back(mean(std::span(cell_means).subspan(before)));
    chunks.push_back(sample);
  }
  if (cell_means.empty()) {
    return Maybe<Aggregate>::none(
        fmt::format("summary/{} has no value at {} tokens in these layers", name, format_count(length.tokens)));
  }
  const Measured deviation = total_deviation(variances, cell_means, cell_variances);
  return Aggregate{mean(chunk_means),      deviation,         mean_interval(chunk_means),
                   std::move(chunk_means), std::move(chunks), left_out};
}

}  // namespace gainlens::analyses
