#include "analyses/depth.h"

#include <map>
#include <string>

namespace gainlens::analyses {
namespace {

using runfile::DepthCarried;
using runfile::DepthChunk;
using runfile::DepthLayer;

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
      entry["of_sum"] = row.truth->of_sum;
      entry["of_carried"] = row.truth->of_carried;
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
