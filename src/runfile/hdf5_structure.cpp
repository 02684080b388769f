#include "runfile/hdf5_structure.h"

#include <algorithm>
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
      const DenseAddresses dense = checked_dense_addresses(*header.attribute_info, "the list of attributes");
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
    const DenseAddresses dense = checked_dense_addresses(*header.link_info, "the list of links");
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

using Read = std::function<std::vector<unsigned char>(std::uint64_t, std::uint64_t, std::string_view)>;

constexpr std::uint64_t largest_block = 1 << 16;
constexpr std::size_t blocks_in_a_row = 4;
constexpr std::uint64_t checksum_bytes = 4;

/// A block of the heap that holds entries.
struct Block {
  std::uint64_t begin = 0;  ///< its place in the heap
  std::uint64_t header = 0;
  std::vector<unsigned char> bytes;
};

class Heap {
 public:
  Heap(const DenseStorage& kind, std::uint64_t address, const Read& read)
      : kind_(kind), address_(address), read_(read) {
    constexpr std::string_view what = "a fractal heap";
    const std::vector<unsigned char> bytes = read(address, 146, what);
    Cursor header(bytes, what);
    header.expect(std::string_view("FRHP\0", 5));
    const auto id_bytes = header.number<std::uint16_t>(), filter_bytes = header.number<std::uint16_t>();
    const auto flags = header.number<std::uint8_t>();
    const auto largest_entry = header.number<std::uint32_t>();
    header.take(8 + 8 + 8 + 8 + 8 + 8 + 8 + 8);  // numbers for writers
    header.take(8);                              // bytes of huge entries
    const auto huge = header.number<std::uint64_t>();
    header.take(8);
    const auto tiny = header.number<std::uint64_t>();
    const auto width = header.number<std::uint16_t>();
    const auto smallest = header.number<std::uint64_t>(), largest = header.number<std::uint64_t>();
    const auto bits = header.number<std::uint16_t>();
    header.number<std::uint16_t>();  // rows at the start
    const auto root = header.number<std::uint64_t>();
    const auto rows = header.number<std::uint16_t>();
    require(id_bytes == kind.id_bytes && filter_bytes == 0 && flags == 2 && largest_entry == 4096 && huge == 0 &&
                tiny == 0 && width == blocks_in_a_row && smallest == kind.smallest_block && largest == largest_block &&
                bits == 8 * kind.offset_bytes,
            "{}: is not of the form that gainlens writes", what);
    if (root == no_address) return;
    if (rows == 0) {
      add_block(root, 0, smallest);
    } else {
      add_rows(root, rows);
    }
  }

  /// @param id  of an entry
  Bytes entry(Bytes id) const {
    Cursor fields(id, "an entry of a fractal heap");
    fields.expect(std::string_view("\0", 1));  // it lies in a block
    const std::uint64_t begin = fields.number(kind_.offset_bytes), size = fields.number(2);
    const auto behind = std::upper_bound(blocks_.begin(), blocks_.end(), begin,
                                         [](std::uint64_t place, const Block& block) { return place < block.begin; });
    require(behind != blocks_.begin(), "an entry of a fractal heap lies in no block");
    const Block& block = *(behind - 1);
    const std::uint64_t at = begin - block.begin;
    require(at >= block.header && at <= block.bytes.size() && size <= block.bytes.size() - at,
            "an entry of a fractal heap does not lie in its block");
    return Bytes(block.bytes).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }

 private:
  /// The block of a row begins with its address in the heap.
  void check_head(Cursor& block, std::string_view signature, std::uint64_t begin, std::string_view what) const {
    block.expect(signature);
    require(block.number<std::uint64_t>() == address_ && block.number(kind_.offset_bytes) == begin,
            "{}: belongs to another place", what);
  }

  void add_block(std::uint64_t address, std::uint64_t begin, std::uint64_t size) {
    constexpr std::string_view what = "a block of a fractal heap";
    Block block{begin, 5 + 8 + kind_.offset_bytes + checksum_bytes, read_(address, size, what)};
    Cursor fields(block.bytes, what);
    check_head(fields, std::string_view("FHDB\0", 5), begin, what);
    blocks_.push_back(std::move(block));
  }

