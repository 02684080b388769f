#include "bench/long_error_table.h"

#include "core/check.h"
#include "core/quantity.h"
#include "kernels/gradient/attention_gradient.h"
#include "kernels/long_texts.h"

#include <ATen/Context.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

namespace gainlens::bench {
namespace {

using kernels::AttentionBackend;
using kernels::testing::Inputs;
using kernels::testing::LongCase;

constexpr std::int64_t head_dim = 64, queries = 64;

/// One way to compute S of every query and dimension, [head, query, head_dim].
struct Way {
  std::string name;
  at::DeviceType device;
  std::function<at::Tensor(const kernels::AttentionOptions&, const Inputs&)> residual;
};

Way backend_way(std::string name, AttentionBackend backend, at::DeviceType device) {
  return {std::move(name), device, [backend](kernels::AttentionOptions options, const Inputs& in) {
            options.backend = backend;
            return kernels::testing::streamed(options, in).residual_by_dimension;
          }};
}

std::vector<Way> ways() {
  return {backend_way("streaming", AttentionBackend::streaming, at::kCPU),
          backend_way("composed", AttentionBackend::composed, at::kCPU),
          {"gradient", at::kCPU,
           [](const kernels::AttentionOptions& options, const Inputs& in) {
             return kernels::attention_with_gradient(options, in.query, in.key, in.value).residual;
           }},
          backend_way("composed, cuda", AttentionBackend::composed, at::kCUDA),
          backend_way("fused, cuda", AttentionBackend::fused_cuda, at::kCUDA)};
}

LongError measured(const Way& way, const LongCase& hard, std::int64_t length, const at::Tensor& expected) {
  LongError result{way.name, hard.name, length, {}, {}};
  if (way.device == at::kCUDA && !at::hasCUDA()) {
    result.reason = "this machine has no GPU";
    return result;
  }
  kernels::AttentionOptions options = hard.options;
  if (options.key_bias.defined()) options.key_bias = options.key_bias.to(way.device);
  const Inputs in{hard.inputs.query.to(way.device), hard.inputs.key.to(way.device), hard.inputs.value.to(way.device)};
  try {
    result.error = kernels::testing::error_of_residual(way.residual(options, in).cpu(), expected, hard.inputs.value);
  } catch (const std::runtime_error& error) {  // this build does not have the backend
    result.reason = error.what();
  }
  return result;
}

}  // namespace

std::vector<LongError> long_errors(const std::vector<std::int64_t>& lengths) {
  std::vector<LongError> errors;
  for (const std::int64_t length : lengths) {
    CHECK(length > kernels::centre_keys, "--length: {}; must be above {}, where the values of the long cases change",
          length, kernels::centre_keys);
    for (const std::string& name : kernels::testing::long_case_names()) {
      const LongCase hard = kernels::testing::long_case(name, length, head_dim, queries);
      const at::Tensor expected = kernels::testing::reference(hard.options, hard.inputs).residual_by_dimension;
      for (const Way& way : ways()) errors.push_back(measured(way, hard, length, expected));
    }
  }
  return errors;
}

std::string long_error_table(const std::vector<LongError>& errors) {
  std::vector<std::pair<std::string, std::string>> rows;  // way, case
  std::vector<std::int64_t> lengths;
  std::map<std::tuple<std::string, std::string, std::int64_t>, const LongError*> cells;
  for (const Way& way : ways()) {
    for (const std::string& name : kernels::testing::long_case_names()) rows.emplace_back(way.name, name);
  }
  for (const LongError& error : errors) {
    if (std::find(lengths.begin(), lengths.end(), error.length) == lengths.end()) lengths.push_back(error.length);
    cells[{error.way, error.hard_case, error.length}] = &error;
  }
  std::string text =
      fmt::format("error of S over max (v - c)^2, last {} queries, d {}, float32 against float64\n  {:<16}{:<18}",
                  queries, head_dim, "", "");
  for (const std::int64_t length : lengths) text += fmt::format("{:>10}", format_count(length));
  for (const auto& [way, hard_case] : rows) {
    text += fmt::format("\n  {:<16}{:<18}", way, hard_case);
    for (const std::int64_t length : lengths) {
      const LongError& error = *cells.at({way, hard_case, length});
      text += error.error ? fmt::format("{:>10.1e}", *error.error) : fmt::format("  - {}", error.reason);
      if (!error.error) break;  // the reason is the same at every length
    }
  }
  return text + "\n";
}

OrderedJson to_json(const std::vector<LongError>& errors) {
  OrderedJson json = OrderedJson::array();
  for (const LongError& error : errors) {
    OrderedJson entry = {{"way", error.way}, {"case", error.hard_case}, {"length", error.length}, {"error", nullptr}};
    if (error.error) {
      entry["error"] = *error.error;
    } else {
      entry["error_reason"] = error.reason;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::bench
