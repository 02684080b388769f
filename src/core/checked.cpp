#include "core/checked.h"

#include "core/check.h"

namespace gainlens {

std::int64_t checked_elements(std::span<const std::int64_t> shape, std::string_view what) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    CHECK(size >= 0, "{}: negative size {} in its shape", what, size);
    elements = checked_mul(elements, size, what);
  }
  return elements;
}

}  // namespace gainlens
