// The operators of the Python package, on torch's stable ABI alone: one library for every Python and for torch 2.11 and
// newer.

#include "attention_core.h"

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace gainlens::python {
namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

ElementType element_type(const char* name, const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Float:
      return ElementType::float32;
    case ScalarType::Double:
      return ElementType::float64;
    case ScalarType::Half:
      return ElementType::float16;
    case ScalarType::BFloat16:
      return ElementType::bfloat16;
    default:
      break;
  }
  throw std::runtime_error(std::string("attention_statistics: ") + name +
                           " has a dtype that is not float32, float64, float16 or bfloat16");
}

void require(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error("attention_statistics: " + message);
}

TensorView view_of(const char* name, const Tensor& tensor) {
  require(tensor.is_cpu(), std::string(name) + " must be on the CPU");
  require(tensor.dim() == 4, std::string(name) + " must be [batch, head, position, dimension]");
  TensorView view{.data = tensor.const_data_ptr(), .type = element_type(name, tensor), .sizes = {}, .strides = {}};
  for (std::size_t i = 0; i < 4; ++i) {
    view.sizes[i] = tensor.size(static_cast<std::int64_t>(i));
    view.strides[i] = tensor.stride(static_cast<std::int64_t>(i));
    require(view.sizes[i] > 0, std::string(name) + " has a size of 0");
  }
  return view;
}

/// Tasks are taken one by one, so that threads that finish early take more. Exceptions must not cross torch's C
/// interface: the first one is thrown again in the caller's thread.
Threads torch_threads() {
  const auto workers = static_cast<std::int64_t>(torch::stable::get_num_threads());
  return {.workers = workers,
          .run = [workers](std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& task) {
            std::atomic<std::int64_t> next = 0;
            std::exception_ptr failure;
            std::mutex mutex;
            torch::stable::parallel_for(0, std::min(workers, count), 1, [&](std::int64_t begin, std::int64_t end) {
              for (std::int64_t worker = begin; worker < end; ++worker) {
                try {
                  for (std::int64_t index = next++; index < count; index = next++) task(worker, index);
                } catch (...) {
                  const std::lock_guard lock(mutex);
                  if (failure == nullptr) failure = std::current_exception();
                  next = count;
                }
              }
            });
            if (failure != nullptr) std::rethrow_exception(failure);
          }};
}

Tensor filled(const Tensor& like, const std::vector<std::int64_t>& sizes, ScalarType type, double value) {
  Tensor tensor = torch::stable::new_empty(like, sizes, type);
  if (tensor.numel() > 0) torch::stable::fill_(tensor, value);
  return tensor;
}

void check_keys_of_query(const AttentionCall& call) {
  const std::int64_t keys = call.key.sizes[2];
  for (std::int64_t i = 0; i < call.query.sizes[0] * call.query.sizes[2]; ++i) {
    const KeysOfQuery& seen = call.keys_of_query[i];
    if (seen.begin >= seen.end) continue;
    require(seen.begin >= std::max<std::int64_t>(seen.origin, 0) && seen.end <= keys,
            "keys [" + std::to_string(seen.begin) + ", " + std::to_string(seen.end) + ") of the text from key " +
                std::to_string(seen.origin) + " on; must be within the " + std::to_string(keys) + " keys");
  }
}

using Results = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

template <typename Real>
Results compute(const AttentionCall& call, const Tensor& query) {
  constexpr ScalarType type = std::is_same_v<Real, double> ? ScalarType::Double : ScalarType::Float;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::int64_t batch = call.query.sizes[0], heads = call.query.sizes[1], queries = call.query.sizes[2];
  Tensor output = filled(query, {batch, queries, heads, call.value.sizes[3]}, type, 0);
  Tensor scalars = filled(query, {scalar_count(), batch, heads, queries}, type, nan);
  Tensor first_mass = filled(query, {batch, heads, queries, call.first_masses}, type, nan);
  Tensor top_key = filled(query, {batch, heads, queries, call.top_keys}, ScalarType::Long, -1);
  Tensor top_weight = filled(query, {batch, heads, queries, call.top_keys}, type, nan);
  attention_statistics<Real>(call, torch_threads(),
                             {.output = static_cast<Real*>(output.mutable_data_ptr()),
                              .scalars = static_cast<Real*>(scalars.mutable_data_ptr()),
                              .first_mass = static_cast<Real*>(first_mass.mutable_data_ptr()),
                              .top_key = static_cast<std::int64_t*>(top_key.mutable_data_ptr()),
                              .top_weight = static_cast<Real*>(top_weight.mutable_data_ptr())});
  if (query.scalar_type() != type) {
    Tensor narrow = torch::stable::new_empty(query, output.sizes(), query.scalar_type());
    torch::stable::copy_(narrow, output);
    output = narrow;
  }
  return {torch::stable::transpose(output, 1, 2), scalars, first_mass, top_key, top_weight};
}

