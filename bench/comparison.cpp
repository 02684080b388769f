#include "bench/comparison.h"

#include "core/error.h"
#include "kernels/counted_memory.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <fstream>
#include <functional>

namespace gainlens::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown processor";
}

/// Runs a method for the first time: counts its memory, and finds out whether its backend exists.
MethodResult first_run(const Method& method) {
  MethodResult result{.name = method.name, .times = {}, .reason = "", .operations = method.operations};
  try {
    result.peak_bytes = method.held_bytes + kernels::testing::peak_bytes_of(method.run);
  } catch (const InvalidArgument& error) {  // NotCompiled too
    if (method.name != method::composed) throw;
    result.reason = error.what();
  }
  return result;
}

OrderedJson to_json(const CaseResult& result, const MethodResult& method) {
  if (!method.times) return {{"seconds", nullptr}, {"seconds_reason", method.reason}};
  OrderedJson json = {{"seconds", method.times->median},    {"seconds_low", method.times->low},
                      {"seconds_high", method.times->high}, {"runs", method.times->runs},
                      {"operations", method.operations},    {"gflops", 1e-9 * method.operations_per_second()}};
  if (method.name != method::matrix_product) {
    json["ratio_to_sdpa"] = *result.ratio_to_sdpa(method.name);
    json["peak_bytes"] = method.peak_bytes;
  }
  return json;
}

OrderedJson to_json(const CaseResult& result) {
  const AttentionCase& shape = result.shape;
  OrderedJson json = {{"length", shape.length},     {"heads", shape.heads}, {"kv_heads", shape.kv_heads},
                      {"head_dim", shape.head_dim}, {"window", nullptr},    {"dtype", dtype_name(shape.dtype)}};
  if (shape.window) json["window"] = *shape.window;
  for (const MethodResult& method : result.methods) json["methods"][method.name] = to_json(result, method);
  return json;
}

MethodResult method_of(const std::string& name, const Json& json) {
  MethodResult result{.name = name, .times = {}, .reason = ""};
  if (json.at("seconds").is_null()) {
    result.reason = json.at("seconds_reason").get<std::string>();
    return result;
  }
  result.times = RunTimes{json.at("seconds").get<double>(), json.at("seconds_low").get<double>(),
                          json.at("seconds_high").get<double>(), json.at("runs").get<std::int64_t>()};
  result.operations = json.at("operations").get<double>();
  if (json.contains("peak_bytes")) result.peak_bytes = json.at("peak_bytes").get<std::int64_t>();
  return result;
}

CaseResult case_of(const Json& json) {
  CaseResult result;
  result.shape = {json.at("length").get<std::int64_t>(),
                  json.at("heads").get<std::int64_t>(),
                  json.at("kv_heads").get<std::int64_t>(),
                  json.at("head_dim").get<std::int64_t>(),
                  {},
                  dtype_named(json.at("dtype").get<std::string>())};
  if (!json.at("window").is_null()) result.shape.window = json.at("window").get<std::int64_t>();
  check_case(result.shape);
  // The order is that of the tables, which may differ from that of the file.
  for (const std::string_view name : all_methods) {
    const std::string key(name);
    if (json.at("methods").contains(key)) result.methods.push_back(method_of(key, json.at("methods").at(key)));
  }
  return result;
}

}  // namespace

Machine this_machine() {
  return {processor_name(), at::get_cpu_capability(), TORCH_VERSION, at::get_num_threads()};
}

const MethodResult* CaseResult::measured(std::string_view name) const {
  for (const MethodResult& method : methods) {
    if (method.name == name && method.times) return &method;
  }
  return nullptr;
}

std::optional<double> CaseResult::ratio_to_sdpa(std::string_view name) const {
  const MethodResult *method = measured(name), *floor = measured(method::sdpa);
  if (method == nullptr || floor == nullptr) return std::nullopt;
  return method->times->median / floor->times->median;
}

CaseResult compare_methods(const AttentionCase& shape, const MethodChoice& choice, const RunBudget& budget) {
  const std::vector<Method> methods = methods_of(shape, choice);
  CaseResult result{.shape = shape, .methods = {}};
  std::vector<std::function<void()>> runs;
  for (const Method& method : methods) {
    result.methods.push_back(first_run(method));
    if (result.methods.back().reason.empty()) runs.push_back(method.run);
  }
  const std::vector<RunTimes> times = interleaved_times(runs, budget);
  auto next = times.begin();
  for (MethodResult& method : result.methods) {
    if (method.reason.empty()) method.times = *next++;
  }
  return result;
}

OrderedJson to_json(const Machine& machine) {
  return {{"processor", machine.processor},
          {"instructions", machine.instructions},
          {"libtorch", machine.libtorch},
          {"threads", machine.threads}};
}

OrderedJson to_json(const Comparison& comparison) {
  OrderedJson json = {
      {"machine", to_json(comparison.machine)}, {"copy_bytes_per_second", nullptr}, {"cases", OrderedJson::array()}};
  if (comparison.copy_rate) json["copy_bytes_per_second"] = *comparison.copy_rate;
  for (const CaseResult& result : comparison.cases) json["cases"].push_back(to_json(result));
  return json;
}

Comparison comparison_of(const Json& json, std::string_view where) {
  try {
    const Json& machine = json.at("machine");
    Comparison comparison;
    comparison.machine = {machine.at("processor").get<std::string>(), machine.at("instructions").get<std::string>(),
                          machine.at("libtorch").get<std::string>(), machine.at("threads").get<std::int64_t>()};
    if (!json.at("copy_bytes_per_second").is_null())
      comparison.copy_rate = json.at("copy_bytes_per_second").get<double>();
    for (const Json& result : json.at("cases")) comparison.cases.push_back(case_of(result));
    return comparison;
  } catch (const Json::exception& error) {
    throw_invalid("{}: not what --json writes ({}); give a file made by attention_statistics_bench --json",
                  printable(where), printable(error.what(), 120));
  }
}

}  // namespace gainlens::bench
