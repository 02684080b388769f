#include "formats/safetensors.h"

#include "core/check.h"
#include "core/checked.h"

namespace gainlens::formats {

std::size_t bytes_for(std::span<const std::int64_t> shape, DType dtype, std::string_view where) {
  CHECK(shape.size() <= max_rank, "{}: shape has {} dimensions; at most {} are allowed", where, shape.size(), max_rank);
  const auto elements = checked_cast<std::size_t>(checked_elements(shape, where), where);
  const std::size_t block = elements_per_block(dtype);
  if (block == 1) return checked_mul(elements, bytes_per_block(dtype), where);
  const auto last = shape.empty() ? std::size_t{1} : static_cast<std::size_t>(shape.back());
  CHECK(last % block == 0, "{}: a last dimension of {}; {} comes in blocks of {}, so it must be a multiple of that",
        where, last, name_of(dtype), block);
  return checked_mul(elements / block, bytes_per_block(dtype), where);
}

}  // namespace gainlens::formats
