#include "models/checkpoint/tensor_values.h"

#include "core/check.h"
#include "core/checked.h"
#include "formats/dequantise.h"
#include "formats/mapped_file.h"
#include "models/all_finite.h"
#include "models/checkpoint/torch_dtype.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace gainlens::models {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian and is read without swapping");

/// The tensor in its own dtype: a view of the mapped file if its address is aligned, else a copy.
at::Tensor stored_values(const formats::TensorEntry& entry, at::ScalarType dtype) {
  const auto address = reinterpret_cast<std::uintptr_t>(entry.bytes.data());
  if (address % c10::elementSize(dtype) == 0) {
    // from_blob takes a mutable pointer; the view is only read from.
    return at::from_blob(const_cast<std::byte*>(entry.bytes.data()), entry.shape, at::TensorOptions().dtype(dtype));
  }
  at::Tensor copy = at::empty(entry.shape, at::TensorOptions().dtype(dtype));
  std::memcpy(copy.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
  return copy;
}

/// Describes the values that are not finite: "3 of 16 values, the first at [0, 2]".
std::string describe_not_finite(const at::Tensor& values) {
  const at::Tensor places = at::isfinite(values).logical_not().nonzero();  // [place, dimension]
  std::vector<std::int64_t> first;
  for (std::int64_t dimension = 0; dimension < places.size(1); ++dimension)
    first.push_back(places[0][dimension].item<std::int64_t>());
  return fmt::format("{} of {} values, the first at [{}]", places.size(0), values.numel(), fmt::join(first, ", "));
}

/// The float32 values of a quantised tensor, from element `begin` on. `values` is contiguous.
/// @pre `begin` and the number of values are whole blocks
void dequantise_part(const formats::TensorEntry& entry, std::int64_t begin, const at::Tensor& values) {
  const std::size_t per_block = formats::elements_per_block(entry.dtype);
  const std::size_t block_bytes = formats::bytes_per_block(entry.dtype);
  const auto count = static_cast<std::size_t>(values.numel());
  formats::dequantise(
      entry.dtype,
      entry.bytes.subspan(static_cast<std::size_t>(begin) / per_block * block_bytes, count / per_block * block_bytes),
      {values.mutable_data_ptr<float>(), count});
}

/// The values of a tensor in the file, in the dtype in which they are checked.
class StoredValues {
 public:
  explicit StoredValues(const formats::TensorEntry& entry) : name_(entry.name), shape_(entry.shape) {
    if (formats::is_quantised(entry.dtype)) {
      decode_ = [&entry](std::int64_t begin, const at::Tensor& values) { dequantise_part(entry, begin, values); };
      block_elements_ = formats::elements_per_block(entry.dtype);
      block_bytes_ = formats::bytes_per_block(entry.dtype);
      if (entry.file != nullptr) mapped_ = entry.bytes;
      return;
    }
    const auto dtype = weight_dtype(entry.dtype);
    ASSERT(dtype.has_value(), "tensor '{}' is not floating point", entry.name);
    values_ = stored_values(entry, *dtype).flatten();
    block_bytes_ = values_.element_size();
    if (entry.file != nullptr) mapped_ = entry.bytes;
  }
  explicit StoredValues(const formats::ScaledTensor& tensor) : name_(tensor.numbers.name), shape_(tensor.shape) {
    decode_ = [&tensor](std::int64_t begin, const at::Tensor& values) {
      formats::read_scaled(tensor, begin, {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
    };
  }

  const std::string& name() const { return name_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  /// Elements [begin, end). A decoded part is put into `place` if that is float32, else into new memory.
  at::Tensor part(std::int64_t begin, std::int64_t end, const at::Tensor& place) const {
    if (!decode_) return values_.slice(0, begin, end);
    const at::Tensor values = place.scalar_type() == at::kFloat ? place : at::empty({end - begin}, at::kFloat);
    decode_(begin, values);
    return values;
  }
  /// Gives the pages of elements that were read back, so that no tensor is in memory twice.
  void release(std::int64_t begin, std::int64_t end) const {
    if (!mapped_.empty()) formats::release_pages(mapped_.subspan(offset_of(begin), offset_of(end) - offset_of(begin)));
  }
  /// All of them, in the tensor's shape, to describe what is wrong with them.
  at::Tensor whole() const {
    const std::int64_t count = checked_elements(shape_, name_);
    return part(0, count, at::empty({count}, at::kFloat)).view(shape_);
  }

 private:
  std::size_t offset_of(std::int64_t element) const {
    return std::min(static_cast<std::size_t>(element) / block_elements_ * block_bytes_, mapped_.size());
  }

  const std::string& name_;
  const std::vector<std::int64_t>& shape_;
  std::function<void(std::int64_t begin, const at::Tensor& values)> decode_;  // null: `values_` holds them
  at::Tensor values_;                                                         // [element]
  std::size_t block_elements_ = 1, block_bytes_ = 0;
  std::span<const std::byte> mapped_;  // what is read, if it lies in a file
};

/// Elements that are read, checked and converted at a time: they stay in the cache meanwhile. A multiple of the size of
/// every kind of block.
constexpr std::int64_t part_elements = std::int64_t{1} << 18;

/// Copies the stored values into `values` [element], part by part on all threads. Each part is checked while it is in
/// the cache. @returns whether all are finite, before and after the conversion
bool fill(const StoredValues& stored, const at::Tensor& values) {
  std::atomic<bool> finite = true;
  const std::int64_t count = values.numel(), parts = (count + part_elements - 1) / part_elements;
  at::parallel_for(0, parts, 1, [&](std::int64_t first, std::int64_t last) {
    const c10::InferenceMode inference;
    for (std::int64_t index = first; index < last && finite; ++index) {
      const std::int64_t begin = index * part_elements, end = std::min(begin + part_elements, count);
      const at::Tensor to = values.slice(0, begin, end);
      const at::Tensor from = stored.part(begin, end, to);
      if (!all_finite(from)) finite = false;
      if (!from.is_same(to)) to.copy_(from);
      stored.release(begin, end);
      if (from.scalar_type() != to.scalar_type() && !all_finite(to)) finite = false;
    }
  });
  return finite;
}

at::Tensor checked_values(const StoredValues& stored, at::ScalarType dtype, std::string_view where) {
  at::Tensor values = at::empty(stored.shape(), at::TensorOptions().dtype(dtype));
  if (fill(stored, values.flatten())) return values;
  const at::Tensor whole = stored.whole();
  CHECK(all_finite(whole), "{}: tensor '{}' holds NaN or infinity: {}; the checkpoint is damaged", where,
        printable(stored.name()), describe_not_finite(whole));
  throw_invalid("{}: tensor '{}' is too large for {}: {}; use --dtype float32 or bfloat16", where,
                printable(stored.name()), dtype_name(dtype), describe_not_finite(whole.to(dtype)));
}

}  // namespace

at::Tensor read_values(const formats::TensorEntry& entry, at::ScalarType dtype, std::string_view where) {
  formats::check_still_whole(entry);
  at::Tensor values = checked_values(StoredValues(entry), dtype, where);
  formats::check_still_whole(entry);
  return values;
}

at::Tensor read_values(const formats::ScaledTensor& tensor, at::ScalarType dtype, std::string_view where) {
  for (const formats::TensorEntry* entry : {&tensor.numbers, &tensor.scales}) formats::check_still_whole(*entry);
  at::Tensor values = checked_values(StoredValues(tensor), dtype, where);
  for (const formats::TensorEntry* entry : {&tensor.numbers, &tensor.scales}) formats::check_still_whole(*entry);
  return values;
}

}  // namespace gainlens::models
