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

// The bytes of an HDF5 file, read by ourselves: what libhdf5 would take from an untrusted file without a check.

namespace gainlens::runfile::hdf5 {

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
