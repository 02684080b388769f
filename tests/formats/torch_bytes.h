#pragma once

#include "formats/safetensors_bytes.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Bytes of zip archives and pickles, for tests of their readers.

namespace gainlens::formats {

inline std::string little(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> (8 * i));
  return text;
}

/// CRC-32 bit by bit (PKWARE's APPNOTE, 4.4.7).
inline std::uint32_t crc_32(const std::string& content) {
  std::uint32_t sum = 0xffffffff;
  for (const char c : content) {
    sum ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum % 2 == 1 ? 0xedb88320 : 0);
  }
  return ~sum;
}

/// A zip archive of stored entries.
/// @param zip64  sizes, offsets and counts stand in their 64-bit fields
inline std::string zip_bytes(const std::vector<std::pair<std::string, std::string>>& entries, bool zip64 = false,
                             std::uint16_t method = 0) {
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const std::uint64_t offset = file.size();
    const std::string padding = little(0x4246, 2) + little(3, 2) + "ZZZ";  // PyTorch's extra field "FB"
    file += "PK\x03\x04" + little(20, 2) + little(0, 2) + little(method, 2) + std::string(4, '\0') +
            little(crc_32(content), 4) + little(content.size(), 4) + little(content.size(), 4) +
            little(name.size(), 2) + little(padding.size(), 2) + name + padding + content;
    const auto size = [&](std::uint64_t number) { return little(zip64 ? 0xffffffff : number, 4); };
    const std::string extra =
        zip64 ? little(1, 2) + little(24, 2) + little(content.size(), 8) + little(content.size(), 8) + little(offset, 8)
              : "";
    directory += "PK\x01\x02" + little(20, 2) + little(20, 2) + little(0, 2) + little(method, 2) +
                 std::string(4, '\0') + little(crc_32(content), 4) + size(content.size()) + size(content.size()) +
                 little(name.size(), 2) + little(extra.size(), 2) + little(0, 2) + std::string(8, '\0') + size(offset) +
                 name + extra;
  }
  const std::uint64_t begin = file.size();
  file += directory;
  if (zip64) {
    const std::uint64_t record = file.size();
    file += "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) + little(0, 4) +
            little(entries.size(), 8) + little(entries.size(), 8) + little(directory.size(), 8) + little(begin, 8);
    file += "PK\x06\x07" + little(0, 4) + little(record, 8) + little(1, 4);
  }
  return file + "PK\x05\x06" + little(0, 2) + little(0, 2) + little(zip64 ? 0xffff : entries.size(), 2) +
         little(zip64 ? 0xffff : entries.size(), 2) + little(directory.size(), 4) +
         little(zip64 ? 0xffffffff : begin, 4) + little(0, 2);
}

/// BINUNICODE.
inline std::string pickled(const std::string& text) {
  return "X" + little(text.size(), 4) + text;
}
inline std::string pickled_global(const std::string& module, const std::string& name) {
  return "c" + module + "\n" + name + "\n";
}
/// torch._utils._rebuild_tensor_v2 of a storage.
/// @param shape, stride  of up to 255
inline std::string pickled_tensor(const std::string& key, const std::vector<int>& shape, const std::vector<int>& stride,
                                  int offset = 0, const std::string& storage = "FloatStorage") {
  const auto tuple = [](const std::vector<int>& numbers) {
    std::string text = "(";
    for (const int number : numbers) text += "K" + little(static_cast<std::uint64_t>(number), 1);
    return text + "t";
  };
  return pickled_global("torch._utils", "_rebuild_tensor_v2") + "((" + pickled("storage") +
         pickled_global("torch", storage) + pickled(key) + pickled("cpu") + "K\x06" + "tQ" + "K" +
         little(static_cast<std::uint64_t>(offset), 1) + tuple(shape) + tuple(stride) + "\x89" +
         pickled_global("collections", "OrderedDict") + ")R" + "tR";
}
/// A dictionary of names and pickled values.
inline std::string pickled_dictionary(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string text = "}(";
  for (const auto& [key, value] : entries) text += pickled(key) + value;
  return text + "u";
}
inline std::string pickle_of(const std::string& value) {
  return "\x80\x02" + value + ".";
}

}  // namespace gainlens::formats
