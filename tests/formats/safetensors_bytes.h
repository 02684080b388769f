#pragma once

#include "core/error.h"
#include "formats/printed_dtype.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace gainlens::formats {

/// A safetensors file by hand: length, header, data. `length` overrides the true length of the header.
inline std::string safetensors_bytes(const std::string& header, const std::string& data, std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xff);
  return bytes + header + data;
}
inline std::string safetensors_bytes(const std::string& header, const std::string& data) {
  return safetensors_bytes(header, data, header.size());
}

/// The bytes of `text`, which must exist as long as the span. A string literal always exists.
inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A JSON object with these fields.
inline std::string object(const std::string& fields) {
  return fmt::format("{{{}}}", fields);
}

/// A header entry, e.g. entry("a", "F32", "[2]", "0,8").
inline std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[)" + offsets + "]}";
}

inline std::filesystem::path write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::remove(
      path);  // to cut an old file short can cost a flush to the disk, and mutants come by the thousand
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

/// Matches an action that is refused with one line for the user, which contains `text`.
inline auto refused_with(const std::string& text) {
  return ::testing::ThrowsMessage<InvalidArgument>(
      ::testing::AllOf(::testing::HasSubstr(text), ::testing::Not(::testing::HasSubstr("\n"))));
}

/// Expects that the message of a refusal begins with the file and is one readable line.
inline void expect_clear(const std::string& message, const std::filesystem::path& path) {
  EXPECT_TRUE(message.starts_with(path.string() + ": ")) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_LT(message.size(), 600u) << message;
}

}  // namespace gainlens::formats
