
#include "core/check.h"
#include "core/checked.h"
#include "runfile/hdf5_detail.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace gainlens::runfile::hdf5 {
namespace {

// Bits of the mask that a chunk has of the filters it was stored without, in the order of the filters.
constexpr unsigned without_shuffle = 1, without_deflate = 2, without_fletcher = 4;

/// Fletcher's checksum as libhdf5 has it: over numbers of 16 bits, high byte first; a last single byte is a high one.
/// Carries are folded in, never subtracted, so 0 and 0xffff stay apart.
std::uint32_t fletcher32(Bytes bytes) {
  std::uint32_t sum = 0, sum_of_sums = 0;
  const auto fold = [](std::uint32_t& value) { value = (value & 0xffff) + (value >> 16); };
  const std::size_t even = bytes.size() / 2 * 2;
  for (std::size_t at = 0; at < even;) {
    constexpr std::size_t safe = 2 * 360;  // so many bytes cannot overflow 32 bits
    for (const std::size_t end = std::min(even, at + safe); at < end; at += 2) {
      sum += static_cast<std::uint32_t>(bytes[at]) << 8 | bytes[at + 1];
      sum_of_sums += sum;
    }
    fold(sum);
    fold(sum_of_sums);
  }
  if (even < bytes.size()) {
    sum += static_cast<std::uint32_t>(bytes[even]) << 8;
    sum_of_sums += sum;
    fold(sum);
    fold(sum_of_sums);
  }
  fold(sum);
  fold(sum_of_sums);
  return sum_of_sums << 16 | sum;
}

/// @throws Error  the stream does not end with exactly the last byte of `content`
void inflate_into(std::vector<unsigned char>& content, Bytes packed) {
  z_stream stream{};
  require(inflateInit(&stream) == Z_OK, "a chunk cannot be unpacked: zlib gives no memory");
  stream.next_in = const_cast<unsigned char*>(packed.data());
  stream.avail_in = static_cast<unsigned>(packed.size());
  stream.next_out = content.data();
  stream.avail_out = static_cast<unsigned>(content.size());
  const int code = inflate(&stream, Z_FINISH);
  const bool whole = code == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  require(whole, "a chunk does not unpack to the {} bytes of its shape", content.size());
}

/// Byte i of every value stands together.
void unshuffle(std::vector<unsigned char>& content, std::size_t value_bytes) {
  const std::size_t values = content.size() / value_bytes;
  std::vector<unsigned char> ordered(content.size());
  for (std::size_t byte = 0; byte < value_bytes; ++byte) {
    for (std::size_t i = 0; i < values; ++i) ordered[i * value_bytes + byte] = content[byte * values + i];
  }
  content = std::move(ordered);
}

class ChunkedDataset {
 public:
  explicit ChunkedDataset(const Handle& dataset)
      : dataset_(dataset),
        file_(FileBytes::of(dataset)),
        shape_(shape_of(dataset, "in chunks")),
        chunk_(shape_.size()) {
    const Handle type = type_of(dataset), creation = creation_of(dataset);
    value_bytes_ = H5Tget_size(type.get());
    std::vector<hsize_t> sizes(shape_.size());
    check(H5Pget_chunk(creation.get(), static_cast<int>(sizes.size()), sizes.data()), "chunks");
    chunk_.assign(sizes.begin(), sizes.end());
    fill_.resize(value_bytes_);
    check(H5Pget_fill_value(creation.get(), type.get(), fill_.data()), "fill value");
    content_bytes_ = static_cast<std::size_t>(checked_elements(chunk_, "a chunk")) * value_bytes_;
  }

  std::size_t value_bytes() const { return value_bytes_; }

  /// Values as they are in the file.
  void read(const Shape& offset, const Shape& count, unsigned char* out) {
    Shape first(shape_.size()), last(shape_.size());
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      first[axis] = offset[axis] / chunk_[axis] * chunk_[axis];
      last[axis] = offset[axis] + count[axis];
      if (count[axis] == 0) return;
    }
    Shape corner = first;
    do {
      copy(content_at(corner), corner, offset, count, out);
    } while (advance(corner, first, last, chunk_, shape_.size()));
  }

 private:
  std::vector<unsigned char> content_at(const Shape& corner) const {
    unsigned left_out = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t stored = 0;
    check(H5Dget_chunk_info_by_coord(dataset_.get(), extents(corner).data(), &left_out, &address, &stored), "chunk");
    std::vector<unsigned char> content(content_bytes_);
    if (address == HADDR_UNDEF) {
      for (std::size_t at = 0; at < content.size(); at += value_bytes_)
        std::memcpy(&content[at], fill_.data(), value_bytes_);
      return content;
    }
    const std::vector<unsigned char> bytes = file_.at(address, stored, "a chunk");
    Bytes packed = bytes;
    if ((left_out & without_fletcher) == 0) {
      constexpr std::size_t checksum_bytes = 4;
      require(packed.size() >= checksum_bytes, "a chunk has no checksum");
      packed = packed.first(packed.size() - checksum_bytes);
      Cursor checksum(Bytes(bytes).last(checksum_bytes), "the checksum of a chunk");
      require(checksum.number<std::uint32_t>() == fletcher32(packed), "the checksum of a chunk is another");
    }
    if ((left_out & without_deflate) == 0) {
      inflate_into(content, packed);
    } else {
      require(packed.size() == content.size(), "a chunk has {} bytes; its shape asks for {}", packed.size(),
              content.size());
      content.assign(packed.begin(), packed.end());
    }
    if ((left_out & without_shuffle) == 0 && value_bytes_ > 1) unshuffle(content, value_bytes_);
    return content;
  }

  /// Copies what the box has of the chunk, one row of the last axis after the other.
  void copy(const std::vector<unsigned char>& content, const Shape& corner, const Shape& offset, const Shape& count,
            unsigned char* out) const {
    const std::size_t axes = shape_.size();
    Shape begin(axes), end(axes);
    for (std::size_t axis = 0; axis < axes; ++axis) {
      begin[axis] = std::max(corner[axis], offset[axis]);
      end[axis] = std::min(corner[axis] + chunk_[axis], offset[axis] + count[axis]);
    }
    const auto row_bytes = static_cast<std::size_t>(end[axes - 1] - begin[axes - 1]) * value_bytes_;
    Shape at = begin;
    do {
      std::size_t from = 0, to = 0;
      for (std::size_t axis = 0; axis < axes; ++axis) {
        from = from * static_cast<std::size_t>(chunk_[axis]) + static_cast<std::size_t>(at[axis] - corner[axis]);
        to = to * static_cast<std::size_t>(count[axis]) + static_cast<std::size_t>(at[axis] - offset[axis]);
      }
      std::memcpy(out + to * value_bytes_, &content[from * value_bytes_], row_bytes);
    } while (advance(at, begin, end, Shape(axes, 1), axes - 1));
  }

  const Handle& dataset_;
  FileBytes file_;
  Shape shape_, chunk_;
  std::size_t value_bytes_ = 0, content_bytes_ = 0;
  std::vector<unsigned char> fill_;
};

}  // namespace

void read_chunked_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data) {
  ChunkedDataset chunks(dataset);
  ASSERT(H5Tget_size(memory_type) >= chunks.value_bytes(), "a narrower type than that of the file");
  chunks.read(offset, count, static_cast<unsigned char*>(data));
  const auto values = static_cast<std::size_t>(checked_elements(count, "a box"));
  check(H5Tconvert(type_of(dataset).get(), memory_type, values, data, nullptr, H5P_DEFAULT), "conversion");
}

}  // namespace gainlens::runfile::hdf5