  void add_rows(std::uint64_t address, std::size_t rows) {
    constexpr std::string_view what = "the rows of a fractal heap";
    std::size_t most = 1;
    for (std::uint64_t size = kind_.smallest_block; size <= largest_block; size *= 2) ++most;
    require(rows <= most, "{}: {} rows; at most {} are read", what, rows, most);
    const std::vector<unsigned char> bytes =
        read_(address, 5 + 8 + kind_.offset_bytes + 8 * blocks_in_a_row * rows + checksum_bytes, what);
    Cursor fields(bytes, what);
    check_head(fields, std::string_view("FHIB\0", 5), 0, what);
    std::uint64_t begin = 0;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::uint64_t size = kind_.smallest_block << (row < 2 ? 0 : row - 1);
      for (std::size_t i = 0; i < blocks_in_a_row; ++i, begin += size) {
        const auto child = fields.number<std::uint64_t>();
        if (child != no_address) add_block(child, begin, size);
      }
    }
  }

  const DenseStorage& kind_;
  const std::uint64_t address_;
  const Read& read_;
  std::vector<Block> blocks_;  ///< by their place in the heap
};

class Tree {
 public:
  Tree(const DenseStorage& kind, const Read& read, const std::function<void(Bytes)>& use_record)
      : kind_(kind), read_(read), use_record_(use_record) {}

  void walk(std::uint64_t address) {
    constexpr std::string_view what = "a B-tree";
    const std::vector<unsigned char> bytes = read_(address, 38, what);
    Cursor header(bytes, what);
    header.expect(std::string_view("BTHD\0", 5));
    const auto type = header.number<std::uint8_t>();
    const auto node_size = header.number<std::uint32_t>();
    const auto record_bytes = header.number<std::uint16_t>(), depth = header.number<std::uint16_t>();
    const auto split = header.number<std::uint8_t>(), merge = header.number<std::uint8_t>();
    const auto root = header.number<std::uint64_t>();
    const auto records = header.number<std::uint16_t>();
    require(type == kind_.tree_type && node_size == node_bytes && record_bytes == kind_.record_bytes &&
                depth <= max_depth && split == 100 && merge == 40,
            "{}: is not of the form that gainlens writes", what);
    require((root == no_address) == (records == 0), "{}: its root is missing", what);
    levels_ = {{(node_bytes - prefix_bytes) / kind_.record_bytes, 0, 0}};
    levels_[0].in_all = levels_[0].max_records;
    for (unsigned level = 1; level <= depth; ++level) {
      const unsigned pointer = 8 + 1 + levels_.back().total_bytes;
      const std::uint64_t most = (node_bytes - (prefix_bytes + pointer)) / (kind_.record_bytes + pointer);
      const std::uint64_t in_all = (most + 1) * levels_.back().in_all + most;
      levels_.push_back({most, in_all, static_cast<unsigned>((std::bit_width(in_all) - 1) / 8 + 1)});
    }
    if (records > 0) walk_node(root, depth, records);
  }

 private:
  static constexpr std::uint64_t node_bytes = 512, prefix_bytes = 4 + 1 + 1 + checksum_bytes;
  static constexpr unsigned max_depth = 4;

  /// Limits of the nodes that stand as far from the leaves.
  struct Level {
    std::uint64_t max_records = 0;
    std::uint64_t in_all = 0;  ///< with the nodes below
    unsigned total_bytes = 0;  ///< of a number up to in_all; 0: leaves, for which it is not stored
  };

  void walk_node(std::uint64_t address, unsigned level, std::uint64_t records) {
    constexpr std::string_view what = "a node of a B-tree";
    require(records <= levels_[level].max_records, "{}: {} records; at most {} fit", what, records,
            levels_[level].max_records);
    const std::vector<unsigned char> bytes = read_(address, node_bytes, what);
    Cursor node(bytes, what);
    node.expect(level == 0 ? std::string_view("BTLF\0", 5) : std::string_view("BTIN\0", 5));
    require(node.number<std::uint8_t>() == kind_.tree_type, "{}: is of another tree", what);
    for (std::uint64_t i = 0; i < records; ++i)
      use_record_(node.take(kind_.record_bytes).subspan(kind_.id_at, kind_.id_bytes));
    if (level == 0) return;
    for (std::uint64_t i = 0; i <= records; ++i) {
      const auto child = node.number<std::uint64_t>();
      const auto count = node.number<std::uint8_t>();
      node.take(levels_[level - 1].total_bytes);
      walk_node(child, level - 1, count);
    }
  }

  const DenseStorage& kind_;
  const Read& read_;
  const std::function<void(Bytes)>& use_record_;
  std::vector<Level> levels_;
};

}  // namespace

void check_structure(const FileBytes& file) {
  Structure(file).check();
}

void for_each_dense_entry(const DenseStorage& kind, std::uint64_t heap, std::uint64_t tree, const Read& read,
                          const std::function<void(Bytes)>& use) {
  const Heap entries(kind, heap, read);
  const std::function<void(Bytes)> use_record = [&](Bytes id) { use(entries.entry(id)); };
  Tree(kind, read, use_record).walk(tree);
}

}  // namespace gainlens::runfile::hdf5
