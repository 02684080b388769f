#include "kernels/linear/linear.h"

#include "core/check.h"
#include "kernels/elementwise/row_vectors.h"
#include "kernels/gradient_tracking.h"
#include "kernels/linear/tile_products.h"
#include "kernels/parallel_tasks.h"
#include "kernels/row_alignment.h"
#include "kernels/tensor_elements.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace gainlens::kernels {
namespace {

/// A bias in float32; null if there is none.
class Bias {
 public:
  explicit Bias(const at::Tensor& bias) {
    if (bias.defined()) values_ = bias.to(at::kFloat).contiguous();
  }
  const float* from(std::int64_t output) const {
    return values_.defined() ? values_.const_data_ptr<float>() + output : nullptr;
  }

 private:
  at::Tensor values_;
};

/// A tensor [.., columns] as rows; rows are contiguous.
at::Tensor as_rows(const at::Tensor& x) {
  const at::Tensor rows = x.dim() == 2 ? x : x.reshape({-1, x.size(-1)});
  return rows.stride(1) == 1 || rows.size(1) == 1 ? rows : rows.contiguous();
}

std::vector<std::int64_t> with_last(const at::Tensor& x, std::int64_t last) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.back() = last;
  return sizes;
}

void check_bias(const at::Tensor& bias, const PackedWeight& weight) {
  if (!bias.defined()) return;
  ASSERT(bias.dim() == 1 && bias.size(0) == weight.outputs(), "a bias of {} for {} outputs", bias.numel(),
         weight.outputs());
  ASSERT(!is_tracked(bias), "a product with a packed weight has no gradient");
}

void check_input(const at::Tensor& input, const PackedWeight& weight) {
  ASSERT(weight.defined(), "a product with a weight that is not there");
  ASSERT(input.dim() >= 1 && input.size(-1) == weight.inputs(), "{} inputs for a weight of {}", input.size(-1),
         weight.inputs());
  ASSERT(input.scalar_type() == weight.type(), "input in {}, weight in {}", c10::toString(input.scalar_type()),
         c10::toString(weight.type()));
  ASSERT(!is_tracked(input), "a product with a packed weight has no gradient");
}

/// Where a block of a tensor's rows and columns lies.
template <typename Rows>
Rows place(const at::Tensor& rows, std::int64_t row, std::int64_t column) {
  return {mutable_element(rows, row * rows.stride(0) + column), rows.stride(0)};
}

/// Calls finish(products, row, rows, panel) for every block of rows and every panel of a weight.
template <typename Finish>
void for_each_tile(const at::Tensor& input, const PackedWeight& weight, const Finish& finish) {
  const std::int64_t rows = input.size(0), panels = weight.panels();
  if (rows == 0) return;
  const ProductTasks tasks = cut_into_tasks(weight, rows, panels);
  run_tasks_with(tasks.count(), [&](std::int64_t) {
    return [&, products = std::make_unique<TileProducts>(weight, tasks.rows_per_block, 1)](std::int64_t task) {
      const std::int64_t row = task / tasks.chunks * tasks.rows_per_block;
      const std::int64_t count = std::min(tasks.rows_per_block, rows - row);
      products->take_rows(input, row, count);
      const std::int64_t first = task % tasks.chunks * tasks.panels_per_chunk;
      for (std::int64_t panel = first; panel < std::min(first + tasks.panels_per_chunk, panels); ++panel)
        finish(*products, row, count, panel);
    };
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.NewDeleteLeaks): the function object owns it
  });
}

/// Rows that at::linear gets at a time: the bits of its products may depend on the number of rows.
constexpr std::int64_t libtorch_rows = 512;

at::Tensor activated_by_libtorch(const at::Tensor& x, Activation activation) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::gelu_erf:
      return at::gelu(x, "none");
    case Activation::relu:
      return at::relu(x);
    case Activation::squared_relu:
      return at::relu(x).square();
  }
  throw_internal_error(__FILE__, __LINE__, "an activation without its function");
}

at::Tensor gated_by_libtorch(const at::Tensor& gates, const at::Tensor& neurons, const GateFunction& function) {
  if (!function.clipped) return activated_by_libtorch(gates, function.activation) * neurons;
  const at::Tensor clipped = gates.clamp_max(function.limit);
  return (neurons.clamp(-function.limit, function.limit) + 1) * (clipped * at::sigmoid(clipped * function.alpha));
}

/// Products by at::linear, a block of rows at a time.
at::Tensor linear_by_libtorch(const at::Tensor& rows, const PackedWeight& weight, const at::Tensor& bias) {
  const at::Tensor plain = weight.plain();
  const at::Tensor typed = bias.defined() ? bias.to(weight.type()) : bias;
  at::Tensor result = at::empty({rows.size(0), weight.outputs()}, rows.options());
  for (std::int64_t begin = 0; begin < rows.size(0); begin += libtorch_rows) {
    const std::int64_t end = std::min(begin + libtorch_rows, rows.size(0));
    result.slice(0, begin, end).copy_(at::linear(rows.slice(0, begin, end), plain, typed));
  }
  return result;
}

}  // namespace

