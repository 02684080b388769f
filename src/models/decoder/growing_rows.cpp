#include "models/decoder/growing_rows.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

namespace gainlens::models {
namespace {

constexpr std::int64_t fewest_positions = 64;

/// The sizes of `rows` with another number of positions.
std::vector<std::int64_t> sizes_with(const at::Tensor& rows, std::int64_t positions) {
  std::vector<std::int64_t> sizes = rows.sizes().vec();
  sizes[sizes.size() - 2] = positions;
  return sizes;
}

}  // namespace

void GrowingRows::append(const at::Tensor& rows) {
  ASSERT(rows.dim() >= 2, "growing rows: {} dimensions", rows.dim());
  const std::int64_t more = rows.size(-2), held = positions();
  if (memory_.defined()) {
    ASSERT(rows.scalar_type() == memory_.scalar_type() && rows.sizes() == at::IntArrayRef(sizes_with(memory_, more)),
           "growing rows: what is appended does not fit what is there");
  }
  if (!memory_.defined() || end_ + more > memory_.size(-2)) {
    // Twice what is in use: forgotten positions at the start become free again.
    const std::int64_t capacity = std::max(fewest_positions, 2 * (held + more));
    at::Tensor memory = at::empty(sizes_with(rows, capacity), rows.options());
    if (held > 0) memory.narrow(-2, 0, held).copy_(view());
    memory_ = memory;
    begin_ = 0;
    end_ = held;
  }
  memory_.narrow(-2, end_, more).copy_(rows);
  end_ += more;
}

void GrowingRows::keep_last(std::int64_t count) {
  begin_ = std::max(begin_, end_ - count);
}

at::Tensor GrowingRows::view() const {
  return memory_.narrow(-2, begin_, positions());
}

}  // namespace gainlens::models
