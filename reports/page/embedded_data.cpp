#include "reports/page/embedded_data.h"

#include "core/check.h"

#include <zlib.h>

#include <bit>
#include <cstdint>

namespace gainlens::reports {
namespace {

/// The bytes of a number from the lowest to the highest.
char byte_of(std::uint32_t bits, unsigned place) {
  return static_cast<char>(bits >> (8U * place) & 255U);
}

std::string deflated(const std::string& bytes) {
  uLongf size = compressBound(bytes.size());
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_BEST_COMPRESSION);
  ASSERT(code == Z_OK, "zlib refused to compress {} bytes: {}", bytes.size(), code);
  packed.resize(size);
  return packed;
}

}  // namespace

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view three = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8U | (i < three.size() ? static_cast<unsigned char>(three[i]) : 0U);
    for (std::size_t i = 0; i < 4; ++i) text += i <= three.size() ? digits[bits >> (18U - 6U * i) & 63U] : '=';
  }
  return text;
}

std::size_t EmbeddedData::add(std::span<const double> values) {
  const std::size_t first = numbers.size();
  for (const double value : values) numbers.push_back(static_cast<float>(value));
  return first;
}

std::string embedded_part(std::string_view part, const EmbeddedData& data) {
  const std::string words = data.words.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  std::string bytes;
  bytes.reserve(4 + words.size() + 4 * data.numbers.size());
  for (unsigned place = 0; place < 4; ++place) bytes += byte_of(static_cast<std::uint32_t>(words.size()), place);
  bytes += words;
  for (unsigned place = 0; place < 4; ++place) {
    for (const float number : data.numbers) bytes += byte_of(std::bit_cast<std::uint32_t>(number), place);
  }
  return fmt::format("<div data-part=\"{}\" hidden><script type=\"application/octet-stream\">{}</script></div>\n", part,
                     base64(deflated(bytes)));
}

}  // namespace gainlens::reports
