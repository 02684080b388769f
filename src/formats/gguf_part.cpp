#include "formats/gguf_part.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/utf8.h"
#include "formats/byte_cursor.h"
#include "formats/ggml_types.h"
#include "formats/mapped_file.h"
#include "formats/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gainlens::formats {
namespace {

using Entries = std::map<std::string, TensorEntry, std::less<>>;

// Limits far above any real model: they stop a forged file from filling the memory with names.
constexpr std::uint64_t max_keys = 65'536;
constexpr std::uint64_t max_tensors = 65'536;
constexpr std::size_t max_key_bytes = 65'535;  // the limit of the specification
constexpr std::size_t max_name_bytes = 1'024;
constexpr std::uint32_t max_dimensions = 4;
constexpr std::uint32_t default_alignment = 32;

// The smallest size of each item in bytes: a length (8), one byte of name, and its numbers.
constexpr std::uint64_t min_key_bytes = 8 + 1 + 4 + 1;
constexpr std::uint64_t min_tensor_bytes = 8 + 1 + 4 + 4 + 8;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Bytes of one value; 0 for texts and arrays, whose sizes vary.
std::size_t bytes_of(GgufKind kind) {
  switch (kind) {
    case GgufKind::u8:
    case GgufKind::i8:
    case GgufKind::boolean:
      return 1;
    case GgufKind::u16:
    case GgufKind::i16:
      return 2;
    case GgufKind::u32:
    case GgufKind::i32:
    case GgufKind::f32:
      return 4;
    case GgufKind::u64:
    case GgufKind::i64:
    case GgufKind::f64:
      return 8;
    case GgufKind::text:
    case GgufKind::array:
      return 0;
  }
  throw_internal_error(__FILE__, __LINE__, "a kind of value that read_kind lets through");
}

GgufKind read_kind(ByteCursor& cursor, const char* what) {
  const std::size_t begin = cursor.offset();
  const auto number = cursor.number<std::uint32_t>(what);
  CHECK(number <= static_cast<std::uint32_t>(GgufKind::f64), "{}: {} of {}; must be between 0 and 12", cursor.at(begin),
        what, number);
  return static_cast<GgufKind>(number);
}

void check_booleans(const ByteCursor& cursor, std::span<const std::byte> bytes, std::size_t begin) {
  const auto wrong = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  CHECK(wrong == bytes.end(), "{}: a boolean of {}; must be 0 or 1",
        cursor.at(begin + static_cast<std::size_t>(wrong - bytes.begin())), std::to_integer<int>(*wrong));
}

GgufValue read_array(ByteCursor& cursor) {
  const std::size_t kind_begin = cursor.offset();
  GgufValue value{GgufKind::array, read_kind(cursor, "a kind of elements")};
  CHECK(value.element != GgufKind::array, "{}: an array of arrays; only arrays of plain values and texts are read",
        cursor.at(kind_begin));
  const bool texts = value.element == GgufKind::text;
  const std::size_t min_bytes = texts ? sizeof(std::uint64_t) : bytes_of(value.element);
  value.count = cursor.count("a count of elements", min_bytes, ~std::uint64_t{0});
  if (!texts) {
    const std::size_t begin = cursor.offset();
    value.bytes = cursor.take(value.count * min_bytes, "elements");  // count() has checked that they fit
    if (value.element == GgufKind::boolean) check_booleans(cursor, value.bytes, begin);
    return value;
  }
  ByteCursor ahead = cursor;  // to find where the texts end
  for (std::uint64_t i = 0; i < value.count; ++i) ahead.text("a text");
  value.bytes = cursor.take(ahead.offset() - cursor.offset(), "texts");
  return value;
}

GgufValue read_value(ByteCursor& cursor) {
  const GgufKind kind = read_kind(cursor, "a kind of value");
  if (kind == GgufKind::array) return read_array(cursor);
  GgufValue value{kind};
  const std::size_t begin = cursor.offset();
  value.bytes = kind == GgufKind::text ? cursor.text("a text") : cursor.take(bytes_of(kind), "a value");
  if (kind == GgufKind::boolean) check_booleans(cursor, value.bytes, begin);
  return value;
}

/// The name of a key or a tensor.
std::string read_name(ByteCursor& cursor, const char* what, std::size_t max_bytes) {
  cursor.set_subject("");
  const std::size_t begin = cursor.offset();
  const auto length = cursor.number<std::uint64_t>(what);
  CHECK(length > 0 && length <= max_bytes, "{}: {} of {} bytes; must have 1 to {}", cursor.at(begin), what, length,
        max_bytes);
  const std::string name(as_text(cursor.take(length, what)));
  CHECK(!first_invalid_utf8(name).has_value(), "{}: {} '{}' is not UTF-8", cursor.at(begin), what, printable(name, 60));
  // No real name has control characters, but the numbers around a name do. So they show that the length is wrong.
  const bool has_control = std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  CHECK(!has_control, "{}: {} '{}' has control characters; the file is damaged", cursor.at(begin), what,
        printable(name, 60));
  return name;
}

GgufMetadata::Values read_values(ByteCursor& cursor, std::uint64_t count) {
  GgufMetadata::Values values;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t begin = cursor.offset();
    std::string key = read_name(cursor, "a key", max_key_bytes);
    cursor.set_subject("key '" + printable(key, 60) + "'");
    CHECK(!values.contains(key), "{}: this key is there twice", cursor.at(begin));
    const GgufValue value = read_value(cursor);
    values.emplace(std::move(key), value);
  }
  cursor.set_subject("");
  return values;
}

