#pragma once

#include "formats/tensor_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::formats {

/// Kinds of metadata values, by the numbers GGUF gives them.
enum class GgufKind : std::uint32_t { u8 = 0, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

/// One metadata value. Its bytes stay in the mapped file. Arrays are read element by element only on request, so a
/// vocabulary costs nothing to a caller that does not need it.
struct GgufValue {
  GgufKind kind{};
  GgufKind element{};       ///< of an array
  std::uint64_t count = 1;  ///< elements of an array, else 1
  /// The bytes of the value or of the elements, checked to lie in the file. For a single text they begin after its
  /// length. In an array each text has its length (u64) before it.
  std::span<const std::byte> bytes;
};

/// The metadata of a GGUF file, each value read with its type and range. Every message names the file, the byte and the
/// key.
class GgufMetadata {
 public:
  using Values = std::map<std::string, GgufValue, std::less<>>;

  GgufMetadata() = default;
  GgufMetadata(std::shared_ptr<const MappedFile> file, Values values);

  bool has(std::string_view key) const;
  std::vector<std::string> keys() const;  ///< sorted

  /// Any integer kind whose value lies in [low, high]. If the key is absent, the result is `fallback`, or an error
  /// without a fallback.
  /// @throws InvalidArgument  missing without fallback, of another kind, out of range
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> fallback = std::nullopt) const;
  double number(std::string_view key,
                std::optional<double> fallback = std::nullopt) const;  ///< any finite number, integers up to 2^53 too
  bool boolean(std::string_view key, std::optional<bool> fallback = std::nullopt) const;
  /// UTF-8.
  std::string text(std::string_view key, std::optional<std::string> fallback = std::nullopt) const;

  /// Arrays; empty optional where the key is absent. The views point into the mapped file. They may hold any bytes,
  /// because a vocabulary may have parts of characters.
  /// @throws InvalidArgument  not an array, elements of another kind, an integer beyond int64, a number that is not
  ///     finite
  std::optional<std::vector<std::string_view>> texts(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;
  std::optional<std::vector<double>> numbers(std::string_view key) const;
  std::optional<std::vector<bool>> booleans(std::string_view key) const;

  /// The raw value; null pointer where the key is absent.
  const GgufValue* find(std::string_view key) const;
  const std::string& where() const { return where_; }  ///< the file, as messages name it
  /// "model.gguf: byte 120: key 'llama.block_count'": the beginning of a message about a key that is there.
  std::string place(std::string_view key) const;

 private:
  const GgufValue& required(std::string_view key) const;
  const GgufValue* find_array(std::string_view key) const;

  std::shared_ptr<const MappedFile> file_;
  std::string where_;
  Values values_;
};

/// A GGUF checkpoint, version 2 or 3, little-endian: one file, or all parts of a split one
/// (`name-00001-of-00003.gguf`). It is memory-mapped and checked completely before any of it is returned.
class GgufFile {
 public:
  /// @param path  the file, or any part of a split one
  /// @throws InvalidArgument  missing, truncated, not GGUF, another version or byte order; a count, length, alignment
  ///     or offset that does not fit the file; data that overlap or have gaps beyond the padding; a duplicate key or
  ///     tensor; a tensor type that is not read (names it); parts that are missing or disagree. The message gives the
  ///     byte offset of the first fault
  static GgufFile open(const std::filesystem::path& path);

  const GgufMetadata& metadata() const { return metadata_; }  ///< of the first part
  /// Tensors of all parts. Shapes are row-major: the reverse of the file's.
  const std::map<std::string, TensorEntry, std::less<>>& entries() const { return entries_; }
  const std::vector<std::filesystem::path>& files() const { return files_; }  ///< all parts, in order
  std::uint32_t version() const { return version_; }

 private:
  std::vector<std::filesystem::path> files_;
  GgufMetadata metadata_;
  std::map<std::string, TensorEntry, std::less<>> entries_;
  std::uint32_t version_ = 0;
};

/// The GGUF file that `path` stands for: the file itself, or the only GGUF checkpoint in a folder (for a split one, its
/// first part that exists). Nothing for a folder without GGUF files and for a file of another kind.
/// @throws InvalidArgument  several in one folder (names two of them); a folder that cannot be listed
std::optional<std::filesystem::path> find_gguf(const std::filesystem::path& path);

}  // namespace gainlens::formats
