#include "runfile/hdf5_structure.h"

#include "runfile/hdf5_dense_storage.h"
#include "runfile/hdf5_messages.h"

#include <optional>
#include <set>

namespace gainlens::runfile::hdf5 {
namespace {

constexpr std::uint64_t checksum_bytes_of_header = 4;

/// What an object header says. The bytes lie in `pieces`.
struct ObjectHeader {
  std::vector<std::vector<unsigned char>> pieces;
  std::optional<Bytes> dataspace, type, fill_value, layout, filters, link_info, attribute_info;
  std::vector<Bytes> links, attributes;
};

class Structure {
 public:
  explicit Structure(const FileBytes& file) : file_(file) {}

  void check() {
    constexpr std::uint64_t superblock_bytes = 48;
    constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
    require(file_.size() >= superblock_bytes, "not an HDF5 file, or cut short");
    const std::vector<unsigned char> bytes = read(0, superblock_bytes, "the superblock");
    require(std::memcmp(bytes.data(), signature.data(), signature.size()) == 0, "not an HDF5 file");
    Cursor superblock(bytes, "the superblock");
    superblock.expect(std::string_view("\x89HDF\r\n\x1a\n\3\x8\x8\0", 12));
    const auto base = superblock.number<std::uint64_t>(), extension = superblock.number<std::uint64_t>();
    superblock.number<std::uint64_t>();  // end of the file, which libhdf5 compares
    root_ = superblock.number<std::uint64_t>();
    require(base == 0 && extension == no_address, "the superblock: is not of the form that gainlens writes");
    waiting_ = {root_};
    while (!waiting_.empty()) {
      const std::uint64_t address = waiting_.back();
      waiting_.pop_back();
      if (seen_.insert(address).second) check_object(address);
    }
  }

 private:
  /// Each byte is read about once: a file whose pieces lie upon each other must not cost more than its size.
  std::vector<unsigned char> read(std::uint64_t address, std::uint64_t count, std::string_view what) {
    std::vector<unsigned char> bytes = file_.at(address, count, what);
    read_ += count;
    constexpr std::uint64_t spare = 1 << 16;
    require(read_ <= 2 * file_.size() + spare, "{}: lies upon other pieces of the file", what);
    return bytes;
  }

  void add_message(ObjectHeader& header, unsigned kind, Bytes message,
                   std::vector<std::pair<std::uint64_t, std::uint64_t>>& more) {
    const auto once = [&](std::optional<Bytes>& place) {
      require(!place, "an object: a message of kind {} stands twice", kind);
      place = message;
    };
    switch (kind) {
      case 0x00:  // nothing
        return;
      case 0x01:
        return once(header.dataspace);
      case 0x02:
        return once(header.link_info);
      case 0x03:
        return once(header.type);
      case 0x05:
        return once(header.fill_value);
      case 0x06:
        header.links.push_back(message);
        return;
      case 0x08:
        return once(header.layout);
      case 0x0a:
        return Cursor(message, "a group").expect(std::string_view("\0\0", 2));
      case 0x0b:
        return once(header.filters);
      case 0x0c:
        header.attributes.push_back(message);
        return;
      case 0x10: {
        Cursor place(message, "an object");
        const auto address = place.number<std::uint64_t>(), size = place.number<std::uint64_t>();
        place.end();
        more.emplace_back(address, size);
        return;
      }
      case 0x15:
        return once(header.attribute_info);
      case 0x16:
        require(message.size() == 5 && message[0] == 0, "an object: its number of names is damaged");
        return;
      default:
        throw Error(fmt::format("an object: a message of kind {}, which gainlens never writes", kind));
    }
  }

  void add_messages(ObjectHeader& header, Bytes bytes, std::vector<std::pair<std::uint64_t, std::uint64_t>>& more) {
    constexpr std::size_t head_bytes = 4;
    Cursor messages(bytes, "an object");
    while (messages.rest() >= head_bytes) {
      const auto kind = messages.number<std::uint8_t>();
      const auto size = messages.number<std::uint16_t>();
      const auto flags = messages.number<std::uint8_t>();
      // 1: never changes; 4: may not be shared. Shared messages lie elsewhere.
      require((flags & ~5) == 0, "an object: a message of kind {} is not of the form that gainlens writes", kind);
      add_message(header, kind, messages.take(size), more);
    }
  }

