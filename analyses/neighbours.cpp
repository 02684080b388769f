#include "analyses/neighbours.h"

#include "analyses/cells.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

NeighbourCorrelation measure(std::string_view quantity, const Length& length, const std::vector<double>& values,
                             const std::vector<std::int64_t>& chunks) {
  return {
      quantity, length.tokens, mean(values), values.size(), lag_one_correlation(values, chunks), mean_interval(values)};
}

NeighbourCorrelation without_value(std::string_view quantity, const Length& length, std::size_t chunks) {
  const Measured none = Measured::none("a chunk has no finite value");
  const auto no_interval = Maybe<Interval>::none(none.reason());
  return {quantity, length.tokens, none, chunks, none, no_interval};
}

/// The chunk means of a quantity; their logarithm for lambda_obs.
std::vector<NeighbourCorrelation> rows_of(const runfile::RunReader& reader, std::string_view dataset,
                                          std::string_view quantity, const std::vector<Length>& lengths,
                                          const std::vector<std::size_t>& layers) {
  std::vector<NeighbourCorrelation> rows;
  for (const Length& length : lengths) {
    const auto found = aggregate(reader, dataset, length, layers);
    if (!found) continue;
    std::vector<double> values = found->chunk_means;
    if (quantity == "ln lambda_obs") {
      for (double& value : values) value = std::log(value);
    }
    const bool finite = std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
    rows.push_back(finite ? measure(quantity, length, values, found->chunks)
                          : without_value(quantity, length, values.size()));
  }
  return rows;
}

std::string in_words(const std::vector<NeighbourCorrelation>& rows) {
  constexpr double example = 0.3;
  const std::string general = fmt::format(
      "Every interval over chunks treats the chunks as independent. If neighbours correlate by {:g}, the variance of a "
      "mean is up to {:.2f} times as large, and a 95% interval covers less than 95%.",
      example, variance_inflation(example));
  const NeighbourCorrelation* largest = nullptr;
  std::size_t most = 0, used = 0;
  for (const NeighbourCorrelation& row : rows) {
    most = std::max(most, row.chunks);
    if (!row.correlation) continue;
    ++used;
    if (largest == nullptr || *row.correlation > *largest->correlation) largest = &row;
  }
  constexpr std::string_view cure = "--spread lays the chunks apart, which makes them less alike";
  if (largest == nullptr) {
    if (rows.empty()) return fmt::format("{} This run has no attention statistics.", general);
    return fmt::format("{} This run has at most {} per length, too few to estimate that correlation. {}.", general,
                       counted(most, "chunk"), cure);
  }
  return fmt::format(
      "{} Here the {} of neighbours is {:+.2f} ({} at {} tokens); by chance alone {} would lie within about {:.2f} of "
      "{:.2f}. The intervals do not allow for it. If neighbours are alike, they are too short. {}.",
      general, used == 1 ? "correlation" : fmt::format("largest of {} correlations", used), *largest->correlation,
      largest->quantity, format_count(largest->tokens), used == 1 ? "it" : "each",
      2 / std::sqrt(static_cast<double>(largest->chunks)), -1 / static_cast<double>(largest->chunks), cure);
}

}  // namespace

double variance_inflation(double r) {
  ASSERT(std::abs(r) < 1, "a correlation of {}", r);
  return (1 + r) / (1 - r);
}

Measured lag_one_correlation(std::span<const double> values, std::span<const std::int64_t> chunks) {
  ASSERT(values.size() == chunks.size(), "{} values of {} chunks", values.size(), chunks.size());
  if (values.size() < 3) {
    return Measured::none(fmt::format("{} chunk{}; a correlation of neighbours needs at least 3", values.size(),
                                      values.size() == 1 ? "" : "s"));
  }
  const double centre = mean(values);
  double products = 0, squares = 0;
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    squares += (values[i] - centre) * (values[i] - centre);
    if (i == 0 || chunks[i] != chunks[i - 1] + 1) continue;
    products += (values[i] - centre) * (values[i - 1] - centre);
    any = true;
  }
  if (!any) return Measured::none("no two complete chunks are neighbours in the text");
  const auto largest =
      std::max_element(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  if (alike(values, std::abs(*largest))) return Measured::none("the chunks are all equal");
  return products / squares;
}

Neighbours neighbours(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> lengths = usable_lengths(reader);
  const std::vector<std::size_t> layers = deep_layers(reader, options);
  Neighbours result;
  for (const auto& [dataset, quantity] : neighbour_quantities) {
    for (NeighbourCorrelation& row : rows_of(reader, dataset, quantity, lengths, layers))
      result.rows.push_back(std::move(row));
  }
  result.finding = in_words(result.rows);
  return result;
}

OrderedJson to_json(const Neighbours& neighbours) {
  OrderedJson json;
  json["finding"] = neighbours.finding;
  json["window"] = "deep layers, last-quarter queries";
  json["rows"] = OrderedJson::array();
  for (const NeighbourCorrelation& row : neighbours.rows) {
    OrderedJson entry{{"quantity", row.quantity}, {"tokens", row.tokens}, {"chunks", row.chunks}};
    put(entry, "lag_one_correlation", row.correlation);
    put(entry, "mean", row.mean);
    put(entry, "interval", row.interval);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::analyses