/// A tensor as its info describes it.
struct Info {
  TensorEntry entry;         // bytes still empty
  std::size_t needed = 0;    // bytes by type and shape
  std::uint64_t offset = 0;  // within the data
  std::size_t place = 0;     // in the file, of the field that holds the offset
};

std::vector<std::int64_t> read_shape(ByteCursor& cursor) {
  const std::size_t begin = cursor.offset();
  const auto rank = cursor.number<std::uint32_t>("a number of dimensions");
  CHECK(rank <= max_dimensions, "{}: {} dimensions; at most {} are allowed", cursor.at(begin), rank, max_dimensions);
  std::vector<std::int64_t> shape;
  for (std::uint32_t i = 0; i < rank; ++i) {
    const std::size_t place = cursor.offset();
    shape.push_back(
        checked_cast<std::int64_t>(cursor.number<std::uint64_t>("a size"), cursor.at(place) + ": size in its shape"));
  }
  std::reverse(shape.begin(), shape.end());  // the file lists the innermost dimension first
  return shape;
}

Info read_info(ByteCursor& cursor, std::uint32_t alignment) {
  const std::size_t begin = cursor.offset();
  Info info;
  info.entry.name = read_name(cursor, "a tensor name", max_name_bytes);
  cursor.set_subject("tensor '" + printable(info.entry.name, 60) + "'");
  info.entry.shape = read_shape(cursor);
  const std::size_t type_begin = cursor.offset();
  const auto type = cursor.number<std::uint32_t>("a type");
  const auto dtype = dtype_of_ggml(type);
  CHECK(dtype.has_value(), "{}: its type {} cannot be read; allowed are {}", cursor.at(type_begin),
        ggml_type_name(type), allowed_ggml_types());
  info.entry.dtype = *dtype;
  info.needed = bytes_for(info.entry.shape, *dtype, cursor.at(begin));
  info.place = cursor.offset();
  info.offset = cursor.number<std::uint64_t>("an offset");
  CHECK(info.offset % alignment == 0, "{}: offset {}; must be a multiple of the alignment, {}", cursor.at(info.place),
        info.offset, alignment);
  return info;
}

std::vector<Info> read_infos(ByteCursor& cursor, std::uint64_t count, std::uint32_t alignment) {
  std::vector<Info> infos;
  std::map<std::string_view, std::size_t> seen;
  infos.reserve(static_cast<std::size_t>(count));  // `seen` points to the names: they must not move
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::size_t begin = cursor.offset();
    infos.push_back(read_info(cursor, alignment));
    const auto [first, is_new] = seen.emplace(infos.back().entry.name, begin);
    CHECK(is_new, "{}: this tensor is there twice, first at byte {}", cursor.at(begin), first->second);
  }
  cursor.set_subject("");
  return infos;
}

std::size_t round_up(std::size_t bytes, std::size_t alignment, std::string_view where) {
  return checked_add(bytes, alignment - 1, where) / alignment * alignment;
}