/// @param query          [batch, head, query, key_dim]
/// @param key            [batch, kv_head, key, key_dim]
/// @param value          [batch, kv_head, key, value_dim]
/// @param keys_of_query  [batch, query, 3] int64: begin, end, origin (attention_core.h)
/// @param sink_logit     [head] float64, or none
/// @returns  output [batch, head, query, value_dim]; scalars [scalar, batch, head, query]; first_mass; top_key;
///           top_weight
Results statistics_operator(Tensor query, Tensor key, Tensor value, Tensor keys_of_query,
                            std::optional<Tensor> sink_logit, double scale, double soft_cap, double prior_strength,
                            double prior_variance, double prior_precision, std::int64_t summary,
                            std::int64_t first_masses, std::int64_t top_keys) {
  AttentionCall call{.query = view_of("query", query),
                     .key = view_of("key", key),
                     .value = view_of("value", value),
                     .keys_of_query = nullptr,
                     .sink_logit = nullptr,
                     .scale = scale,
                     .soft_cap = soft_cap,
                     .priors = {.strength = prior_strength, .variance = prior_variance},
                     .prior_precision = prior_precision,
                     .summary = static_cast<kernels::Summary>(std::clamp<std::int64_t>(summary, 0, 2)),
                     .first_masses = first_masses,
                     .top_keys = top_keys};
  require(call.key.type == call.query.type && call.value.type == call.query.type,
          "query, key and value must have one dtype");
  require(call.key.sizes[0] == call.query.sizes[0] && call.value.sizes[0] == call.query.sizes[0],
          "query, key and value must have one batch size");
  require(call.key.sizes[3] == call.query.sizes[3], "query and key must have one last dimension");
  require(call.key.sizes[1] == call.value.sizes[1] && call.key.sizes[2] == call.value.sizes[2],
          "key and value must have the same heads and positions");
  require(call.query.sizes[1] % call.key.sizes[1] == 0, "query heads must be a multiple of kv heads");
  require(first_masses >= 0 && first_masses <= kernels::first_keys && top_keys >= 0, "first_masses or top_keys");
  require(keys_of_query.is_cpu() && keys_of_query.scalar_type() == ScalarType::Long && keys_of_query.is_contiguous() &&
              keys_of_query.dim() == 3 && keys_of_query.size(0) == call.query.sizes[0] &&
              keys_of_query.size(1) == call.query.sizes[2] && keys_of_query.size(2) == 3,
          "keys_of_query must be contiguous int64 [batch, query, 3] on the CPU");
  static_assert(sizeof(KeysOfQuery) == 3 * sizeof(std::int64_t));
  call.keys_of_query = static_cast<const KeysOfQuery*>(keys_of_query.const_data_ptr());
  check_keys_of_query(call);
  if (sink_logit.has_value()) {
    require(sink_logit->is_cpu() && sink_logit->scalar_type() == ScalarType::Double && sink_logit->is_contiguous() &&
                sink_logit->dim() == 1 && sink_logit->size(0) == call.query.sizes[1],
            "sink_logit must be contiguous float64 [head] on the CPU");
    call.sink_logit = static_cast<const double*>(sink_logit->const_data_ptr());
  }
  return call.query.type == ElementType::float64 ? compute<double>(call, query) : compute<float>(call, query);
}

std::string names_operator() {
  return scalar_names();
}

}  // namespace
}  // namespace gainlens::python

STABLE_TORCH_LIBRARY(gainlens, library) {
  library.def(
      "attention_statistics(Tensor query, Tensor key, Tensor value, Tensor keys_of_query, Tensor? sink_logit, "
      "float scale, float soft_cap, float prior_strength, float prior_variance, float prior_precision, int summary, "
      "int first_masses, int top_keys) -> (Tensor output, Tensor scalars, Tensor first_mass, Tensor top_key, "
      "Tensor top_weight)");
  library.def("scalar_names() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(gainlens, CPU, library) {
  library.impl("attention_statistics", TORCH_BOX(&gainlens::python::statistics_operator));
}

STABLE_TORCH_LIBRARY_IMPL(gainlens, CompositeExplicitAutograd, library) {
  library.impl("scalar_names", TORCH_BOX(&gainlens::python::names_operator));
}
