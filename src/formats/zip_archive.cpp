#include "formats/zip_archive.h"

#include "core/check.h"
#include "core/checked.h"
#include "formats/byte_cursor.h"

#include <zlib.h>

#include <cstdint>
#include <map>
#include <optional>

namespace gainlens::formats {
namespace {

// Signatures and sizes of APPNOTE.TXT 6.3, sections 4.3.7 to 4.3.16.
constexpr std::uint32_t local_signature = 0x04034b50, entry_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator_signature = 0x07064b50;
constexpr std::size_t end_bytes = 22, locator_bytes = 20, local_bytes = 30, max_comment_bytes = 0xffff;
constexpr std::uint16_t in_zip64_16 = 0xffff;
constexpr std::uint32_t in_zip64_32 = 0xffffffff;
constexpr std::uint16_t zip64_extra = 1, stored = 0, encrypted_flag = 1;

using Bytes = std::span<const std::byte>;

/// The list of entries at the end of the archive.
struct Directory {
  std::uint64_t entries = 0, offset = 0;
};

struct Entry {
  std::string name;
  std::uint16_t flags = 0, method = 0;
  std::uint64_t packed_bytes = 0, bytes = 0, offset = 0;
  std::uint32_t checksum = 0;  // CRC-32
};

std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Where the end record begins. Its comment reaches to the end of the file.
std::optional<std::size_t> end_record(Bytes file) {
  if (file.size() < end_bytes) return std::nullopt;
  for (std::size_t comment = 0; comment <= max_comment_bytes && comment + end_bytes <= file.size(); ++comment) {
    const std::size_t at = file.size() - end_bytes - comment;
    if (number_at<std::uint32_t>(file.subspan(at)) == end_signature &&
        number_at<std::uint16_t>(file.subspan(at + end_bytes - 2)) == comment)
      return at;
  }
  return std::nullopt;
}

Directory zip64_directory(Bytes file, std::size_t end, const std::string& where) {
  CHECK(end >= locator_bytes && number_at<std::uint32_t>(file.subspan(end - locator_bytes)) == locator_signature,
        "{}: the end of the archive refers to a zip64 record that is not there; the file is damaged", where);
  const auto offset = number_at<std::uint64_t>(file.subspan(end - locator_bytes + 8));
  CHECK(offset < file.size(), "{}: a zip64 record at byte {} of {}; the file is damaged", where, offset, file.size());
  ByteCursor record(file.subspan(static_cast<std::size_t>(offset)), where + ": zip64 record");
  CHECK(record.number<std::uint32_t>("signature") == end64_signature,
        "{}: no zip64 record at byte {}; the file is damaged", where, offset);
  record.take(28, "sizes and versions");
  Directory directory;
  directory.entries = record.number<std::uint64_t>("number of entries");
  record.take(8, "size of the directory");
  directory.offset = record.number<std::uint64_t>("offset of the directory");
  return directory;
}

Directory directory_of(Bytes file, const std::string& where) {
  const auto end = end_record(file);
  CHECK(end.has_value(), "{}: the end of the zip archive is missing; the file is cut short or damaged", where);
  ByteCursor record(file.subspan(*end + 4), where + ": end of the archive");
  const auto disk = record.number<std::uint16_t>("number of the part"),
             first_disk = record.number<std::uint16_t>("number of the first part");
  record.take(2, "number of entries of the part");
  const auto entries = record.number<std::uint16_t>("number of entries");
  record.take(4, "size of the directory");
  const auto offset = record.number<std::uint32_t>("offset of the directory");
  if (entries == in_zip64_16 || offset == in_zip64_32) return zip64_directory(file, *end, where);
  CHECK(disk == 0 && first_disk == 0, "{}: part {} of a zip archive in several parts; they cannot be read", where,
        disk);
  return {entries, offset};
}

/// Puts the sizes and the offset of an entry that do not fit into 32 bits in their places. They stand in an extra field
/// in this order, those alone that do not fit.
void read_zip64_extra(Entry& entry, Bytes extra, const std::string& where) {
  ByteCursor fields(extra, where);
  while (fields.rest() > 0) {
    const auto kind = fields.number<std::uint16_t>("kind of an extra field"),
               size = fields.number<std::uint16_t>("size of an extra field");
    ByteCursor field(fields.take(size, "extra field"), where);
    if (kind != zip64_extra) continue;
    for (std::uint64_t* const value : {&entry.bytes, &entry.packed_bytes, &entry.offset}) {
      if (*value == in_zip64_32) *value = field.number<std::uint64_t>("number of 64 bits");
    }
  }
}

Entry read_entry(ByteCursor& directory, const std::string& where) {
  CHECK(directory.number<std::uint32_t>("signature of an entry") == entry_signature,
        "{}: its directory is not one of a zip archive; the file is damaged", where);
  Entry entry;
  directory.take(4, "versions");
  entry.flags = directory.number<std::uint16_t>("flags");
  entry.method = directory.number<std::uint16_t>("method");
  directory.take(4, "time");
  entry.checksum = directory.number<std::uint32_t>("checksum");
  entry.packed_bytes = directory.number<std::uint32_t>("packed size");
  entry.bytes = directory.number<std::uint32_t>("size");
  const auto name = directory.number<std::uint16_t>("length of the name"),
             extra = directory.number<std::uint16_t>("length of extra fields"),
             comment = directory.number<std::uint16_t>("length of the comment");
  directory.take(8, "attributes");
  entry.offset = directory.number<std::uint32_t>("offset");
  entry.name = text_of(directory.take(name, "name"));
  read_zip64_extra(entry, directory.take(extra, "extra fields"), where);
  directory.take(comment, "comment");
  return entry;
}

/// Where the entries lie: begin and end of each.
using Places = std::map<std::uint64_t, std::uint64_t>;

/// Entries that lie upon each other would let a small file cost as much as many large ones.
void check_apart(Places& places, std::uint64_t begin, std::uint64_t end, const std::string& where) {
  const auto behind = places.lower_bound(begin);
  CHECK((behind == places.end() || end <= behind->first) &&
            (behind == places.begin() || std::prev(behind)->second <= begin),
        "{}: lies upon another entry; the file is damaged", where);
  places.emplace(begin, end);
}

Bytes content_of(const Entry& entry, Bytes file, Places& places, const std::string& where) {
  CHECK((entry.flags & encrypted_flag) == 0, "{}: is encrypted; it cannot be read", where);
  CHECK(entry.method == stored && entry.packed_bytes == entry.bytes,
        "{}: is compressed; PyTorch stores entries as they are, save the checkpoint with torch.save", where);
  CHECK(entry.offset <= file.size() && file.size() - entry.offset >= local_bytes,
        "{}: begins at byte {} of {}; the file is cut short or damaged", where, entry.offset, file.size());
  ByteCursor local(file.subspan(static_cast<std::size_t>(entry.offset)), where);
  CHECK(local.number<std::uint32_t>("signature") == local_signature,
        "{}: does not begin where the directory says; the file is damaged", where);
  local.take(22, "header");
  const auto name = local.number<std::uint16_t>("length of the name"),
             extra = local.number<std::uint16_t>("length of extra fields");
  local.take(name, "name");
  local.take(extra, "extra fields");
  const Bytes content = local.take(entry.bytes, "content");
  check_apart(places, entry.offset, file.size() - local.rest(), where);
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION  // a fuzzer would hardly ever come behind it
  const auto checksum = crc32_z(0, reinterpret_cast<const unsigned char*>(content.data()), content.size());
  CHECK(checksum == entry.checksum, "{}: its checksum (CRC-32) does not match; the file is damaged, fetch it again",
        where);
#endif
  return content;
}

}  // namespace

ZipArchive ZipArchive::open(const std::filesystem::path& path) {
  ZipArchive archive;
  archive.file_ = MappedFile::open(path);
  const std::string where = archive.where();
  const Bytes file = archive.file_->bytes();
  const Directory directory = directory_of(file, where);
  CHECK(directory.offset <= file.size(), "{}: its directory begins at byte {} of {}; the file is damaged", where,
        directory.offset, file.size());
  ByteCursor cursor(file.subspan(static_cast<std::size_t>(directory.offset)), where + ": directory");
  Places places;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const Entry entry = read_entry(cursor, where);
    const std::string what = fmt::format("{}: entry '{}'", where, printable(entry.name, 100));
    CHECK(archive.entries_.emplace(entry.name, content_of(entry, file, places, what)).second, "{}: is there twice",
          what);
  }
  return archive;
}

std::span<const std::byte> ZipArchive::at(std::string_view name) const {
  const auto found = entries_.find(name);
  CHECK(found != entries_.end(), "{}: no entry '{}'; the file is incomplete", where(), printable(name, 100));
  return found->second;
}

std::string ZipArchive::where() const {
  return printable(file_->path().string());
}

}  // namespace gainlens::formats
