#include "bench/error_table.h"

#include "bench/attention_case.h"
#include "core/error.h"
#include "kernels/attention_agreement.h"
#include "kernels/attention_cases.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cmath>
#include <limits>

namespace gainlens::bench {
namespace {

using kernels::AttentionBackend;
using kernels::AttentionOptions;
using kernels::QueryStatistics;
using kernels::testing::HardCase;
using kernels::testing::Inputs;

constexpr at::ScalarType dtypes[] = {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf};
constexpr std::int64_t length = 257, head_dim = 64;  // one query more than whole tiles

struct Place {
  std::string name;
  AttentionBackend backend;
  at::DeviceType device;
};

const std::vector<Place>& places() {
  static const std::vector<Place> all = {{"streaming", AttentionBackend::streaming, at::kCPU},
                                         {"composed", AttentionBackend::composed, at::kCPU},
                                         {"composed, cuda", AttentionBackend::composed, at::kCUDA},
                                         {"fused, cuda", AttentionBackend::fused_cuda, at::kCUDA}};
  return all;
}

/// The hard cases of the tests, and some plain ones.
std::vector<HardCase> error_cases() {
  std::vector<HardCase> cases = {{"normal", {}, kernels::testing::random_inputs(length, head_dim, 1, 2)},
                                 {"one_position", {}, kernels::testing::random_inputs(1, head_dim, 1, 2)}};
  AttentionOptions hidden{.key_bias = at::zeros({length}, at::TensorOptions(at::kDouble))};
  // The first third of the queries sees no key.
  hidden.key_bias.narrow(0, 0, length / 3).fill_(-std::numeric_limits<double>::infinity());
  cases.push_back({"hidden_rows", hidden, cases.front().inputs});
  for (HardCase& hard : kernels::testing::hard_cases(length, head_dim)) cases.push_back(std::move(hard));
  return cases;
}

QueryStatistics computed(const Place& place, AttentionOptions options, const Inputs& in) {
  options.backend = place.backend;
  kernels::AttentionPlan plan(std::move(options));
  return attention_statistics(plan, in.query.to(place.device), in.key.to(place.device), in.value.to(place.device));
}

bool one_number(const at::Tensor& values) {
  return values.min().equal(values.max());
}

WorstError worst_error(const Place& place, const HardCase& hard, at::ScalarType dtype) {
  WorstError worst{
      .backend = place.name, .hard_case = hard.name, .dtype = dtype, .error = {}, .field = "", .reason = ""};
  const Inputs in = kernels::testing::cast(hard.inputs, dtype);
  // Then the case has lost its meaning: S is 0 and has no relative error.
  if (one_number(in.value) && !one_number(hard.inputs.value)) {
    worst.reason = "all values round to the same number";
    return worst;
  }
  QueryStatistics actual;
  try {
    actual = computed(place, hard.options, in);
  } catch (const std::runtime_error& error) {  // no such backend, dtype or option; values exceed the range of the dtype
    worst.reason = error.what();
    return worst;
  }
  const QueryStatistics expected = kernels::testing::reference(hard.options, in);
  for (const auto& field : kernels::testing::all_tensors()) {
    if (!(expected.*field.tensor).defined()) continue;
    at::Tensor& tensor = actual.*field.tensor;
    if (tensor.defined()) tensor = tensor.cpu();
    const double error = tensor.defined() ? kernels::testing::field_error(field, actual, expected)
                                          : std::numeric_limits<double>::infinity();
    if (worst.error && !(error > *worst.error)) continue;
    worst.error = error;
    worst.field = field.name;
  }
  return worst;
}

std::string error_line(const WorstError& error, bool new_case) {
  const std::string start = fmt::format("  {:<18}{:<10}", new_case ? error.hard_case : "", dtype_name(error.dtype));
  return error.error ? fmt::format("{}{:>8.1e}  {}\n", start, *error.error, error.field)
                     : fmt::format("{}{:>8}  {}\n", start, "-", error.reason);
}

}  // namespace

std::vector<WorstError> measured_errors() {
  std::vector<WorstError> errors;
  const std::vector<HardCase> cases = error_cases();
  for (const Place& place : places()) {
    if (place.device == at::kCUDA && !at::hasCUDA()) {
      errors.push_back({place.name, "", at::kFloat, {}, "", "this machine has no GPU"});
      continue;
    }
    for (const HardCase& hard : cases) {
      for (const at::ScalarType dtype : dtypes) errors.push_back(worst_error(place, hard, dtype));
    }
  }
  return errors;
}

std::string error_table(const std::vector<WorstError>& errors) {
  std::string text = fmt::format(
      "largest error against float64 and its field; T {}, d {}, inputs rounded to the dtype first; errors are "
      "relative, "
      "those of the output to its largest element\n",
      length, head_dim);
  std::string backend, last_case;
  for (const WorstError& error : errors) {
    if (error.backend != backend) text += fmt::format("\n{}\n", error.backend);
    text += error.hard_case.empty() ? fmt::format("  - {}\n", error.reason)
                                    : error_line(error, error.backend != backend || error.hard_case != last_case);
    backend = error.backend;
    last_case = error.hard_case;
  }
  return text;
}

OrderedJson to_json(const std::vector<WorstError>& errors) {
  OrderedJson json = OrderedJson::array();
  for (const WorstError& error : errors) {
    OrderedJson entry = {{"backend", error.backend}};
    if (!error.hard_case.empty()) {
      entry["case"] = error.hard_case;
      entry["dtype"] = dtype_name(error.dtype);
    }
    if (error.error && std::isfinite(*error.error)) {
      entry["error"] = *error.error;
      entry["field"] = error.field;
    } else {
      entry["error"] = nullptr;
      entry["error_reason"] =
          error.error ? fmt::format("{}: NaN or infinite, but the reference is not", error.field) : error.reason;
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace gainlens::bench
