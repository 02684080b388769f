#include "kernels/linear/brgemm.h"

#include <ATen/native/CPUBlas.h>
#include <sys/mman.h>

#include <array>
#include <mutex>
#include <new>
#include <set>

namespace gainlens::kernels {
namespace {

/// More than oneDNN takes for the code of a shape (256 KiB) together with what the other threads take meanwhile.
constexpr std::size_t spare_bytes = std::size_t{8} << 20;

void check_memory_is_left() {
  void* const spare =
      ::mmap(nullptr, spare_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (spare == MAP_FAILED) throw std::bad_alloc();
  ::munmap(spare, spare_bytes);
}

void multiply(const BrgemmProduct& product, const std::byte* left, const std::byte* right, float* tile) {
  const auto call = [&](const auto* typed_left, const auto* typed_right, bool is_packed) {
    at::native::cpublas::brgemm(product.rows, product.columns, product.inputs, product.left_stride, product.columns,
                                product.tile_stride, product.add, typed_left, typed_right, tile, is_packed);
  };
  if (product.type == at::kBFloat16) {
    call(reinterpret_cast<const at::BFloat16*>(left), reinterpret_cast<const at::BFloat16*>(right), true);
  } else {
    call(reinterpret_cast<const float*>(left), reinterpret_cast<const float*>(right), false);
  }
}

}  // namespace

void brgemm(const BrgemmProduct& product, const std::byte* left, const std::byte* right, float* tile) {
  using Shape = std::array<std::int64_t, 7>;
  thread_local std::set<Shape> made;  // libtorch keeps the code of each for the life of the thread
  const Shape shape{static_cast<std::int64_t>(product.type),
                    product.rows,
                    product.columns,
                    product.inputs,
                    product.left_stride,
                    product.tile_stride,
                    product.add};
  if (made.contains(shape)) return multiply(product, left, right, tile);
  static std::mutex one_at_a_time;  // so that no other thread takes the memory for its code
  const std::lock_guard lock(one_at_a_time);
  made.insert(shape);
  try {
    check_memory_is_left();
    multiply(product, left, right, tile);
  } catch (...) {
    made.erase(shape);
    throw;
  }
}

}  // namespace gainlens::kernels
