#include "analyses/depth.h"

#include <cmath>
#include <map>
#include <string>
#include <string_view>

namespace gainlens::analyses {
namespace {

using runfile::DepthCarried, runfile::DepthChunk, runfile::DepthLayer;

/// Adds a share of what one chunk shows.
void add_medians(DepthMedians& sum, const DepthCarried& carried, double share) {
  for (std::size_t reading = 0; reading < sum.size(); ++reading) {
    for (std::size_t start = 0; start < sum[reading].size(); ++start)
      sum[reading][start] += share * carried[reading][start][runfile::depth_median];
  }
}

void add_layer(DepthRow& row, const DepthLayer& layer, double share) {
  row.layer = layer.layer;
  add_medians(row.variance, layer.variance, share);
  add_medians(row.gain, layer.gain, share);
  row.observed += share * layer.observed[runfile::depth_median];
  row.bound += share * layer.bound[runfile::depth_median];
  for (std::size_t i = 0; i < row.jacobian.size(); ++i) row.jacobian[i] += share * layer.jacobian[i];
  if (layer.truth) row.truth = layer.truth;
}

OrderedJson json_of(const DepthMedians& medians) {
  OrderedJson json = OrderedJson::object();
  for (std::size_t reading = 0; reading < medians.size(); ++reading)
    json[std::string(runfile::depth_readings[reading])] = medians[reading];
  return json;
}

}  // namespace

std::vector<DepthAtLength> depth_by_length(const runfile::DepthRun& run) {
  std::map<std::int64_t, std::vector<const DepthChunk*>> chunks;
  for (const DepthChunk& chunk : run.chunks) chunks[chunk.length].push_back(&chunk);
  std::vector<DepthAtLength> lengths;
  for (const auto& [tokens, length_chunks] : chunks) {
    DepthAtLength& found = lengths.emplace_back();
    found.tokens = tokens;
    found.samples = std::ssize(length_chunks);
    found.layers.resize(length_chunks.front()->layers.size());
    const double share = 1 / static_cast<double>(length_chunks.size());
    for (const DepthChunk* chunk : length_chunks) {
      for (std::size_t layer = 0; layer < found.layers.size(); ++layer)
        add_layer(found.layers[layer], chunk->layers[layer], share);
      add_medians(found.last, chunk->last, share);
    }
  }
  return lengths;
}

Table layers_of(std::span<const DepthAtLength> lengths) {
  constexpr auto filter = static_cast<std::size_t>(runfile::DepthReading::filter),
                 gain_one = static_cast<std::size_t>(runfile::DepthReading::gain_one);
  const std::size_t start = runfile::depth_start, median = runfile::depth_median;
  Table table{"depth-layers",
              "Medians over coordinates and queries of the last quarter; the first P is the "
              "variance of the embedded text.",
              {{.key = "length", .heading = "", .show = whole},
               {.key = "layer", .heading = "layer", .show = whole},
               {.key = "observed", .heading = "O", .show = significant<3>},
               {.key = "bound", .heading = "", .show = significant<3>},
               {.key = "jacobian", .heading = "J", .show = with_sign<3>}}};
  for (const char* what : {"P", "K"}) {
    for (const std::string_view reading : runfile::depth_readings) {
      for (std::size_t i = 0; i < runfile::depth_starts.size(); ++i) {
        const bool shown = what[0] == 'K' && i == start;
        table.columns.push_back({.key = fmt::format("{} {} start {:g}", what, reading, runfile::depth_starts[i]),
                                 .heading = shown ? fmt::format("K {}", reading) : "",
                                 .show = significant<3>});
      }
    }
  }
  const auto readers = [&](const char* heading, Show show) {
    table.columns.push_back({.key = heading, .heading = heading, .show = show, .csv = ""});
  };
  readers("lambda filter", significant<3>);
  readers("lambda gain-one", significant<3>);
  readers("bound/O", significant<3>);
  const auto has_truth = [](const DepthAtLength& length) {
    return std::ranges::any_of(length.layers, [](const DepthRow& row) { return row.truth.has_value(); });
  };
  const bool truth = std::ranges::any_of(lengths, has_truth);
  if (truth) {
    readers("error of the diagonal rule [5%, 95%]", words);
    readers("drawn errors over P gain-one", significant<3>);
    readers("over P of MLPs", significant<3>);
  }
  const auto ratio = [](double above, double below) {
    const double value = above / below;
    return std::isfinite(value) ? TableValue(value) : TableValue(std::nullopt, "it is divided by 0");
  };
  for (const DepthAtLength& length : lengths) {
    for (const DepthRow& row : length.layers) {
      std::vector<TableValue>& cells = table.rows.emplace_back();
      cells = {length.tokens, row.layer, row.observed, row.bound, row.jacobian[median]};
      for (const auto* medians : {&row.variance, &row.gain}) {
        for (const auto& by_start : *medians) cells.insert(cells.end(), by_start.begin(), by_start.end());
      }
      cells.insert(cells.end(), {ratio(1, row.variance[filter][start]), ratio(1, row.variance[gain_one][start]),
                                 ratio(row.bound, row.observed)});
      if (!truth) continue;
      if (!row.truth) {
        cells.resize(cells.size() + 3);
        continue;
      }
      const runfile::DepthQuantiles& error = row.truth->rule_error;
      cells.insert(cells.end(), {fmt::format("{:+.0f}% [{:+.0f}, {:+.0f}]", 100 * error[median], 100 * error.front(),
                                             100 * error.back()),
                                 row.truth->sum_ratio[median], row.truth->carried_ratio[median]});
    }
  }
  return table;
}

std::string last_layer_words(const DepthAtLength& length) {
  std::string text = fmt::format(
      "After the last layer lambda is {:.3g} (filter) and {:.3g} (gain-one). K of the last "
      "layer where the first P is",
      1 / length.last[0][runfile::depth_start], 1 / length.last[1][runfile::depth_start]);
  for (std::size_t start = 0; start < runfile::depth_starts.size(); ++start) {
    text += fmt::format("{} {:g} times that: {:.3g} (filter), {:.3g} (gain-one)", start == 0 ? "" : ";",
                        runfile::depth_starts[start], length.layers.back().gain[0][start],
                        length.layers.back().gain[1][start]);
  }
  return text + ".";
}

OrderedJson to_json(const std::vector<DepthAtLength>& lengths) {
  OrderedJson json = OrderedJson::array();
  for (const DepthAtLength& length : lengths) {
    OrderedJson layers = OrderedJson::array();
    for (const DepthRow& row : length.layers) {
      OrderedJson& entry = layers.emplace_back(OrderedJson{{"layer", row.layer},
                                                           {"variance", json_of(row.variance)},
                                                           {"gain", json_of(row.gain)},
                                                           {"observed", row.observed},
                                                           {"bound", row.bound},
                                                           {"jacobian", row.jacobian}});
      if (!row.truth) continue;
      entry["rule_error"] = row.truth->rule_error;
      entry["of_sum"] = row.truth->sum_ratio;
      entry["of_carried"] = row.truth->carried_ratio;
    }
    json.push_back({{"tokens", length.tokens},
                    {"samples", length.samples},
                    {"starts", runfile::depth_starts},
                    {"layers", layers},
                    {"last", json_of(length.last)}});
  }
  return json;
}

}  // namespace gainlens::analyses
