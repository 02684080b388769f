#include "analyses/gain_checks.h"

#include "analyses/cells.h"
#include "analyses/gain_model.h"
#include "analyses/statistics.h"
#include "core/random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>

namespace gainlens::analyses {
namespace {

constexpr std::uint64_t split_stream = 0x5911;
constexpr std::array<std::string_view, 3> inputs = {"n_eff", "residual", "kalman_gain"};

double prior_variance(const runfile::RunReader& reader) {
  return 1.0 / static_cast<double>(reader.request().head_dim);
}

/// Means over heads, chunk by chunk, at every length.
struct ChunkMeans {
  std::vector<std::int64_t> chunks;            ///< numbers of the chunks that every length has
  std::vector<std::vector<GainMeans>> values;  ///< [length][chunk]
};

Maybe<ChunkMeans> chunk_means(const runfile::RunReader& reader, const std::vector<Length>& lengths,
                              const std::vector<std::size_t>& layers) {
  std::vector<std::map<std::int64_t, GainMeans>> by_length;
  for (const Length& length : lengths) {
    std::array<std::map<std::int64_t, double>, inputs.size()> found;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto input = aggregate(reader, inputs[i], length, layers);
      if (!input) return Maybe<ChunkMeans>::none(input.reason());
      for (std::size_t k = 0; k < input->chunks.size(); ++k) found[i][input->chunks[k]] = input->chunk_means[k];
    }
    auto& means = by_length.emplace_back();
    for (const auto& [chunk, n_eff] : found[0]) {
      if (found[1].contains(chunk) && found[2].contains(chunk)) means[chunk] = {n_eff, found[1][chunk], found[2][chunk]};
    }
  }
  ChunkMeans result;
  for (const auto& [chunk, means] : by_length.front()) {
    const bool everywhere = std::all_of(by_length.begin(), by_length.end(), [&](const auto& length) { return length.contains(chunk); });
    if (everywhere) result.chunks.push_back(chunk);
  }
  for (const auto& length : by_length) {
    auto& row = result.values.emplace_back();
    for (const std::int64_t chunk : result.chunks) row.push_back(length.at(chunk));
  }
  return result;
}

GainMeans mean_of(const std::vector<GainMeans>& chunks, std::span<const std::size_t> half) {
  GainMeans sum{0, 0, 0};
  for (const std::size_t chunk : half) {
    sum.n_eff += chunks[chunk].n_eff;
    sum.residual += chunks[chunk].residual;
    sum.gain += chunks[chunk].gain;
  }
  const auto n = static_cast<double>(half.size());
  return {sum.n_eff / n, sum.residual / n, sum.gain / n};
}

/// n over k, or `limit` + 1 where it is more than the limit.
std::int64_t binomial(std::int64_t n, std::int64_t k, std::int64_t limit) {
  std::int64_t count = 1;
  for (std::int64_t i = 1; i <= k; ++i) {
    count = count * (n - k + i) / i;  // exact: a product of i consecutive integers; small, as it stops at the limit
    if (count > limit) return limit + 1;
  }
  return count;
}

/// Orders of the chunks whose first `fitted_on` are the half that is fitted.
std::vector<std::vector<std::size_t>> orders(std::size_t chunks, std::size_t fitted_on, bool all, const Resampling& resampling) {
  std::vector<std::vector<std::size_t>> result;
  if (!all) {
    Random random(resampling.seed, split_stream);
    std::vector<std::size_t> order(chunks);
    for (std::size_t i = 0; i < chunks; ++i) order[i] = i;
    for (std::int64_t i = 0; i < resampling.splits; ++i) {
      random.shuffle(order);
      result.push_back(order);
    }
    return result;
  }
  std::vector<char> fitted(chunks, 0);
  std::fill_n(fitted.begin(), fitted_on, 1);
  do {
    std::vector<std::size_t> order;
    for (const char wanted : {1, 0}) {
      for (std::size_t i = 0; i < chunks; ++i) {
        if (fitted[i] == wanted) order.push_back(i);
      }
    }
    result.push_back(std::move(order));
  } while (std::prev_permutation(fitted.begin(), fitted.end()));
  return result;
}

OverSplits over_splits(const std::vector<double>& values) {
  const auto [least, largest] = std::minmax_element(values.begin(), values.end());
  return {mean(values), *least, *largest};
}

/// What every split found.
struct Found {
  std::vector<double> relative, constant, skills;
  std::string no_skill;
};

SplitHalf summarise(const Found& found, std::size_t chunks, std::size_t fitted_on, bool all, const Resampling& resampling) {
  return {.chunks = static_cast<std::int64_t>(chunks),
          .fitted_on = static_cast<std::int64_t>(fitted_on),
          .splits = static_cast<std::int64_t>(found.relative.size()),
          .all = all,
          .seed = resampling.seed,
          .max_relative_error = over_splits(found.relative),
          .max_constant_error = over_splits(found.constant),
          .skill = found.no_skill.empty() ? Maybe<OverSplits>(over_splits(found.skills)) : Maybe<OverSplits>::none(found.no_skill)};
}

void put(OrderedJson& json, const std::string& name, const OverSplits& value) {
  json[name] = value.mean;
  json[name + "_range"] = {value.least, value.largest};
}

OrderedJson cell_json(const CellError& cell) {
  return {{"layer", cell.layer},
          {"head", cell.head},
          {"max_relative_error", cell.max_relative_error},
          {"max_constant_error", cell.max_constant_error}};
}

}  // namespace

