#pragma once

#include "core/error.h"
#include "kernels/compute_device.h"

#include <c10/core/Device.h>

#include <filesystem>
#include <optional>

namespace gainlens::testing {

/// The first GPU, ready to compute; empty on a machine without one.
inline std::optional<at::Device> gpu() {
  std::error_code error;
  if (!std::filesystem::exists("/dev/nvidiactl", error)) return std::nullopt;  // loading libtorch's part takes seconds
  try {
    return kernels::compute_device("cuda");
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
}

inline constexpr const char* gpu_is_missing = "SKIPPED: no GPU that libtorch can use";

}  // namespace gainlens::testing
