#pragma once

#include "core/sha256.h"
#include "formats/gzip.h"
#include "tokenizers/tokenizer.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// Most bytes of an unpacked text. It is so large only because a text is not held in memory whole.
inline constexpr std::uint64_t longest_text = std::uint64_t{64} << 30;

/// Reads plain or gzipped UTF-8 text once, from start to end, in parts. A pipe (/dev/stdin, the shell's <(...)) or "-",
/// standard input, is a text too.
class TextReader {
 public:
  /// @param max_bytes  of the unpacked text. It is refused as soon as more bytes are unpacked
  /// @throws InvalidArgument  missing, cannot be opened
  explicit TextReader(const std::filesystem::path& path, std::uint64_t max_bytes = longest_text);

  /// The next part, some 256 KiB of whole characters; empty at the end of the text. Valid until the next call.
  /// @throws InvalidArgument  unreadable, empty text, broken gzip, not UTF-8 (byte offset), or larger than `max_bytes`
  std::string_view next();

  /// The checksum of the unpacked text. Called once, after the end.
  std::string sha256();
  /// The file's name for messages.
  const std::string& where() const { return file_.where(); }

 private:
  formats::UnpackedFile file_;
  std::uint64_t max_bytes_;
  Sha256 hash_;
  std::string part_;            // whole characters, then the start of the next one
  std::size_t handed_out_ = 0;  // bytes at the start of part_ that the last call returned
};

/// Plain or gzipped UTF-8 text, whole.
/// @param accepts  pipes: for texts that nobody reads a second time
/// @throws InvalidArgument  as TextReader; larger than the memory that is available
std::string read_text(const std::filesystem::path& path, std::uint64_t max_bytes = std::uint64_t{4} << 30,
                      formats::UnpackedFile::Accepts accepts = formats::UnpackedFile::Accepts::files);

/// An array of token ids in JSON, plain or gzipped. May come from a pipe, as a text.
/// @throws InvalidArgument  not an array of integers in [0, 2^31)
std::vector<tokenizers::TokenId> read_token_ids(const std::filesystem::path& path);

}  // namespace gainlens::data
