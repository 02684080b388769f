#include "runfile/hdf5_structure.h"

#include <algorithm>
#include <array>
#include <limits>

namespace gainlens::runfile::hdf5 {
namespace {

constexpr unsigned max_axes = 32;
constexpr std::string_view other_form = "is not of the form that gainlens writes";

/// Product of a shape and the size of its values.
std::uint64_t bytes_of(const std::vector<std::uint64_t>& shape, std::uint64_t value_bytes, std::string_view what) {
  std::uint64_t bytes = value_bytes;
  for (const std::uint64_t size : shape) {
    require(!__builtin_mul_overflow(bytes, size, &bytes) &&
                bytes <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
            "{}: is too large", what);
  }
  return bytes;
}

/// The rest of a type of fixed size.
StoredType number_type(Cursor& message, unsigned kind, std::uint32_t bits, std::uint32_t bytes) {
  constexpr std::string_view what = "a type of numbers";
  if (kind == 0) {
    const auto offset = message.number<std::uint16_t>(), precision = message.number<std::uint16_t>();
    require(
        bits <= 0xf && (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && offset == 0 && precision == 8 * bytes,
        "{}: {}", what, other_form);
  } else {
    require((bits == 0x1f20 && bytes == 4) || (bits == 0x3f20 && bytes == 8), "{}: {}", what, other_form);
    message.expect(bytes == 4 ? std::string_view("\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0", 12)
                              : std::string_view("\0\0\x40\0\x34\x0b\0\x34\xff\x03\0\0", 12));
  }
  return {TypeClass::number, bytes};
}

/// @param nested  the type of what a variable-length value consists of
StoredType type_at(Cursor& message, bool nested) {
  constexpr std::string_view what = "a type";
  const auto head = message.number<std::uint8_t>();
  const auto bits = static_cast<std::uint32_t>(message.number(3u));
  const auto bytes = message.number<std::uint32_t>();
  const unsigned version = head >> 4, kind = head & 0xf;
  require(version >= 1 && version <= 3 && bytes > 0, "{}: {}", what, other_form);
  switch (kind) {
    case 0:
    case 1:
      return number_type(message, kind, bits, bytes);
    case 3:
      require((bits & 0xf) <= 2 && bits >> 4 <= 1 && (!nested || bytes == 1), "{}: {}", what, other_form);
      return {TypeClass::text, bytes};
    case 7:
      require(bits == 0 && bytes == 8, "{}: {}", what, other_form);
      return {TypeClass::reference, bytes};
    case 9: {
      require(!nested && bytes == 16 && (bits & 0xf) <= 1 && (bits >> 4 & 0xf) <= 2 && bits >> 8 <= 1, "{}: {}", what,
              other_form);
      const StoredType of = type_at(message, true);
      require(of.bytes == ((bits & 0xf) == 1 ? 1 : 8), "{}: {}", what, other_form);
      return {TypeClass::variable_length, bytes};
    }
    case 6:
      require(!nested, "{}: {}", what, other_form);
      message.take(message.rest());
      return {TypeClass::compound, bytes};
    default:
      throw Error(fmt::format("{}: {}", what, other_form));
  }
}

/// A fixed array that finds chunks.
void check_chunk_index(std::uint64_t address, std::uint64_t chunks, std::uint64_t chunk_bytes, unsigned page_bits,
                       const FileBytes& file) {
  constexpr std::string_view what = "an index of chunks";
  const std::vector<unsigned char> bytes = file.at(address, 28, what);
  Cursor header(bytes, what);
  header.expect(std::string_view("FAHD\0\1", 6));
  const std::uint64_t entry_bytes = header.number<std::uint8_t>();
  const auto bits = header.number<std::uint8_t>();
  const auto entries = header.number<std::uint64_t>(), block = header.number<std::uint64_t>();
  // Address, size in as many bytes as that of an unpacked chunk needs and one more, and the mask of left out filters.
  const std::uint64_t size_bytes = std::min<std::uint64_t>(1 + (std::bit_width(chunk_bytes) - 1 + 8) / 8, 8);
  require(entry_bytes == 8 + size_bytes + 4 && bits == page_bits && entries == chunks, "{}: {}", what, other_form);
  if (block == no_address) return;
  const std::uint64_t in_a_page = std::uint64_t{1} << page_bits;
  const std::uint64_t pages = entries > in_a_page ? (entries - 1) / in_a_page + 1 : 0;
  require(entries <= file.size(), "{}: {} entries, and the file has {} bytes", what, entries, file.size());
  file.check_holds(block, 4 + 1 + 1 + 8 + 4 + (pages + 7) / 8 + entries * entry_bytes + pages * 4, what);
}

void check_chunks(Cursor& message, const std::vector<std::uint64_t>& shape, const StoredType& type,
                  const FileBytes& file) {
  constexpr std::string_view what = "a layout in chunks";
  const auto flags = message.number<std::uint8_t>(), axes = message.number<std::uint8_t>(),
             number_bytes = message.number<std::uint8_t>();
  require(axes == shape.size() + 1 && number_bytes >= 1 && number_bytes <= 8, "{}: {}", what, other_form);
  std::vector<std::uint64_t> chunk(shape.size());
  std::uint64_t chunks = 1;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    chunk[axis] = message.number(unsigned{number_bytes});
    require(chunk[axis] > 0 && chunk[axis] <= shape[axis], "{}: {}", what, other_form);
    chunks *= (shape[axis] - 1) / chunk[axis] + 1;  // at most the number of values, which bytes_of() has bounded
  }
  require(message.number(unsigned{number_bytes}) == type.bytes, "{}: {}", what, other_form);
  const std::uint64_t chunk_bytes = bytes_of(chunk, type.bytes, what);
  require(chunk_bytes <= std::numeric_limits<std::uint32_t>::max(), "{}: is too large", what);
  const auto index = message.number<std::uint8_t>();
  constexpr unsigned single = 1, fixed_array = 3;
  if (index == single) {
    require(flags == 2 && chunks == 1, "{}: {}", what, other_form);
    const auto stored = message.number<std::uint64_t>();
    message.number<std::uint32_t>();  // left out filters
    const auto address = message.number<std::uint64_t>();
    if (address != no_address) file.check_holds(address, stored, what);
  } else {
    require(index == fixed_array && flags == 0, "{}: {}", what, other_form);
    const auto page_bits = message.number<std::uint8_t>();
    require(page_bits == 10, "{}: {}", what, other_form);
    const auto address = message.number<std::uint64_t>();
    if (address != no_address) check_chunk_index(address, chunks, chunk_bytes, page_bits, file);
  }
}

}  // namespace

std::vector<std::uint64_t> checked_dataspace(Bytes bytes) {
  constexpr std::string_view what = "a shape";
  Cursor message(bytes, what);
  message.expect("\2");
  const auto axes = message.number<std::uint8_t>(), flags = message.number<std::uint8_t>(),
             kind = message.number<std::uint8_t>();
  require(axes <= max_axes && flags <= 1 && kind == (axes == 0 ? 0 : 1), "{}: {}", what, other_form);
  std::vector<std::uint64_t> shape(axes);
  for (std::uint64_t& size : shape) size = message.number<std::uint64_t>();
  for (std::size_t axis = 0; flags == 1 && axis < shape.size(); ++axis)
    require(message.number<std::uint64_t>() == shape[axis], "{}: may grow, which gainlens never writes", what);
  message.end();
  return shape;
}

StoredType checked_type(Bytes bytes) {
  Cursor message(bytes, "a type");
  const StoredType type = type_at(message, false);
  message.end();
  return type;
}

void check_fill_value(Bytes bytes, const StoredType& type) {
  constexpr std::string_view what = "a fill value";
  Cursor message(bytes, what);
  message.expect("\3");
  const auto flags = message.number<std::uint8_t>();
  constexpr unsigned undefined = 0x10, given = 0x20;
  require((flags & 0xc0) == 0 && (flags & undefined) == 0, "{}: {}", what, other_form);
  if ((flags & given) != 0) {
    require(type.kind == TypeClass::number && message.number<std::uint32_t>() == type.bytes, "{}: {}", what,
            other_form);
    message.take(type.bytes);
  }
  message.end();
}

void check_filters(Bytes bytes, const StoredType& type) {
  constexpr std::string_view what = "the filters of a dataset";
  constexpr std::uint16_t deflate = 1, shuffle = 2, fletcher = 3;
  Cursor message(bytes, what);
  constexpr std::string_view others = "others than shuffle, deflate and fletcher32, in this order";
  message.expect("\2");
  require(message.number<std::uint8_t>() == 3, "{}: {}", what, others);
  for (const std::uint16_t id : {shuffle, deflate, fletcher}) {
    const auto found = message.number<std::uint16_t>(), flags = message.number<std::uint16_t>(),
               values = message.number<std::uint16_t>();
    require(found == id && flags <= 1 && values == (id == fletcher ? 0 : 1), "{}: {}", what, others);
    if (id == fletcher) continue;
    const auto value = message.number<std::uint32_t>();
    require(id == shuffle ? value == type.bytes : value <= 9, "{}: {}", what, other_form);
  }
  message.end();
}

void check_layout(Bytes bytes, const std::vector<std::uint64_t>& shape, const StoredType& type, bool filtered,
                  const FileBytes& file) {
  constexpr std::string_view what = "a layout";
  constexpr unsigned contiguous = 1, chunked = 2;
  Cursor message(bytes, what);
  message.expect("\4");
  const auto kind = message.number<std::uint8_t>();
  const std::uint64_t all = bytes_of(shape, type.bytes, "a dataset");
  if (kind == contiguous && !filtered) {
    const auto address = message.number<std::uint64_t>(), size = message.number<std::uint64_t>();
    require(size == all, "a dataset has {} bytes; its shape asks for {}", size, all);
    if (address != no_address) file.check_holds(address, size, "the content of a dataset");
  } else {
    require(kind == chunked && filtered && !shape.empty(), "{}: neither contiguous nor in compressed chunks", what);
    require(type.kind == TypeClass::number, "{}: {}", what, other_form);
    check_chunks(message, shape, type, file);
  }
  message.end();
}

void check_attribute(Bytes bytes) {
  constexpr std::string_view what = "an attribute";
  Cursor message(bytes, what);
  message.expect(std::string_view("\3\0", 2));
  const auto name_bytes = message.number<std::uint16_t>(), type_bytes = message.number<std::uint16_t>(),
             shape_bytes = message.number<std::uint16_t>();
  require(message.number<std::uint8_t>() <= 1, "{}: {}", what, other_form);
  const Bytes name = message.take(name_bytes);
  require(std::find(name.begin(), name.end(), 0) == name.end() - (name.empty() ? 0 : 1) && !name.empty(),
          "{}: its name has no end", what);
  const StoredType type = checked_type(message.take(type_bytes));
  const std::vector<std::uint64_t> shape = checked_dataspace(message.take(shape_bytes));
  message.take(bytes_of(shape, type.bytes, what));
  message.end();
}

std::optional<std::uint64_t> checked_link(Bytes bytes) {
  constexpr std::string_view what = "a link";
  constexpr unsigned has_kind = 0x08, has_charset = 0x10, hard = 0;
  Cursor message(bytes, what);
  message.expect("\1");
  const auto flags = message.number<std::uint8_t>();
  require((flags & ~(3 | has_kind | has_charset)) == 0, "{}: {}", what, other_form);
  const unsigned kind = (flags & has_kind) != 0 ? message.number<std::uint8_t>() : hard;
  if ((flags & has_charset) != 0) require(message.number<std::uint8_t>() <= 1, "{}: {}", what, other_form);
  const std::uint64_t name_bytes = message.number(1u << (flags & 3));
  require(name_bytes > 0, "{}: has no name", what);
  message.take(name_bytes);
  std::optional<std::uint64_t> address;
  if (kind == hard) {
    address = message.number<std::uint64_t>();
  } else {
    message.take(message.number<std::uint16_t>());
  }
  message.end();
  return address;
}

DenseAddresses checked_dense_addresses(Bytes bytes, std::string_view what) {
  Cursor message(bytes, what);
  message.expect(std::string_view("\0\0", 2));
  DenseAddresses found;
  found.heap = message.number<std::uint64_t>();
  found.tree = message.number<std::uint64_t>();
  message.end();
  require((found.heap == no_address) == (found.tree == no_address), "{}: {}", what, other_form);
  return found;
}

}  // namespace gainlens::runfile::hdf5
