#include "analyses/sinks.h"

#include "analyses/published_sinks.h"
#include "core/check.h"

#include <algorithm>
#include <cmath>

namespace gainlens::analyses {
namespace {

Measured read_mean(const Maybe<Cells>& cells, const std::vector<Length>& lengths, std::size_t layer, std::size_t head) {
  if (!cells) return Measured::none(cells.reason());
  std::size_t left_out = 0;
  const double value = mean_over_lengths(*cells, lengths, layer, head, 0, left_out);
  return std::isfinite(value) ? Measured(value) : Measured::none("no chunk has a finite value");
}

/// Share of chunks in which the head is a sink by the column mean of key 0.
Measured share_of_chunks(const Maybe<Cells>& column_mean, const std::vector<Length>& lengths, std::size_t layer,
                         std::size_t head) {
  if (!column_mean) return Measured::none(column_mean.reason());
  SinkCount count;
  for (const Length& length : lengths) {
    for (const std::int64_t sample : length.samples) count.add(column_mean->at(length.index, sample, layer, head));
  }
  if (count.cells == 0) return Measured::none("no chunk has a finite column mean");
  return count.share();
}

}  // namespace

Maybe<Sinks> sinks(const runfile::RunReader& reader, const Options& options) {
  CHECK(options.sinks > 0, "rows of the sink table: {}; at least 1 is needed", options.sinks);
  const auto bos_mass = Cells::read(reader, "summary/bos_mass");
  if (!bos_mass) return Maybe<Sinks>::none(bos_mass.reason());
  const auto gain = Cells::read(reader, "summary/kalman_gain");
  const auto scaled = Cells::read(reader, "summary/kalman_gain_scaled");
  const auto n_eff = Cells::read(reader, "summary/n_eff");
  const auto entropy = Cells::read(reader, "summary/entropy");
  const auto without_first = Cells::read(reader, "summary/without_first_kalman_gain");
  const auto column_mean = Cells::read(reader, "summary/column_mean");

  Sinks result{sink_lengths(reader, options), {}, {}, 0};
  for (const std::size_t layer : all_layers(reader)) {
    for (std::size_t head = 0; head < bos_mass->heads(); ++head) {
      const Measured mass = read_mean(bos_mass, result.lengths, layer, head);
      if (!mass) continue;
      const auto read = [&](const Maybe<Cells>& cells) { return read_mean(cells, result.lengths, layer, head); };
      result.ranking.push_back({0, reader.layers()[layer], static_cast<std::int64_t>(head), reader.attention()[layer],
                                *mass, read(gain), read(scaled), read(n_eff), read(entropy), read(without_first),
                                share_of_chunks(column_mean, result.lengths, layer, head)});
    }
  }
  result.all_heads = result.ranking.size();
  std::stable_sort(result.ranking.begin(), result.ranking.end(),
                   [](const SinkHead& a, const SinkHead& b) { return a.bos_mass > b.bos_mass; });
  for (std::size_t i = 0; i < result.ranking.size(); ++i) result.ranking[i].rank = i + 1;
  const std::size_t rows = std::min(result.ranking.size(), static_cast<std::size_t>(options.sinks));
  result.heads.assign(result.ranking.begin(), result.ranking.begin() + static_cast<std::ptrdiff_t>(rows));
  return result;
}

OrderedJson to_json(const Sinks& sinks) {
  OrderedJson rows = OrderedJson::array();
  for (const SinkHead& head : sinks.heads) {
    OrderedJson row{{"rank", head.rank},
                    {"layer", head.layer},
                    {"head", head.head},
                    {"attention", head.attention},
                    {"bos_mass", head.bos_mass}};
    put(row, "kalman_gain", head.kalman_gain);
    put(row, "kalman_gain_scaled", head.kalman_gain_scaled);
    put(row, "n_eff", head.n_eff);
    put(row, "entropy", head.entropy);
    put(row, "without_first_kalman_gain", head.without_first_kalman_gain);
    put(row, "sink_share", head.sink_share);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gainlens::analyses
