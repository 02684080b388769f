#include "core/check.h"
#include "core/checked.h"
#include "core/json.h"
#include "core/nearest.h"
#include "formats/dtype.h"
#include "formats/mapped_file.h"
#include "formats/pickle.h"
#include "formats/safetensors.h"
#include "formats/tensor_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gainlens::formats {
namespace {

using Entries = std::map<std::string, TensorEntry, std::less<>>;

/// The two parts of a safetensors file.
struct Frame {
  std::string_view header;          // JSON
  std::span<const std::byte> data;  // data_offsets are offsets in it
};

std::uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = header_length_bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// Why `bytes` cannot be cut into header and data; empty if they can.
std::string frame_fault(std::span<const std::byte> bytes) {
  if (bytes.size() < header_length_bytes) {
    return fmt::format("{} bytes; a safetensors file begins with {} bytes that hold the length of its header",
                       bytes.size(), header_length_bytes);
  }
  const std::uint64_t length = little_endian_u64(bytes);
  if (length > max_header_bytes)
    return fmt::format("a header of {} bytes; at most {} are allowed", length, max_header_bytes);
  const std::size_t rest = bytes.size() - header_length_bytes;
  if (length > rest)
    return fmt::format("a header of {} bytes, of which {} are there; the file is cut short or not safetensors", length,
                       rest);
  if (length == 0 || bytes[header_length_bytes] != std::byte{'{'}) {
    return fmt::format("a header of {} bytes that does not begin with '{{'; not a safetensors file", length);
  }
  return {};
}

Frame cut(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  if (const std::string fault = frame_fault(bytes); !fault.empty()) {
    const std::string where = printable(path.string());
    CHECK(!looks_pickled(bytes),
          "{}: a pickled PyTorch checkpoint, which may run any program when loaded; convert it to safetensors: {}",
          where, conversion_command({path}));
    CHECK(!named_like_pickle(path), "{}: {}; if it holds pickled PyTorch weights, convert it to safetensors: {}", where,
          fault, conversion_command({path}));
    throw_invalid("{}: {}", where, fault);
  }
  const auto length = static_cast<std::size_t>(little_endian_u64(bytes));
  const auto header = bytes.subspan(header_length_bytes, length);
  return {{reinterpret_cast<const char*>(header.data()), header.size()}, bytes.subspan(header_length_bytes + length)};
}

std::map<std::string, std::string> read_metadata(const Json& metadata, const std::string& where) {
  CHECK(metadata.is_object(), "{}: __metadata__ is {}; must be an object of strings", where, metadata.type_name());
  std::map<std::string, std::string> result;
  for (const auto& [key, value] : metadata.items()) {
    CHECK(value.is_string(), "{}: __metadata__ key '{}' holds {}; must be a string", where, printable(key),
          value.type_name());
    result.emplace(key, value.get<std::string>());
  }
  return result;
}

void check_keys(const Json& entry, const std::string& where) {
  static const std::array<std::string, 3> known{"dtype", "shape", "data_offsets"};
  CHECK(entry.is_object(), "{}: its entry is {}; must be an object with dtype, shape and data_offsets", where,
        entry.type_name());
  for (const auto& [key, value] : entry.items()) {
    CHECK(std::find(known.begin(), known.end(), key) != known.end(),
          "{}: unknown key '{}'; allowed are dtype, shape, data_offsets{}", where, printable(key),
          did_you_mean(key, known));
  }
  for (const std::string& key : known) CHECK(entry.contains(key), "{}: key '{}' is missing", where, key);
}

DType read_dtype(const Json& value, const std::string& where) {
  CHECK(value.is_string(), "{}: dtype is {}; must be a string, one of {}", where, value.type_name(), allowed_dtypes());
  const auto& name = value.get_ref<const std::string&>();
  const auto dtype = dtype_named(name);
  CHECK(dtype.has_value(), "{}: dtype '{}' cannot be read; allowed are {}", where, printable(name, 40),
        allowed_dtypes());
  return *dtype;
}

/// Reads a number of the array `key`: no sign, no fraction, no exponent.
std::uint64_t read_whole(const Json& value, const char* key, const std::string& where) {
  CHECK(value.is_number_unsigned(), "{}: {} holds {}; each must be a whole number from 0 to 2^64 - 1", where, key,
        value.is_number() ? value.dump() : std::string(value.type_name()));
  return value.get<std::uint64_t>();
}

std::vector<std::int64_t> read_shape(const Json& value, const std::string& where) {
  CHECK(value.is_array(), "{}: shape is {}; must be an array of sizes", where, value.type_name());
  CHECK(value.size() <= max_rank, "{}: shape has {} dimensions; at most {} are allowed", where, value.size(), max_rank);
  std::vector<std::int64_t> shape;
  for (const Json& size : value)
    shape.push_back(checked_cast<std::int64_t>(read_whole(size, "shape", where), where + ": size in its shape"));
  return shape;
}

/// The part of `data` that an entry claims.
std::span<const std::byte> read_bytes(const Json& value, std::span<const std::byte> data, const std::string& where) {
  CHECK(value.is_array() && value.size() == 2, "{}: data_offsets is {}; must be an array of two numbers, begin and end",
        where, value.is_array() ? fmt::format("an array of {}", value.size()) : std::string(value.type_name()));
  const std::uint64_t begin = read_whole(value[0], "data_offsets", where);
  const std::uint64_t end = read_whole(value[1], "data_offsets", where);
  CHECK(begin <= end, "{}: data_offsets [{}, {}]; the end must not lie before the begin", where, begin, end);
  CHECK(end <= data.size(),
        "{}: data_offsets [{}, {}] reach beyond the {} bytes of data in the file; it may be cut short", where, begin,
        end, data.size());
  return data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

TensorEntry read_entry(const std::string& name, const Json& json, std::span<const std::byte> data,
                       const std::string& file) {
  const std::string where = fmt::format("{}: tensor '{}'", file, printable(name));
  check_keys(json, where);
  TensorEntry entry{name, read_dtype(json["dtype"], where), read_shape(json["shape"], where),
                    read_bytes(json["data_offsets"], data, where)};
  const std::size_t needed = bytes_for(entry.shape, entry.dtype, where);
  CHECK(entry.bytes.size() == needed, "{}: data_offsets span {} bytes; shape [{}] of {} needs {}", where,
        entry.bytes.size(), fmt::join(entry.shape, ", "), name_of(entry.dtype), needed);
  return entry;
}

/// The tensors must cover the data exactly: a byte used twice or never is a sign of a broken or forged file.
void check_tiling(const Entries& entries, std::span<const std::byte> data, const std::string& file) {
  std::vector<const TensorEntry*> in_order;
  for (const auto& [name, entry] : entries) in_order.push_back(&entry);
  const auto begin_of = [&](const TensorEntry& entry) {
    return static_cast<std::size_t>(entry.bytes.data() - data.data());
  };
  std::sort(in_order.begin(), in_order.end(), [&](const TensorEntry* a, const TensorEntry* b) {
    return std::pair(begin_of(*a), a->bytes.size()) < std::pair(begin_of(*b), b->bytes.size());
  });
  std::size_t covered = 0;
  std::string last = "the start of the data";
  for (const TensorEntry* entry : in_order) {
    const std::size_t begin = begin_of(*entry);
    const std::string name = printable(entry->name);
    CHECK(begin >= covered, "{}: tensor '{}' begins at byte {}, inside {}, which ends at {}; tensors must not overlap",
          file, name, begin, last, covered);
    CHECK(begin == covered, "{}: tensor '{}' begins at byte {}, {} bytes after {}; tensors must leave no gaps", file,
          name, begin, begin - covered, last);
    covered += entry->bytes.size();
    last = "tensor '" + name + "'";
  }
  CHECK(covered == data.size(),
        "{}: {} bytes after the last tensor, which ends at byte {} of {}; nothing may follow it", file,
        data.size() - covered, covered, data.size());
}

}  // namespace

TensorFile TensorFile::open(const std::filesystem::path& path) {
  const auto mapping = MappedFile::open(path);
  const std::string where = printable(path.string());
  const Frame frame = cut(mapping->bytes(), path);
  const Json header = parse_json(frame.header, where + ": header");

  TensorFile file;
  file.path_ = path;
  file.mapping_ = mapping;
  for (const auto& [name, value] : header.items()) {
    if (name == metadata_key) {
      file.metadata_ = read_metadata(value, where);
    } else {
      TensorEntry entry = read_entry(name, value, frame.data, where);
      entry.file = mapping;
      file.entries_.emplace(name, std::move(entry));
    }
  }
  check_tiling(file.entries_, frame.data, where);
  return file;
}

bool TensorFile::has(std::string_view name) const {
  return entries_.contains(name);
}

const TensorEntry& TensorFile::at(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, entry] : entries_) names.push_back(known);
    throw_invalid("{}: no tensor '{}' among its {}{}", printable(path_.string()), printable(name), names.size(),
                  printable(did_you_mean(name, names), 300));
  }
  return found->second;
}

}  // namespace gainlens::formats