/// Gives each tensor its bytes. Tensors must follow one another with only padding between them. All programs that write
/// GGUF lay them out so. A damaged size, type, offset, count or alignment shows as a gap or an overlap.
void place_tensors(std::vector<Info>& infos, std::span<const std::byte> file, std::size_t header_end,
                   std::uint32_t alignment, const std::string& where) {
  const std::size_t data_begin = round_up(header_end, alignment, where);
  std::vector<Info*> in_order;
  in_order.reserve(infos.size());
  for (Info& info : infos) in_order.push_back(&info);
  std::sort(in_order.begin(), in_order.end(), [](const Info* a, const Info* b) {
    return std::pair(a->offset, a->needed) < std::pair(b->offset, b->needed);
  });
  std::size_t covered = 0;
  std::string last = "the start of the data";
  for (Info* info : in_order) {
    const std::string at = fmt::format("{}: byte {}: tensor '{}'", where, info->place, printable(info->entry.name, 60));
    const std::size_t expected = round_up(covered, alignment, at);
    CHECK(info->offset >= covered,
          "{}: begins at byte {} of the data, inside {}, which ends at {}; tensors must not overlap", at, info->offset,
          last, covered);
    CHECK(info->offset == expected, "{}: begins at byte {} of the data; after {} it must begin at byte {}", at,
          info->offset, last, expected);
    covered = checked_add(expected, info->needed, at);
    const std::size_t end = checked_add(data_begin, covered, at);
    CHECK(end <= file.size(),
          "{}: shape [{}] of {} ends at byte {}, beyond the {} bytes of the file; it may be cut short", at,
          fmt::join(info->entry.shape, ", "), name_of(info->entry.dtype), end, file.size());
    info->entry.bytes = file.subspan(data_begin + expected, info->needed);
    last = "tensor '" + printable(info->entry.name, 60) + "'";
  }
  // A file without tensors (the first part of a split one) may end before the padding.
  const std::size_t most = round_up(checked_add(data_begin, covered, where), alignment, where);
  CHECK(file.size() <= most, "{}: byte {}: {} bytes after {}; nothing but padding may follow it", where,
        data_begin + covered, file.size() - (data_begin + covered), last);
}

/// Checks the first four bytes and the version.
std::uint32_t read_version(ByteCursor& cursor) {
  const std::string magic(as_text(cursor.take(4, "a magic number")));
  CHECK(magic == "GGUF", "{}: begins with '{}'; a GGUF file begins with 'GGUF'", cursor.at(0), printable(magic));
  const std::size_t begin = cursor.offset();
  const auto version = cursor.number<std::uint32_t>("a version");
  CHECK((version & 0xffffu) != 0 || version == 0,
        "{}: version {:#010x}: written for big-endian machines; only little-endian files are read", cursor.at(begin),
        version);
  CHECK(version == 2 || version == 3, "{}: version {}; 2 and 3 are read", cursor.at(begin), version);
  return version;
}

std::uint32_t alignment_of(const GgufMetadata& metadata) {
  constexpr std::string_view key = "general.alignment";
  const GgufValue* value = metadata.find(key);
  if (value == nullptr) return default_alignment;
  const auto alignment = static_cast<std::uint32_t>(metadata.integer(key, 8, std::int64_t{1} << 31));
  CHECK(value->kind == GgufKind::u32 && std::has_single_bit(alignment), "{}: {}; must be a power of two, stored as u32",
        metadata.place(key), alignment);
  return alignment;
}

}  // namespace

GgufPart read_gguf_part(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const std::string where = printable(path.string());
  ByteCursor cursor(file->bytes(), where);
  GgufPart part;
  part.path = path;
  part.version = read_version(cursor);
  const auto tensors = cursor.count("a count of tensors", min_tensor_bytes, max_tensors);
  const auto keys = cursor.count("a count of keys", min_key_bytes, max_keys);
  part.metadata = GgufMetadata(file, read_values(cursor, keys));
  const std::uint32_t alignment = alignment_of(part.metadata);
  std::vector<Info> infos = read_infos(cursor, tensors, alignment);
  place_tensors(infos, file->bytes(), cursor.offset(), alignment, where);
  for (Info& info : infos) {
    info.entry.file = file;
    std::string name = info.entry.name;
    part.entries.emplace(std::move(name), std::move(info.entry));
  }
  return part;
}

}  // namespace gainlens::formats
