#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

// Makes the checksums of changed metadata right again, so that a mutant is not refused for its checksum alone: a file
// made to do harm has right checksums.

namespace gainlens::testing {

/// Bob Jenkins's lookup3 ("hashlittle") with an initial value of 0, the checksum of HDF5's metadata.
/// Source: http://burtleburtle.net/bob/c/lookup3.c (public domain).
inline std::uint32_t lookup3(std::string_view bytes) {
  std::uint32_t a = 0xdeadbeef + static_cast<std::uint32_t>(bytes.size()), b = a, c = a;
  const auto add = [&](std::string_view part) {
    unsigned char block[12] = {};
    std::memcpy(block, part.data(), part.size());
    std::uint32_t words[3];
    std::memcpy(words, block, sizeof words);
    a += words[0], b += words[1], c += words[2];
  };
  while (bytes.size() > 12) {
    add(bytes.substr(0, 12));
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
    bytes.remove_prefix(12);
  }
  if (bytes.empty()) return c;
  add(bytes);
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

inline std::uint64_t number_in(const std::string& file, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  if (at + bytes <= file.size()) std::memcpy(&number, &file[at], bytes);
  return number;
}

/// Stores the checksum of `bytes` bytes at `begin` behind them, if they lie in the file.
inline void repair(std::string& file, std::uint64_t begin, std::uint64_t bytes) {
  if (begin > file.size() || bytes > file.size() - begin || file.size() - begin - bytes < 4) return;
  const std::uint32_t sum = lookup3(std::string_view(file).substr(begin, bytes));
  std::memcpy(&file[begin + bytes], &sum, sizeof sum);
}

/// Repairs the checksums of superblock, object headers and their continuations, and of the headers of heaps, trees and
/// chunk indexes.
inline void repair_checksums(std::string& file) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> messages;  // where those of an object begin, and their bytes
  for (std::size_t at = file.find("OHDR"); at != std::string::npos; at = file.find("OHDR", at + 1)) {
    const std::uint64_t flags = number_in(file, at + 5, 1);
    const std::size_t width = std::size_t{1} << (flags & 3), head = 6 + ((flags & 0x20) != 0 ? 16 : 0);
    messages.emplace_back(at + head + width, number_in(file, at + head, width));
    repair(file, at, head + width + messages.back().second);
  }
  for (std::size_t i = 0; i < messages.size() && i < 10'000; ++i) {
    const auto [begin, bytes] = messages[i];
    for (std::uint64_t at = begin; bytes <= file.size() && at + 4 <= begin + bytes && at + 20 <= file.size();
         at += 4 + number_in(file, at + 1, 2)) {
      const std::uint64_t piece = number_in(file, at + 4, 8), piece_bytes = number_in(file, at + 12, 8);
      if (number_in(file, at, 1) != 0x10 || piece_bytes < 8 || piece > file.size()) continue;
      messages.emplace_back(piece + 4, piece_bytes - 8);
      repair(file, piece, piece_bytes - 4);
    }
  }
  const std::pair<const char*, std::size_t> headers[] = {{"FRHP", 142}, {"BTHD", 34}, {"FAHD", 24}};
  for (const auto& [signature, bytes] : headers) {
    for (std::size_t at = file.find(signature); at != std::string::npos; at = file.find(signature, at + 1))
      repair(file, at, bytes);
  }
  repair(file, 0, 44);
}

}  // namespace gainlens::testing
