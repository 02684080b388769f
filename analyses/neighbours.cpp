#include "analyses/neighbours.h"

#include "analyses/cells.h"
#include "core/check.h"
#include "core/counted.h"
#include "core/quantity.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

double width(const Interval& interval) {
  return interval.high - interval.low;
}

/// Why no interval allows for neighbours; empty if one does.
std::string refusal(const Measured& correlation, const std::vector<std::int64_t>& chunks) {
  if (!correlation) return correlation.reason();
  if (chunks.size() < least_neighbours)
    return fmt::format("{} chunks; an interval that allows for neighbours takes at least {}", chunks.size(),
                       least_neighbours);
  if (chunks.back() - chunks.front() + 1 != std::ssize(chunks))
    return "a chunk is missing between others, and the interval needs the chunks one after another";
  return {};
}

NeighbourCorrelation measure(std::string_view quantity, const Length& length, const std::vector<double>& values,
                             const std::vector<std::int64_t>& chunks) {
  NeighbourCorrelation row{quantity,
                           length.tokens,
                           mean(values),
                           values.size(),
                           lag_one_correlation(values, chunks),
                           mean_interval(values),
                           Maybe<Interval>::none("unset"),
                           Measured::none("unset")};
  if (const std::string reason = refusal(row.correlation, chunks); !reason.empty()) {
    row.allowing = Maybe<Interval>::none(reason);
    row.widening = Measured::none(reason);
    return row;
  }
  const Interval allowing = self_normalised_interval(values);
  row.allowing = width(allowing) > width(*row.interval) ? allowing : *row.interval;
  row.widening = width(*row.allowing) / width(*row.interval);
  return row;
}

NeighbourCorrelation without_value(std::string_view quantity, const Length& length, std::size_t chunks) {
  const Measured none = Measured::none("a chunk has no finite value");
  const auto no_interval = Maybe<Interval>::none(none.reason());
  return {quantity, length.tokens, none, chunks, none, no_interval, no_interval, none};
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
    if (!row.allowing) continue;
    ++used;
    if (largest == nullptr || *row.correlation > *largest->correlation) largest = &row;
  }
  constexpr std::string_view cure = "--spread lays the chunks apart, which makes them less alike";
  if (largest == nullptr) {
    if (rows.empty()) return fmt::format("{} This run has no attention statistics.", general);
    if (most >= least_neighbours) return fmt::format("{} {}.", general, cure);
    return fmt::format("{} This run has at most {} per length; an interval that allows for it takes at least {}. {}.",
                       general, counted(most, "chunk"), least_neighbours, cure);
  }
  return fmt::format(
      "{} Here the {} of neighbours is {:+.2f} ({} at {} tokens); by chance alone {} would lie within about {:.2f} of "
      "{:.2f}. The interval that allows for neighbours is {:.2f} times as wide there. It holds what it states up to a "
      "correlation of {:g}. {}.",
      general, used == 1 ? "correlation" : fmt::format("largest of {} correlations", used), *largest->correlation,
      largest->quantity, format_count(largest->tokens), used == 1 ? "it" : "each",
      2 / std::sqrt(static_cast<double>(largest->chunks)), -1 / static_cast<double>(largest->chunks),
      *largest->widening, most_correlation, cure);
}

}  // namespace

double variance_inflation(double r) {
  ASSERT(std::abs(r) < 1, "a correlation of {}", r);
  return (1 + r) / (1 - r);
}

Interval self_normalised_interval(std::span<const double> values) {
  ASSERT(values.size() >= 2, "an interval of {} values", values.size());
  constexpr double factor = 6.747;  // 97.5% quantile
  const double centre = mean(values), n = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value - centre;
    squares += sum * sum;
  }
  const double reach = factor * std::sqrt(squares) / (n * std::sqrt(n));
  return {centre - reach, centre + reach};
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
  if (!(squares > 0)) return Measured::none("the chunks are all equal");
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
    put(entry, "interval_allowing_for_it", row.allowing);
    put(entry, "widening", row.widening);
    json["rows"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::analyses
