#include "kernels/streaming/key_sums.h"

#include "kernels/parallel_tasks.h"
#include "kernels/streaming/row_kernels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace gainlens::kernels {
namespace {

/// Allows for rounding of the bounds: each term by a few units in the last place of float32, and sums of up to 120
/// terms in it.
constexpr double bound_slack = 1 - 1e-4;

struct NarrowKey {
  std::int64_t head, key;
};

/// The keys whose bound reaches the wanted mean, and key 0 of each head, which has no bound.
template <typename Real>
std::vector<NarrowKey> large_keys(const NarrowInputs<Real>& in, const std::vector<WorkerBuffers>& workers) {
  at::Tensor bounds = at::zeros({in.shape.heads, in.shape.length}, at::kDouble);
  for (const WorkerBuffers& worker : workers) bounds.add_(worker.key_sums);
  std::vector<NarrowKey> found;
  const double least = bound_slack * in.options.returned.min_key_mean;
  const auto bound = bounds.accessor<double, 2>();
  const auto queries = in.counts.template accessor<std::int64_t, 2>();
  for (std::int64_t head = 0; head < in.shape.heads; ++head) {
    for (std::int64_t key = 0; key < in.shape.length; ++key) {
      if (queries[head][key] == 0) continue;
      if (key == 0 || bound[head][key] >= least * static_cast<double>(queries[head][key])) found.push_back({head, key});
    }
  }
  return found;
}

/// Sums of p over the queries from the first of each window on.
template <typename Real>
class NarrowPass {
 public:
  explicit NarrowPass(const NarrowInputs<Real>& in)
      : in_(in),
        query_(in.query.template const_data_ptr<Real>()),
        key_(in.key.template const_data_ptr<Real>()),
        normaliser_(in.normaliser.template const_data_ptr<double>()),
        kernels_(row_kernels<Real>()),
        begins_(key_window_begins(in.shape.length)) {}

  std::array<double, key_windows> sums(NarrowKey at) const {
    std::array<double, key_windows> sums{};
    const KeyRange queries = seeing_queries(in_.options, in_.shape.length, at.key);
    for (std::int64_t begin = queries.begin; begin < queries.end;) {
      std::int64_t end = std::min(begin + step, queries.end);
      for (const std::int64_t border : begins_) {  // a piece lies in one part of the text
        if (border > begin) end = std::min(end, border);
      }
      const double sum = sum_of(at, begin, end);
      for (std::size_t window = 0; window < sums.size(); ++window) {
        if (begin >= begins_[window]) sums[window] += sum;
      }
      begin = end;
    }
    return sums;
  }

 private:
  static constexpr std::int64_t step = 256;

  /// Sum of p over the queries [begin, end).
  double sum_of(NarrowKey at, std::int64_t begin, std::int64_t end) const {
    if (in_.first_mass.defined() && at.key < in_.first_mass.size(2)) return sum_of_first(at, begin, end);
    alignas(64) std::array<Real, step> scores{};
    const std::int64_t count = end - begin;
    const Real* key = key_ + at.head / in_.shape.group * in_.key.stride(0) + at.key * in_.key.stride(1);
    const Real* first = query_ + at.head * in_.query.stride(0) + begin * in_.query.stride(1);
    kernels_.scores_of_key(key, {first, in_.query.stride(1)}, count, in_.shape.key_dim,
                           static_cast<Real>(in_.shape.scale), scores.data());
    if (in_.options.soft_cap > 0) kernels_.cap_scores(scores.data(), 0, count, static_cast<Real>(in_.options.soft_cap));
    const Real key_bias = bias(in_.key_bias, at.head, at.key);
    for (std::int64_t i = 0; i < count; ++i) {
      scores[static_cast<std::size_t>(i)] +=
          key_bias + bias(in_.distance_bias, at.head, in_.shape.length - 1 + at.key - begin - i);
    }
    return kernels_.sum_of_weights(scores.data(), normaliser_ + at.head * in_.shape.length + begin, count);
  }

  /// The same, of a key whose weights the result holds.
  double sum_of_first(NarrowKey at, std::int64_t begin, std::int64_t end) const {
    const std::int64_t stride = in_.first_mass.size(2);
    const Real* mass = in_.first_mass.template const_data_ptr<Real>() + at.head * in_.shape.length * stride + at.key;
    double sum = 0;
    for (std::int64_t query = begin; query < end; ++query) {
      const auto p = static_cast<double>(mass[query * stride]);
      sum += std::isnan(p) ? 0 : p;  // the query sees no key
    }
    return sum;
  }

  static Real bias(const at::Tensor& rows, std::int64_t head, std::int64_t place) {
    if (!rows.defined()) return 0;
    return rows.const_data_ptr<Real>()[(rows.size(0) > 1 ? head * rows.stride(0) : 0) + place];
  }

  const NarrowInputs<Real>& in_;
  const Real *query_, *key_;
  const double* normaliser_;
  const RowKernels<Real>& kernels_;
  const std::array<std::int64_t, key_windows> begins_;
};

}  // namespace

at::Tensor sums_of_all_keys(const AttentionShape& shape, const std::vector<WorkerBuffers>& workers) {
  at::Tensor parts = at::zeros({shape.heads, key_windows, shape.length}, at::kLong);
  for (const WorkerBuffers& worker : workers) parts.add_(worker.key_sums);
  // The last part belongs to every window, the middle one to the first two.
  return parts.flip(1).cumsum(1).flip(1).to(at::kDouble) / key_sum_unit(shape.length);
}

template <typename Real>
at::Tensor sums_of_large_keys(const NarrowInputs<Real>& in, const std::vector<WorkerBuffers>& workers) {
  const std::vector<NarrowKey> keys = large_keys(in, workers);
  at::Tensor sums = at::zeros({in.shape.heads, key_windows, in.shape.length}, at::kDouble);
  auto target = sums.accessor<double, 3>();
  const NarrowPass<Real> pass(in);
  run_tasks(std::ssize(keys), [&](std::int64_t, std::int64_t task) {
    const NarrowKey at = keys[static_cast<std::size_t>(task)];
    const auto found = pass.sums(at);
    for (std::int64_t window = 0; window < key_windows; ++window)
      target[at.head][window][at.key] = found[static_cast<std::size_t>(window)];
  });
  return sums;
}

template at::Tensor sums_of_large_keys(const NarrowInputs<float>&, const std::vector<WorkerBuffers>&);
template at::Tensor sums_of_large_keys(const NarrowInputs<double>&, const std::vector<WorkerBuffers>&);

}  // namespace gainlens::kernels
