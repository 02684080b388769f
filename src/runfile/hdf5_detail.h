#pragma once

#include "core/file_descriptor.h"
#include "runfile/hdf5.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the parts of the layer over libhdf5 share.

namespace gainlens::runfile::hdf5 {

/// Prepares the library; to be called before every other of its functions.
void prepare_library();
/// @throws Error  `status` is negative: `action` failed
void check(herr_t status, std::string_view action);

std::vector<hsize_t> extents(const Shape& shape);
/// "[2, 3]".
std::string shown(const Shape& shape);
/// Goes on to the next place of a box, the last of the first `axes` axes fastest. @returns  whether there is one
bool advance(Shape& at, const Shape& begin, const Shape& end, const Shape& step, std::size_t axes);
Handle dataspace(const Shape& shape);
Handle space_of(const Handle& dataset);
Shape shape_of(const Handle& dataset, const std::string& name);
Handle type_of(const Handle& dataset);
Handle creation_of(const Handle& dataset);

/// Reads the box of size `count` at `offset` of a dataset in chunks, and converts it to `memory_type`, whose values are
/// at least as large as those in the file. Chunks that were never written hold the fill value.
///
/// libhdf5 never unpacks a chunk of an untrusted file: its filters give a content of any size, and what reads it
/// expects that of the chunk's shape. Here a chunk is unpacked into memory of exactly that size, and must fill it.
/// @param data  room for the product of `count` values of `memory_type`
/// @throws Error  a chunk does not lie in the file; its checksum is another; it unpacks to more or fewer bytes
void read_chunked_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data);

// The bytes of an HDF5 file, read by ourselves: what libhdf5 would take from an untrusted file without a check.

static_assert(std::endian::native == std::endian::little, "numbers of the format are little-endian");

/// An address that points nowhere.
inline constexpr std::uint64_t no_address = ~std::uint64_t{0};

using Bytes = std::span<const unsigned char>;

/// @throws Error  the condition does not hold
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(fmt::format(format, std::forward<Args>(args)...));
}

/// Takes numbers and bytes from the front of a piece of the file.
class Cursor {
 public:
  /// @param what  names the piece in messages
  Cursor(Bytes bytes, std::string_view what) : rest_(bytes), what_(what) {}

  std::size_t rest() const { return rest_.size(); }
  /// @throws Error  fewer bytes are left
  Bytes take(std::uint64_t count);
  /// A number of T's bytes.
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  /// A number of `bytes` bytes, 1 to 8.
  std::uint64_t number(unsigned bytes);
  /// @throws Error  the next bytes are not these
  void expect(std::string_view bytes);
  /// @throws Error  bytes are left
  void end() const;

 private:
  Bytes rest_;
  std::string_view what_;
};

/// Reads from a file that stays open.
class FileBytes {
 public:
  /// @param descriptor  stays the caller's
  explicit FileBytes(int descriptor);
  /// The bytes of the open HDF5 file that holds an object.
  static FileBytes of(const Handle& object);

  std::uint64_t size() const { return size_; }
  /// @param what  names the piece in messages
  /// @throws Error  not in the file, or not readable
  std::vector<unsigned char> at(std::uint64_t address, std::uint64_t count, std::string_view what) const;
  /// @throws Error  not in the file
  void check_holds(std::uint64_t address, std::uint64_t count, std::string_view what) const;

 private:
  int descriptor_;
  std::uint64_t size_;
};

}  // namespace gainlens::runfile::hdf5
