#include "kernels/linear/packed_weight.h"

#include "core/check.h"
#include "kernels/fixed_sizes.h"
#include "kernels/linear/tile_kernels.h"
#include "kernels/row_alignment.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

namespace gainlens::kernels {
namespace {

std::int64_t columns_for(ProductKernel kernel) {
  return kernel == ProductKernel::brgemm ? max_panel_columns : tile_kernels().columns;
}

ProductKernel choose(const at::Tensor& weight, std::optional<ProductKernel> wanted) {
  ASSERT(weight.dim() == 2 && weight.numel() > 0 && weight.device().is_cpu(), "a weight must be [out, in] on the CPU");
  if (wanted) return *wanted;
  const ProductKernel kernel = product_kernel(weight.scalar_type());
  const bool pairs = weight.scalar_type() == at::kBFloat16 && kernel != ProductKernel::widened_strips;
  return pairs && weight.size(1) % 2 != 0 ? ProductKernel::widened_strips : kernel;
}

/// Calls work(T{}) for the unsigned type of `bytes` bytes: packing moves bits. A pair of inputs moves as one.
template <typename Work>
void with_bits(std::int64_t bytes, const Work& work) {
  bytes == 4 ? work(std::uint32_t{}) : work(std::uint16_t{});
}

/// Packs `count` rows of a weight, [count, inputs], into a panel [inputs, columns]. Columns after the rows are zero.
template <typename Bits>
void pack_panel(const Bits* rows, std::int64_t count, std::int64_t inputs, std::int64_t columns, Bits* panel) {
  for (std::int64_t input = 0; input < inputs; ++input) {
    Bits* const to = panel + input * columns;
    for (std::int64_t row = 0; row < count; ++row) to[row] = rows[row * inputs + input];
    std::fill(to + count, to + columns, Bits{0});
  }
}

}  // namespace

PackedWeight::PackedWeight(at::Tensor weight, std::optional<ProductKernel> kernel) : kernel_(choose(weight, kernel)) {
  // A part of a larger tensor would keep all of its memory.
  const bool alone = weight.use_count() == 1 && weight.storage().use_count() == 1 && !weight.requires_grad() &&
                     weight.storage().nbytes() == weight.nbytes();
  pack(std::move(weight), alone);
}

PackedWeight PackedWeight::in_memory_of(const at::Tensor& part) {
  PackedWeight packed;
  packed.kernel_ = choose(part, {});
  packed.pack(part, true);
  return packed;
}

void PackedWeight::pack(at::Tensor weight, bool in_place) {
  type_ = weight.scalar_type();
  outputs_ = weight.size(0);
  inputs_ = weight.size(1);
  ASSERT(runs_here(kernel_, type_), "{} cannot multiply {}", name_of(kernel_), c10::toString(type_));
  if (kernel_ == ProductKernel::libtorch) {
    whole_ = weight.contiguous();
    columns_ = outputs_;
    return;
  }
  ASSERT(inputs_ % pair() == 0, "{} inputs, to be multiplied in groups of {}", inputs_, pair());
  columns_ = columns_for(kernel_);
  const std::int64_t complete = outputs_ / columns_, rest = outputs_ % columns_, elements = columns_ * inputs_;
  // Vector code reads panels at aligned addresses.
  const auto address = reinterpret_cast<std::uintptr_t>(weight.const_data_ptr());
  in_place = in_place && weight.is_contiguous() && address % static_cast<std::uintptr_t>(row_alignment) == 0 &&
             elements * weight.element_size() % row_alignment == 0;
  weight = weight.contiguous();
  if (rest > 0) rest_ = at::empty({elements}, weight.options());
  if (complete > 0) {
    whole_ = in_place ? weight.flatten().narrow(0, 0, complete * elements)
                      : at::empty({complete * elements}, weight.options());
  }
  with_bits(pair() * weight.element_size(), [&]<typename Bits>(Bits) {
    const std::int64_t inputs = inputs_ / pair(), size = columns_ * inputs;
    const auto* const from = static_cast<const Bits*>(weight.const_data_ptr());
    if (rest > 0)
      pack_panel(from + complete * size, rest, inputs, columns_, static_cast<Bits*>(rest_.mutable_data_ptr()));
    auto* const to = complete > 0 ? static_cast<Bits*>(whole_.mutable_data_ptr()) : nullptr;
    at::parallel_for(0, complete, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<Bits> rows(in_place ? static_cast<std::size_t>(size) : 0);
      for (std::int64_t panel = begin; panel < end; ++panel) {
        const Bits* source = from + panel * size;
        if (in_place) {
          std::copy_n(source, size, rows.data());
          source = rows.data();
        }
        pack_panel(source, columns_, inputs, columns_, to + panel * size);
      }
    });
  });
}

std::int64_t PackedWeight::pair() const {
  const bool pairs = kernel_ == ProductKernel::brgemm || kernel_ == ProductKernel::pair_strips;
  return pairs && type_ == at::kBFloat16 ? 2 : 1;
}

const std::byte* PackedWeight::panel(std::int64_t panel, std::int64_t first) const {
  const bool last = panel == outputs_ / columns_;
  const auto* const data = static_cast<const std::byte*>((last ? rest_ : whole_).const_data_ptr());
  const std::int64_t element = (last ? 0 : panel * columns_ * inputs_) + first * columns_;
  return data + element * static_cast<std::int64_t>(c10::elementSize(type_));
}

at::Tensor PackedWeight::plain() const {
  if (kernel_ == ProductKernel::libtorch) return whole_;
  return rows(at::arange(outputs_, at::kLong));
}

at::Tensor PackedWeight::rows(const at::Tensor& ids) const {
  ASSERT(ids.scalar_type() == at::kLong, "ids must be int64");
  if (kernel_ == ProductKernel::libtorch) return at::embedding(whole_, ids);
  std::vector<std::int64_t> sizes = ids.sizes().vec();
  sizes.push_back(inputs_);
  at::Tensor result = at::empty(sizes, at::TensorOptions().dtype(type_));
  const at::Tensor flat = ids.contiguous();
  const std::int64_t* const id = flat.const_data_ptr<std::int64_t>();
  with_bits(pair() * result.element_size(), [&]<typename Bits>(Bits) {
    const std::int64_t inputs = inputs_ / pair();
    auto* const to = static_cast<Bits*>(result.mutable_data_ptr());
    at::parallel_for(0, flat.numel(), 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        ASSERT(id[row] >= 0 && id[row] < outputs_, "row {} of {}", id[row], outputs_);
        const auto* const from = reinterpret_cast<const Bits*>(panel(id[row] / columns_)) + id[row] % columns_;
        for (std::int64_t input = 0; input < inputs; ++input) to[row * inputs + input] = from[input * columns_];
      }
    });
  });
  return result;
}

}  // namespace gainlens::kernels
