#pragma once

#include "formats/tensor_file.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gainlens::formats {

/// How numbers and their scales form the values of one tensor.
enum class ScaledForm {
  /// F8_E4M3 [rows, columns] times a scale for each block of 128 x 128, [ceil(rows / 128), ceil(columns / 128)]: how
  /// DeepSeek and Qwen publish FP8 weights.
  fp8_blocks,
  /// U8 [.., groups, 16], two numbers of E2M1 in a byte, the first in its low bits, times 2^(U8 - 127) for each group,
  /// [.., groups]: how gpt-oss is published. Values [.., 32 groups].
  mxfp4
};

inline constexpr std::int64_t fp8_block = 128;

/// A tensor that is stored as two: numbers, and scales that many of them share.
struct ScaledTensor {
  ScaledForm form{};
  TensorEntry numbers, scales;
  std::vector<std::int64_t> shape;  ///< of the values
};

/// Pairs two stored tensors.
/// @throws InvalidArgument  dtypes or shapes that do not belong together (names both tensors)
ScaledTensor scaled_tensor(ScaledForm form, const TensorEntry& numbers, const TensorEntry& scales,
                           std::string_view where);

/// The float32 values from element `begin` on, row-major: number times scale, rounded once. NaN where a number or a
/// scale is NaN (F8_E4M3 0x7F and 0xFF; scale 255 of mxfp4).
/// @pre `begin` is a multiple of 32, and begin + values.size() is one or the end
void read_scaled(const ScaledTensor& tensor, std::int64_t begin, std::span<float> values);

}  // namespace gainlens::formats
