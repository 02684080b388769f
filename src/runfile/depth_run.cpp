#include "runfile/depth_run.h"

#include "core/check.h"
#include "core/json.h"
#include "core/json_words.h"
#include "runfile/run_proof.h"

#include <cmath>

namespace gainlens::runfile {
namespace {

Json carried_json(const DepthCarried& carried) {
  Json json = Json::object();
  for (std::size_t reading = 0; reading < depth_readings.size(); ++reading)
    json[std::string(depth_readings[reading])] = carried[reading];
  return json;
}

Json layer_json(const DepthLayer& layer) {
  Json json = {{"layer", layer.layer},
               {"variance", carried_json(layer.variance)},
               {"gain", carried_json(layer.gain)},
               {"observed", layer.observed},
               {"bound", layer.bound},
               {"jacobian", layer.jacobian}};
  if (layer.truth) {
    json["truth"] = {{"rule_error", layer.truth->rule_error},
                     {"of_sum", layer.truth->sum_ratio},
                     {"of_carried", layer.truth->carried_ratio}};
  }
  return json;
}

DepthQuantiles quantiles_from(const Json& json) {
  CHECK(json.is_array() && json.size() == depth_shares.size(), "it needs {} quantiles in each place",
        depth_shares.size());
  DepthQuantiles quantiles{};
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    quantiles[i] = json[i].get<double>();
    CHECK(std::isfinite(quantiles[i]), "a quantile is not finite");
    CHECK(i == 0 || quantiles[i - 1] <= quantiles[i], "quantiles do not ascend");
  }
  return quantiles;
}

DepthCarried carried_from(const Json& json) {
  DepthCarried carried{};
  for (std::size_t reading = 0; reading < depth_readings.size(); ++reading) {
    const Json& starts = json.at(std::string(depth_readings[reading]));
    CHECK(starts.is_array() && starts.size() == depth_starts.size(), "it needs {} starts in each place",
          depth_starts.size());
    for (std::size_t start = 0; start < depth_starts.size(); ++start)
      carried[reading][start] = quantiles_from(starts[start]);
  }
  return carried;
}

DepthLayer depth_layer_from(const Json& json) {
  DepthLayer layer{json.at("layer").get<std::int64_t>(), carried_from(json.at("variance")),
                   carried_from(json.at("gain")),        quantiles_from(json.at("observed")),
                   quantiles_from(json.at("bound")),     quantiles_from(json.at("jacobian"))};
  if (json.contains("truth")) {
    const Json& truth = json.at("truth");
    layer.truth = DepthTruth{quantiles_from(truth.at("rule_error")), quantiles_from(truth.at("of_sum")),
                             quantiles_from(truth.at("of_carried"))};
  }
  return layer;
}

DepthChunk depth_chunk_from(const Json& json) {
  DepthChunk chunk{json.at("length").get<std::int64_t>(), json.at("sample").get<std::int64_t>(),
                   json.at("queries").get<std::int64_t>()};
  CHECK(chunk.length >= 1 && chunk.sample >= 0 && chunk.queries >= 1, "a chunk has a length, a sample and queries");
  for (const Json& layer : json.at("layers")) {
    chunk.layers.push_back(depth_layer_from(layer));
    CHECK(chunk.layers.back().layer + 1 == std::ssize(chunk.layers), "its layers must begin at 0 and have no gap");
  }
  CHECK(!chunk.layers.empty(), "a chunk has no layers");
  chunk.last = carried_from(json.at("last"));
  return chunk;
}

}  // namespace

void write_depth_run(const std::filesystem::path& folder, const DepthRun& run) {
  Json chunks = Json::array();
  for (const DepthChunk& chunk : run.chunks) {
    Json layers = Json::array();
    for (const DepthLayer& layer : chunk.layers) layers.push_back(layer_json(layer));
    chunks.push_back({{"length", chunk.length},
                      {"sample", chunk.sample},
                      {"queries", chunk.queries},
                      {"layers", layers},
                      {"last", carried_json(chunk.last)}});
  }
  const Json json = {{"format", depth_format}, {"version", depth_version}, {"request", run.request},
                     {"shares", depth_shares}, {"starts", depth_starts},   {"chunks", chunks}};
  write_with_checksum(folder / depth_file, json_text(json, 1) + "\n");
}

std::optional<DepthRun> read_depth_run(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / depth_file;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  prove_by_neighbour(file);
  const Json json = read_json_file(file);
  CHECK(!json.is_object() || !json.contains("version") || json["version"] != 1,
        "{}: is of version 1, whose error of the diagonal rule rested on drawn errors; delete it and repeat the sweep "
        "with --depth-precision",
        printable(file.string()));
  try {
    CHECK(json.at("format") == depth_format && json.at("version") == depth_version, "another format or version");
    CHECK(json.at("shares") == Json(depth_shares) && json.at("starts") == Json(depth_starts),
          "other quantiles or starts than this version has");
    DepthRun run{json.at("request").get<std::string>(), {}};
    for (const Json& chunk : json.at("chunks")) {
      run.chunks.push_back(depth_chunk_from(chunk));
      CHECK(run.chunks.back().layers.size() == run.chunks.front().layers.size(), "its chunks have different layers");
    }
    CHECK(!run.chunks.empty(), "it has no chunks");
    return run;
  } catch (const Json::exception& failure) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the sweep with --depth-precision",
                  printable(file.string()), json_error_in_words(failure));
  } catch (const InvalidArgument& failure) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the sweep with --depth-precision",
                  printable(file.string()), failure.what());
  }
}

}  // namespace gainlens::runfile
