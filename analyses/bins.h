#pragma once

#include <cstdint>

namespace gainlens::analyses {

/// First position of a bin: bin b of `bins` holds the positions t with floor(bins t / tokens) = b.
constexpr std::int64_t bin_start(std::int64_t bin, std::int64_t bins, std::int64_t tokens) {
  // ceil(bin tokens / bins) without the product, which could overflow for numbers from a file
  const std::int64_t whole = tokens / bins, part = tokens % bins;
  return bin * whole + (bin * part + bins - 1) / bins;
}

}  // namespace gainlens::analyses
