#pragma once

#include "kernels/linear/product_kernel.h"
#include "kernels/row_alignment.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace gainlens::kernels {

/// The weight [out, in] of a linear layer, laid out for the processor.
///
/// The outputs are grouped into panels of up to 64. A panel holds the weights of its outputs input by input: [in,
/// panel columns]. (For brgemm in bfloat16 and pair_strips two inputs lie beside each other: [in / 2, panel columns,
/// 2].) A panel takes the same bytes
/// as the rows it is made of. So a weight that nobody else holds is packed in its own memory; only the last, incomplete
/// panel is copied, and filled up with zeros.
class PackedWeight {
 public:
  PackedWeight() = default;
  /// Packs in place if this is the only reference to the tensor and its storage, and it is contiguous, aligned to 64
  /// bytes and without a gradient; else into a copy.
  /// @param weight  [out, in], float64, float32, bfloat16 or float16, on the CPU; out and in > 0
  /// @param kernel  for tests and benchmarks; by default that of product_kernel()
  /// @throws InternalError  another shape or type, or a kernel that cannot take it
  explicit PackedWeight(at::Tensor weight, std::optional<ProductKernel> kernel = {});
  /// Packs a part of a tensor in its memory, or into a copy if the part is not contiguous or not aligned to 64 bytes.
  /// The caller must not use this part in any other way afterwards.
  static PackedWeight in_memory_of(const at::Tensor& part);

  bool defined() const { return whole_.defined() || rest_.defined(); }
  std::int64_t outputs() const { return outputs_; }
  std::int64_t inputs() const { return inputs_; }
  at::ScalarType type() const { return type_; }
  ProductKernel kernel() const { return kernel_; }

  /// Output columns of a panel, and the number of panels.
  std::int64_t panel_columns() const { return columns_; }
  std::int64_t panels() const { return blocks_of(outputs_, columns_); }
  /// Number of columns of a panel that are outputs.
  std::int64_t columns_of(std::int64_t panel) const { return std::min(columns_, outputs_ - panel * columns_); }
  /// The panel from input `first` on (a multiple of 2 where two inputs lie beside each other).
  const std::byte* panel(std::int64_t panel, std::int64_t first = 0) const;

  /// The weight as it was, [out, in]: a copy, unless the kernel is libtorch.
  at::Tensor plain() const;
  /// Rows of the weight, [ids.., in]. For an embedding that is also the output head.
  /// @param ids  int64, each in [0, outputs)
  at::Tensor rows(const at::Tensor& ids) const;

 private:
  void pack(at::Tensor weight, bool in_place);
  std::int64_t pair() const;  // inputs that lie beside each other

  ProductKernel kernel_ = ProductKernel::libtorch;
  at::ScalarType type_ = at::kFloat;
  std::int64_t outputs_ = 0, inputs_ = 0, columns_ = 1;
  at::Tensor whole_;  // the complete panels; the plain weight for libtorch
  at::Tensor rest_;   // the incomplete panel
};

}  // namespace gainlens::kernels
