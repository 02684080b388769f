#pragma once

#include "formats/tensor_file.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace gainlens::formats {

// Constants that the reader and the writer of safetensors share. A file holds, in order: eight bytes (little-endian
// u64) with the length of the header; the header, a JSON object (tensor name -> dtype, shape, data_offsets); the data,
// in which the tensors lie without gaps.
inline constexpr std::size_t header_length_bytes = 8;
inline constexpr std::uint64_t max_header_bytes = 100'000'000;  // the limit of the reference implementation
inline constexpr std::size_t max_rank = 8;
inline constexpr std::string_view metadata_key = "__metadata__";

/// Bytes that a tensor takes.
/// @param where  names the tensor in messages
/// @throws InvalidArgument  a negative size, more dimensions than max_rank, a product too large, a last dimension that
///     is not a whole number of blocks
std::size_t bytes_for(std::span<const std::int64_t> shape, DType dtype, std::string_view where);

}  // namespace gainlens::formats
