#pragma once

#include "core/error.h"

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::formats {

static_assert(std::endian::native == std::endian::little,
              "numbers of files are read as they lie in memory, and the files are little-endian");

/// Reads a number from the first bytes of `bytes`, which may be unaligned.
template <typename Number>
Number number_at(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Number))
    throw_internal_error(__FILE__, __LINE__, fmt::format("{} bytes for a number of {}", bytes.size(), sizeof(Number)));
  Number number;
  std::memcpy(&number, bytes.data(), sizeof(Number));
  return number;
}

/// Reads a file from front to back. Refuses a field that reaches beyond the file; the message gives the byte where the
/// field begins.
class ByteCursor {
 public:
  /// @param file   the whole file
  /// @param where  names it in messages
  ByteCursor(std::span<const std::byte> file, std::string where) : file_(file), where_(std::move(where)) {}

  std::size_t offset() const { return offset_; }
  std::size_t rest() const { return file_.size() - offset_; }

  /// Sets what is being read, for messages: "key 'general.name'". Empty between two such items.
  void set_subject(std::string subject) { subject_ = std::move(subject); }

  /// "model.gguf: byte 24: key 'general.name'": the beginning of a message about the field at `offset`.
  std::string at(std::size_t offset) const {
    return fmt::format("{}: byte {}{}{}", where_, offset, subject_.empty() ? "" : ": ", subject_);
  }

  template <std::unsigned_integral Number>
  Number number(const char* what) {
    return number_at<Number>(take(sizeof(Number), what));
  }

  /// The next `bytes` bytes.
  std::span<const std::byte> take(std::uint64_t bytes, const char* what) {
    if (bytes > rest())
      throw_invalid("{}: {} of {} bytes, of which {} are there; the file is cut short or damaged", at(offset_), what,
                    bytes, rest());
    const auto taken = file_.subspan(offset_, static_cast<std::size_t>(bytes));
    offset_ += taken.size();
    return taken;
  }

  /// Reads a length of eight bytes, then that many bytes of text.
  std::span<const std::byte> text(const char* what) {
    const auto length = number<std::uint64_t>(what);
    return take(length, what);
  }

  /// Reads the number of items that follow, each of at least `min_bytes`. Refuses a number that is too large for the
  /// file, before memory is allocated for the items.
  std::uint64_t count(const char* what, std::uint64_t min_bytes, std::uint64_t limit) {
    const std::size_t begin = offset_;
    const auto count = number<std::uint64_t>(what);
    if (count > limit) throw_invalid("{}: {} of {}; at most {} are allowed", at(begin), what, count, limit);
    if (count > rest() / min_bytes)
      throw_invalid("{}: {} of {}, but only {} bytes follow; the file is cut short or damaged", at(begin), what, count,
                    rest());
    return count;
  }

 private:
  std::span<const std::byte> file_;
  std::size_t offset_ = 0;
  std::string where_;
  std::string subject_;
};

}  // namespace gainlens::formats
