#include "models/checkpoint/tensor_values.h"

#include "core/check.h"
#include "formats/dequantise.h"
#include "models/all_finite.h"
#include "models/checkpoint/compute_dtype.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace gainlens::models {
namespace {

constexpr std::int64_t blocks_per_task = 4096;

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

/// The float32 values of a quantised tensor. The blocks are shared among the threads.
at::Tensor dequantised_values(const formats::TensorEntry& entry) {
  at::Tensor values = at::empty(entry.shape, at::TensorOptions().dtype(at::kFloat));
  const auto per_block = static_cast<std::int64_t>(formats::elements_per_block(entry.dtype));
  const auto block_bytes = static_cast<std::int64_t>(formats::bytes_per_block(entry.dtype));
  float* const to = values.mutable_data_ptr<float>();
  at::parallel_for(0, values.numel() / per_block, blocks_per_task, [&](std::int64_t begin, std::int64_t end) {
    const auto bytes = entry.bytes.subspan(static_cast<std::size_t>(begin * block_bytes),
                                           static_cast<std::size_t>((end - begin) * block_bytes));
    formats::dequantise(entry.dtype, bytes,
                        {to + begin * per_block, static_cast<std::size_t>((end - begin) * per_block)});
  });
  return values;
}

}  // namespace

at::Tensor read_values(const formats::TensorEntry& entry, at::ScalarType dtype, std::string_view where) {
  formats::check_still_whole(entry);
  const bool quantised = formats::is_quantised(entry.dtype);
  const auto stored_dtype = quantised ? at::kFloat : weight_dtype(entry.dtype);
  ASSERT(stored_dtype.has_value(), "tensor '{}' is not floating point", entry.name);
  const at::Tensor stored = quantised ? dequantised_values(entry) : stored_values(entry, *stored_dtype);
  CHECK(all_finite(stored), "{}: tensor '{}' holds NaN or infinity: {}; the checkpoint is damaged", where,
        printable(entry.name), describe_not_finite(stored));
  at::Tensor values = stored.to(dtype, /*non_blocking=*/false, /*copy=*/!quantised);
  CHECK(dtype == *stored_dtype || all_finite(values),
        "{}: tensor '{}' is too large for {}: {}; use --dtype float32 or bfloat16", where, printable(entry.name),
        dtype_name(dtype), describe_not_finite(values));
  formats::check_still_whole(entry);
  return values;
}

}  // namespace gainlens::models