  ObjectHeader header_at(std::uint64_t address) {
    constexpr std::string_view what = "an object";
    ObjectHeader header;
    const std::vector<unsigned char> head = read(address, 6, what);
    Cursor fields(head, what);
    fields.expect("OHDR\2");
    const auto flags = fields.number<std::uint8_t>();
    constexpr unsigned has_times = 0x20, times_bytes = 16;  // of objects that the plain library made
    require((flags & ~(3 | has_times)) == 0, "{}: is not of the form that gainlens writes", what);
    const unsigned size_bytes = 1u << (flags & 3);
    const std::uint64_t size_at = address + 6 + ((flags & has_times) != 0 ? times_bytes : 0);
    const std::vector<unsigned char> size_field = read(size_at, size_bytes, what);
    const std::uint64_t size = Cursor(size_field, what).number(size_bytes);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> more;  // address, size
    header.pieces.push_back(read(size_at + size_bytes, size, what));
    add_messages(header, header.pieces.back(), more);
    for (std::size_t i = 0; i < more.size(); ++i) {
      constexpr std::uint64_t signature_bytes = 4;
      const auto [begin, bytes] = more[i];
      require(bytes >= signature_bytes + checksum_bytes_of_header, "{}: a piece of {} bytes", what, bytes);
      std::vector<unsigned char> piece = read(begin, bytes - checksum_bytes_of_header, what);
      Cursor(piece, what).expect("OCHK");
      header.pieces.push_back(std::move(piece));
      add_messages(header, Bytes(header.pieces.back()).subspan(signature_bytes), more);
    }
    return header;
  }

  void check_object(std::uint64_t address) {
    const ObjectHeader header = header_at(address);
    for (const Bytes attribute : header.attributes) check_attribute(attribute);
    if (header.attribute_info) {
      const DenseAddresses dense = checked_attribute_info(*header.attribute_info);
      // Other objects have many attributes too. No reader of untrusted files asks for one of theirs.
      if (address == root_ && dense.heap != no_address) check_dense(dense_attributes, dense, check_attribute);
    }
    if (header.layout) {
      check_dataset(header);
    } else {
      check_group(header);
    }
  }

  void check_dataset(const ObjectHeader& header) const {
    require(header.dataspace && header.type && header.fill_value && header.links.empty() && !header.link_info,
            "a dataset: is not of the form that gainlens writes");
    const std::vector<std::uint64_t> shape = checked_dataspace(*header.dataspace);
    const StoredType type = checked_type(*header.type);
    require(type.kind == TypeClass::number || type.kind == TypeClass::variable_length,
            "a dataset: holds neither numbers nor texts");
    check_fill_value(*header.fill_value, type);
    if (header.filters) check_filters(*header.filters, type);
    check_layout(*header.layout, shape, type, header.filters.has_value(), file_);
  }

  void check_group(const ObjectHeader& header) {
    require(header.link_info && !header.dataspace && !header.type && !header.fill_value && !header.filters,
            "an object: neither a group nor a dataset");
    const auto follow = [&](Bytes link) {
      if (const auto address = checked_link(link)) waiting_.push_back(*address);
    };
    for (const Bytes link : header.links) follow(link);
    const DenseAddresses dense = checked_link_info(*header.link_info);
    if (dense.heap != no_address) check_dense(dense_links, dense, follow);
  }

  void check_dense(const DenseStorage& kind, const DenseAddresses& addresses, const std::function<void(Bytes)>& use) {
    for_each_dense_entry(
        kind, addresses.heap, addresses.tree,
        [this](std::uint64_t at, std::uint64_t count, std::string_view what) { return read(at, count, what); }, use);
  }

  const FileBytes& file_;
  std::uint64_t root_ = no_address, read_ = 0;
  std::vector<std::uint64_t> waiting_;
  std::set<std::uint64_t> seen_;
};

}  // namespace

void check_structure(const FileBytes& file) {
  Structure(file).check();
}

}  // namespace gainlens::runfile::hdf5