Maybe<SplitHalf> split_half(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> lengths = usable_lengths(reader);
  if (lengths.size() < 2) return Maybe<SplitHalf>::none("one length with a complete chunk; a prediction needs a second");
  const auto means = chunk_means(reader, lengths, deep_layers(reader, options));
  if (!means) return Maybe<SplitHalf>::none(means.reason());
  const std::size_t chunks = means->chunks.size(), fitted_on = chunks / 2;
  if (std::cmp_less(chunks, least_split_chunks)) {
    return Maybe<SplitHalf>::none(
        fmt::format("refused: {} chunks are complete at every length; a split in halves needs at least {}", chunks, least_split_chunks));
  }
  const std::int64_t limit = options.resampling.splits;
  const bool all = binomial(static_cast<std::int64_t>(chunks), static_cast<std::int64_t>(fitted_on), limit) <= limit;
  Found found;
  for (const auto& order : orders(chunks, fitted_on, all, options.resampling)) {
    const std::span<const std::size_t> fit = std::span(order).first(fitted_on), judge = std::span(order).subspan(fitted_on);
    std::vector<GainMeans> judged;
    for (std::size_t length = 1; length < lengths.size(); ++length) judged.push_back(mean_of(means->values[length], judge));
    const double constant = mean_of(means->values.front(), judge).gain;
    const auto errors = gain_errors(mean_of(means->values.front(), fit), judged, constant, prior_variance(reader));
    if (!errors) return Maybe<SplitHalf>::none(errors.reason());
    found.relative.push_back(errors->max_relative);
    found.constant.push_back(errors->max_constant);
    const Measured skill = errors->skill();
    if (skill) found.skills.push_back(*skill);
    found.no_skill = skill ? found.no_skill : skill.reason();
  }
  return summarise(found, chunks, fitted_on, all, options.resampling);
}

Maybe<CellErrors> cell_errors(const runfile::RunReader& reader, const Options& options) {
  const std::vector<Length> lengths = usable_lengths(reader);
  if (lengths.size() < 2) return Maybe<CellErrors>::none("one length with a complete chunk; a prediction needs a second");
  std::vector<Cells> cells;
  for (const std::string_view input : inputs) {
    auto read = Cells::read(reader, fmt::format("summary/{}", input));
    if (!read) return Maybe<CellErrors>::none(read.reason());
    cells.push_back(*read);
  }
  CellErrors result{{}, 0, 0, 0, {}, 0};
  std::size_t values_left_out = 0;  // a head is left out when no chunk has a value: that is what is counted
  for (const std::size_t layer : deep_layers(reader, options)) {
    for (std::size_t head = 0; head < cells[0].heads(); ++head) {
      std::vector<GainMeans> means;
      for (const Length& length : lengths) {
        const auto read = [&](std::size_t i) { return mean_over_samples(cells[i], length, layer, head, 0, values_left_out); };
        means.push_back({read(0), read(1), read(2)});
      }
      const auto errors = gain_errors(means.front(), {means.begin() + 1, means.end()}, means.front().gain, prior_variance(reader));
      if (errors) {
        result.cells.push_back({reader.layers()[layer], static_cast<std::int64_t>(head), errors->max_relative, errors->max_constant});
      } else {
        ++result.left_out;
      }
    }
  }
  if (result.cells.empty()) return Maybe<CellErrors>::none("no deep head has a K between 0 and 1 and finite n_eff and S at every length");
  std::vector<double> relative, constant;
  for (const CellError& cell : result.cells) {
    relative.push_back(cell.max_relative_error);
    constant.push_back(cell.max_constant_error);
    result.better_than_constant += cell.max_relative_error < cell.max_constant_error ? 1 : 0;
  }
  result.median_error = median(relative);
  result.median_constant_error = median(constant);
  result.worst = *std::max_element(result.cells.begin(), result.cells.end(),
                                   [](const CellError& a, const CellError& b) { return a.max_relative_error < b.max_relative_error; });
  return result;
}

OrderedJson to_json(const SplitHalf& split) {
  OrderedJson json;
  json["chunks"] = split.chunks;
  json["fitted_on"] = split.fitted_on;
  json["splits"] = split.splits;
  json["all_splits"] = split.all;
  json["seed"] = split.seed;
  put(json, "max_relative_error", split.max_relative_error);
  put(json, "max_constant_error", split.max_constant_error);
  if (split.skill) {
    put(json, "skill", *split.skill);
  } else {
    analyses::put(json, "skill", Measured::none(split.skill.reason()));
  }
  return json;
}

OrderedJson to_json(const CellErrors& errors) {
  OrderedJson json;
  json["heads"] = errors.cells.size();
  json["heads_left_out"] = errors.left_out;
  json["median_max_relative_error"] = errors.median_error;
  json["median_max_constant_error"] = errors.median_constant_error;
  json["heads_better_than_constant"] = errors.better_than_constant;
  json["worst"] = cell_json(errors.worst);
  json["cells"] = OrderedJson::array();
  for (const CellError& cell : errors.cells) json["cells"].push_back(cell_json(cell));
  return json;
}

}  // namespace gainlens::analyses