at::Tensor linear(const at::Tensor& input, const PackedWeight& weight, const LinearOptions& options) {
  check_input(input, weight);
  check_bias(options.bias, weight);
  const at::Tensor rows = as_rows(input);
  const std::vector<std::int64_t> sizes = with_last(input, weight.outputs());
  for (const at::Tensor* tensor : {&options.residual, &options.output}) {
    ASSERT(!tensor->defined() || (tensor->sizes() == sizes && tensor->scalar_type() == weight.type()),
           "a residual or an output that does not fit the product");
    ASSERT(!is_tracked(*tensor), "a product with a packed weight has no gradient");
  }
  ASSERT(!options.output.defined() || options.output.is_contiguous(), "an output must be contiguous");
  at::Tensor result = options.output.defined() ? options.output : at::empty(sizes, input.options());
  if (weight.kernel() == ProductKernel::libtorch) {
    at::Tensor product = activated_by_libtorch(linear_by_libtorch(rows, weight, options.bias), options.activation);
    product = product.view(sizes);
    return result.copy_(options.residual.defined() ? product + options.residual : product);
  }
  const Bias bias(options.bias);
  const ElementType type = element_type(weight.type());
  const at::Tensor output = result.view({-1, weight.outputs()});
  const at::Tensor residual = options.residual.defined() ? as_rows(options.residual) : at::Tensor();
  for_each_tile(rows, weight, [&](TileProducts& products, std::int64_t row, std::int64_t count, std::int64_t panel) {
    const std::int64_t column = panel * weight.panel_columns();
    const float* const tile = products.multiply(weight, panel, 1);
    tile_kernels().finish(count, weight.columns_of(panel), tile, products.stride(), bias.from(column),
                          options.activation, type,
                          residual.defined() ? place<ConstStoredRows>(residual, row, column) : ConstStoredRows{},
                          place<StoredRows>(output, row, column));
  });
  return result;
}

at::Tensor gated_linear(const at::Tensor& input, const PackedWeight& gate, const PackedWeight& neurons,
                        const at::Tensor& gate_bias, const at::Tensor& neuron_bias, const GateFunction& function) {
  check_input(input, gate);
  check_input(input, neurons);
  check_bias(gate_bias, gate);
  check_bias(neuron_bias, neurons);
  ASSERT(gate.outputs() == neurons.outputs() && gate.kernel() == neurons.kernel(), "gate and neurons do not fit");
  const at::Tensor rows = as_rows(input);
  if (gate.kernel() == ProductKernel::libtorch) {
    return gated_by_libtorch(linear_by_libtorch(rows, gate, gate_bias), linear_by_libtorch(rows, neurons, neuron_bias),
                             function)
        .view(with_last(input, gate.outputs()));
  }
  const Bias added_to_gate(gate_bias), added_to_neurons(neuron_bias);
  const ElementType type = element_type(gate.type());
  at::Tensor result = at::empty(with_last(input, gate.outputs()), input.options());
  const at::Tensor output = result.view({-1, gate.outputs()});
  for_each_tile(rows, gate, [&](TileProducts& products, std::int64_t row, std::int64_t count, std::int64_t panel) {
    const std::int64_t column = panel * gate.panel_columns();
    const float* const gates = products.multiply(gate, panel, 1, 0);
    const float* const tile = products.multiply(neurons, panel, 1, 1);
    tile_kernels().finish_gated(count, gate.columns_of(panel), gates, tile, products.stride(),
                                added_to_gate.from(column), added_to_neurons.from(column), function, type,
                                place<StoredRows>(output, row, column));
  });
  return result;
}

namespace {

/// Calls work(first, count, buffers) for parts of `elements` numbers, in parallel. The buffers are two rows of float32.
template <typename Work>
void for_each_part(std::int64_t elements, const Work& work) {
  constexpr std::int64_t part = 4096;
  at::parallel_for(0, blocks_of(elements, part), 8, [&](std::int64_t begin, std::int64_t end) {
    const at::Tensor buffers = at::empty({2, part}, at::kFloat);
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index * part;
      work(first, std::min(part, elements - first), buffers.mutable_data_ptr<float>(),
           buffers.mutable_data_ptr<float>() + part);
    }
  });
}

}  // namespace

at::Tensor gated(const at::Tensor& gates, const at::Tensor& neurons, const GateFunction& function) {
  ASSERT(gates.sizes() == neurons.sizes() && gates.scalar_type() == neurons.scalar_type(), "gate and neurons differ");
  if (!gates.is_cpu() || gates.scalar_type() == at::kDouble || is_tracked(gates) || is_tracked(neurons))
    return gated_by_libtorch(gates, neurons, function);
  const ElementType type = element_type(gates.scalar_type());
  const at::Tensor left = gates.contiguous(), right = neurons.contiguous();
  at::Tensor result = at::empty(gates.sizes(), gates.options());
  for_each_part(left.numel(), [&](std::int64_t first, std::int64_t count, float* wide_gates, float* wide_neurons) {
    const TileKernels& kernels = tile_kernels();
    row_vectors().widen(type, element(left, first), count, wide_gates);
    row_vectors().widen(type, element(right, first), count, wide_neurons);
    kernels.finish_gated(1, count, wide_gates, wide_neurons, 0, nullptr, nullptr, function, type,
                         {mutable_element(result, first), 0});
  });
  return result;
}

at::Tensor activated(const at::Tensor& x, Activation activation) {
  if (activation == Activation::none) return x;
  if (!x.is_cpu() || x.scalar_type() == at::kDouble || is_tracked(x)) return activated_by_libtorch(x, activation);
  const ElementType type = element_type(x.scalar_type());
  const at::Tensor from = x.contiguous();
  at::Tensor result = at::empty(x.sizes(), x.options());
  for_each_part(from.numel(), [&](std::int64_t first, std::int64_t count, float* wide, float*) {
    const TileKernels& kernels = tile_kernels();
    row_vectors().widen(type, element(from, first), count, wide);
    kernels.finish(1, count, wide, 0, nullptr, activation, type, {}, {mutable_element(result, first), 0});
  });
  return result;
}

}  // namespace gainlens::kernels
