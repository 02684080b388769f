#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace gainlens::models {

/// A tensor that grows along its positions. Its memory doubles when it is full, so what is there is seldom copied. The
/// first positions can be forgotten. Evaluation only: appending writes in place.
class GrowingRows {
 public:
  /// @param rows  [.., position, size]; every call has the same other dimensions and the same type
  /// @throws InternalError  other dimensions or another type than those of the first call
  void append(const at::Tensor& rows);
  /// Forgets all but the last `count` positions.
  void keep_last(std::int64_t count);
  /// [.., position, size]: a view, until the next call of append().
  at::Tensor view() const;
  std::int64_t positions() const { return end_ - begin_; }
  /// The bytes of the memory that is held, with what is still free of it.
  std::uint64_t bytes() const { return memory_.defined() ? memory_.nbytes() : 0; }

 private:
  at::Tensor memory_;                 // [.., capacity, size]
  std::int64_t begin_ = 0, end_ = 0;  // the positions that are in use
};

}  // namespace gainlens::models
