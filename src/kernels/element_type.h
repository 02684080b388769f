#pragma once

namespace gainlens::kernels {

/// Element type of activations and of stored weights.
enum class ElementType { float32, bfloat16, float16 };

}  // namespace gainlens::kernels
