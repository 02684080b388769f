#include "analyses/cell_errors.h"

#include "analyses/cells.h"
#include "analyses/gain_model.h"
#include "analyses/statistics.h"

#include <algorithm>
#include <array>

namespace gainlens::analyses {
namespace {

constexpr std::array<std::string_view, 3> inputs = {"n_eff", "residual", "kalman_gain"};

}  // namespace

OrderedJson to_json(const CellError& cell) {
  return {{"layer", cell.layer},
          {"head", cell.head},
          {"max_relative_error", cell.max_relative_error},
          {"max_constant_error", cell.max_constant_error}};
}

Maybe<CellErrors> cell_errors(const runfile::RunReader& reader, const Options& options) {
  if (const std::string reason = other_estimator(reader.request()); !reason.empty())
    return Maybe<CellErrors>::none(reason);
  const std::vector<Length> lengths = usable_lengths(reader);
  if (lengths.size() < 2)
    return Maybe<CellErrors>::none("only one length has a complete chunk; a prediction needs a second one");
  std::vector<Cells> cells;
  for (const std::string_view input : inputs) {
    auto read = Cells::read(reader, fmt::format("summary/{}", input));
    if (!read) return Maybe<CellErrors>::none(read.reason());
    cells.push_back(*read);
  }
  CellErrors result{{}, 0, 0, 0, {}, 0};
  std::size_t values_left_out = 0;  // unused: a head is left out, and counted, only if no chunk has a value
  for (const std::size_t layer : deep_layers(reader, options)) {
    for (std::size_t head = 0; head < cells[0].heads(); ++head) {
      std::vector<GainMeans> means;
      for (const Length& length : lengths) {
        const auto read = [&](std::size_t i) {
          return mean_over_samples(cells[i], length, layer, head, 0, values_left_out);
        };
        means.push_back({read(0), read(1), read(2)});
      }
      const auto errors = gain_errors(means.front(), {means.begin() + 1, means.end()}, means.front().gain,
                                      prior_variance(reader.request()));
      if (errors) {
        result.cells.push_back(
            {reader.layers()[layer], static_cast<std::int64_t>(head), errors->max_relative, errors->max_constant});
      } else {
        ++result.left_out;
      }
    }
  }
  if (result.cells.empty())
    return Maybe<CellErrors>::none("no deep head has a K between 0 and 1 and finite n_eff and S at every length");
  std::vector<double> relative, constant;
  for (const CellError& cell : result.cells) {
    relative.push_back(cell.max_relative_error);
    constant.push_back(cell.max_constant_error);
    result.better_than_constant += cell.max_relative_error < cell.max_constant_error ? 1 : 0;
  }
  result.median_error = median(relative);
  result.median_constant_error = median(constant);
  result.worst = *std::max_element(
      result.cells.begin(), result.cells.end(),
      [](const CellError& a, const CellError& b) { return a.max_relative_error < b.max_relative_error; });
  return result;
}

OrderedJson to_json(const CellErrors& errors) {
  OrderedJson json;
  json["heads"] = errors.cells.size();
  json["heads_left_out"] = errors.left_out;
  json["median_max_relative_error"] = errors.median_error;
  json["median_max_constant_error"] = errors.median_constant_error;
  json["heads_better_than_constant"] = errors.better_than_constant;
  json["worst"] = to_json(errors.worst);
  json["cells"] = to_json(errors.cells);
  return json;
}

}  // namespace gainlens::analyses
