#include "formats/safetensors.h"

#include "core/checked.h"
#include "core/error.h"

namespace gainlens::formats {

std::size_t bytes_for(std::span<const std::int64_t> shape, DType dtype, std::string_view where) {
  CHECK(shape.size() <= max_rank, "{}: shape has {} dimensions; at most {} are allowed", where, shape.size(), max_rank);
  const auto elements = checked_cast<std::size_t>(checked_elements(shape, where), where);
  return checked_mul(elements, bytes_per_element(dtype), where);
}

}  // namespace gainlens::formats
