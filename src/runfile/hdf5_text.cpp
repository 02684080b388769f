#include "core/checked.h"
#include "runfile/hdf5_detail.h"

#include <algorithm>
#include <map>
#include <unordered_map>

// Texts of an untrusted file. libhdf5 1.10 gives a text a buffer as large as the reference to it says, and copies as
// many bytes into it as the text has: a file in which the two differ overflows the heap. So libhdf5 never follows a
// reference here. What is promised: a text is read only if its collection lies in the file, the text lies in its
// collection, and it has exactly the length that the reference to it says.

namespace gainlens::runfile::hdf5 {
namespace {

constexpr std::size_t reference_bytes = 4 + 8 + 4;

/// What a dataset holds in the place of a text (section IV.B of the HDF5 file format specification 3.0).
struct TextReference {
  std::uint32_t length = 0;  ///< in elements: bytes of a text
  std::uint64_t collection = 0;
  std::uint32_t index = 0;
};

TextReference reference_at(Cursor& bytes) {
  TextReference reference;
  reference.length = bytes.number<std::uint32_t>();
  reference.collection = bytes.number<std::uint64_t>();
  reference.index = bytes.number<std::uint32_t>();
  return reference;
}

/// The collections of objects that references lead to (section III.E).
class GlobalHeap {
 public:
  explicit GlobalHeap(const FileBytes& file) : file_(file) {}

  /// @param element_bytes  of what the reference counts
  /// @throws Error  the object is not there, or has another size
  Bytes object(const TextReference& reference, std::uint64_t element_bytes) {
    const std::uint64_t expected = reference.length * element_bytes;
    if (reference.collection == 0) {
      require(expected == 0, "a text of {} bytes lies nowhere in the file", expected);
      return {};
    }
    const Collection& collection = collection_at(reference.collection);
    const auto found = collection.objects.find(reference.index);
    require(found != collection.objects.end(), "a text is missing in its collection");
    require(found->second.size() == expected, "a text has {} bytes, and the reference to it says {}",
            found->second.size(), expected);
    return found->second;
  }

 private:
  struct Collection {
    std::vector<unsigned char> bytes;
    std::unordered_map<std::uint32_t, Bytes> objects;
  };

  const Collection& collection_at(std::uint64_t address) {
    const auto [place, is_new] = collections_.try_emplace(address);
    if (!is_new) return place->second;
    Collection& collection = place->second;
    constexpr std::string_view what = "a collection of texts";
    constexpr std::uint64_t head_bytes = 16;
    const std::vector<unsigned char> head_of_file = file_.at(address, head_bytes, what);
    Cursor head(head_of_file, what);
    head.expect(std::string_view("GCOL\1\0\0\0", 8));
    const auto size = head.number<std::uint64_t>();
    require(size >= head_bytes && size <= file_.size() - read_, "{}: {} bytes, and the file has {}", what, size,
            file_.size());
    read_ += size;  // collections do not lie upon each other, so all together are not larger than the file
    collection.bytes = file_.at(address, size, what);
    Cursor objects(Bytes(collection.bytes).subspan(head_bytes), what);
    while (objects.rest() >= head_bytes) {
      const auto index = objects.number<std::uint16_t>();
      objects.take(6);  // how often it is used, and nothing
      const auto bytes = objects.number<std::uint64_t>();
      if (index == 0) break;  // the rest is free
      require(bytes <= objects.rest(), "{}: a text of {} bytes does not lie in it", what, bytes);
      const Bytes object = objects.take(bytes);
      require(collection.objects.emplace(index, object).second, "{}: two texts have one number", what);
      objects.take(std::min<std::uint64_t>((8 - bytes % 8) % 8, objects.rest()));
    }
    return collection;
  }

  const FileBytes& file_;
  std::uint64_t read_ = 0;
  std::map<std::uint64_t, Collection> collections_;
};

std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  return pointers;
}

/// Reads the box of size `count` at `offset` of a contiguous dataset of texts.
std::vector<std::string> texts_of_box(const Handle& dataset, const Shape& shape, const Shape& offset,
                                      const Shape& count, std::uint64_t max_bytes, const std::string& path) {
  require(H5Tis_variable_str(type_of(dataset).get()) > 0, "dataset '{}' does not hold text", path);
  const FileBytes file = FileBytes::of(dataset);
  const haddr_t start = H5Dget_offset(dataset.get());
  const auto all =
      static_cast<std::uint64_t>(checked_mul<std::int64_t>(checked_elements(shape, path), reference_bytes, path));
  require(start != HADDR_UNDEF, "dataset '{}' is not contiguous, or holds nothing", path);
  file.check_holds(start, all, path);

  // Along the last axes that are taken whole, the references stand in one row.
  std::size_t outer = shape.size();
  std::int64_t row = 1;
  while (outer > 0 && count[outer - 1] == shape[outer - 1]) row *= shape[--outer];
  if (outer > 0) row *= count[--outer];
  std::vector<std::string> texts;
  const std::int64_t elements = checked_elements(count, path);
  if (elements == 0) return texts;
  texts.reserve(static_cast<std::size_t>(elements));
  GlobalHeap heap(file);
  std::uint64_t left = max_bytes;
  Shape at = offset, end = offset;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) end[axis] += count[axis];
  do {
    std::int64_t place = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) place = place * shape[axis] + at[axis];
    const std::vector<unsigned char> references = file.at(start + static_cast<std::uint64_t>(place) * reference_bytes,
                                                          static_cast<std::uint64_t>(row) * reference_bytes, path);
    Cursor cursor(references, path);
    for (std::int64_t i = 0; i < row; ++i) {
      const Bytes text = heap.object(reference_at(cursor), 1);
      require(text.size() < left, "dataset '{}' claims more text than {} bytes, which is the most that is read", path,
              max_bytes);
      left -= text.size() + 1;  // with a zero behind each
      require(std::find(text.begin(), text.end(), 0) == text.end(), "dataset '{}' holds a text with a zero byte", path);
      texts.emplace_back(text.begin(), text.end());
    }
  } while (advance(at, offset, end, Shape(shape.size(), 1), outer));
  return texts;
}

}  // namespace

hid_t text_type() {
  prepare_library();
  static const hid_t type = [] {
    const hid_t made = H5Tcopy(H5T_C_S1);  // never closed: H5dont_atexit() leaves the library open
    check(made < 0 ? -1 : H5Tset_size(made, H5T_VARIABLE), "text type");
    check(H5Tset_cset(made, H5T_CSET_UTF8), "text type");
    return made;
  }();
  return type;
}

Handle write_strings(hid_t parent, const std::string& name, const std::vector<std::string>& strings,
                     const Shape& shape) {
  Handle dataset = create_dataset(parent, name, {text_type(), shape, {}});
  write(dataset, text_type(), pointers_to(strings).data());
  return dataset;
}

void write_strings_box(const Handle& dataset, const Shape& offset, const Shape& count,
                       const std::vector<std::string>& strings) {
  write_box(dataset, offset, count, text_type(), pointers_to(strings).data());
}

std::vector<std::string> read_strings(hid_t parent, const std::string& path, const Shape& shape,
                                      std::uint64_t max_bytes) {
  const Handle dataset = open_any(parent, path);
  const Shape found = shape_of(dataset, path);
  require(found == shape, "dataset '{}' has shape {}; expected {}", path, shown(found), shown(shape));
  return texts_of_box(dataset, shape, Shape(shape.size(), 0), shape, max_bytes, path);
}

std::vector<std::string> read_strings_box(const Handle& dataset, const Shape& offset, const Shape& count,
                                          std::uint64_t max_bytes) {
  const Shape shape = shape_of(dataset, "text");
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    require(offset.at(axis) >= 0 && count.at(axis) >= 0 && offset[axis] <= shape[axis] - count[axis],
            "a box of texts does not lie in its dataset");
  return texts_of_box(dataset, shape, offset, count, max_bytes, "text");
}

namespace {

/// Lets H5Aread() give references as they are in the file: for this pair of types the library calls this function in
/// the place of its own, which would follow them.
herr_t keep_references(hid_t from, hid_t, H5T_cdata_t* data, std::size_t, std::size_t, std::size_t, void*, void*,
                       hid_t) {
  if (data->command != H5T_CONV_INIT) return 0;
  data->need_bkg = H5T_BKG_NO;
  return H5Tget_size(from) == reference_bytes || H5Tget_size(from) == sizeof(hvl_t) ? 0 : -1;
}

/// 16 bytes that libhdf5 does not understand.
hid_t kept_reference_type() {
  static const hid_t type = [] {
    const hid_t opaque = H5Tcreate(H5T_OPAQUE, reference_bytes);
    const Handle lists(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose, "type of references");
    check(H5Tregister(H5T_PERS_SOFT, "gainlens references", lists.get(), opaque, keep_references), "references");
    return opaque;
  }();
  return type;
}

}  // namespace

bool has_scale(const Handle& dataset, unsigned axis, std::uint64_t address) {
  constexpr const char* name = "DIMENSION_LIST";
  const hid_t kept = kept_reference_type();
  if (H5Aexists(dataset.get(), name) <= 0) return false;
  const Handle attribute(H5Aopen(dataset.get(), name, H5P_DEFAULT), H5Aclose, name);
  const Handle type(H5Aget_type(attribute.get()), H5Tclose, name), space(H5Aget_space(attribute.get()), H5Sclose, name);
  const Shape shape = shape_of(dataset, name);
  require(H5Tget_class(type.get()) == H5T_VLEN && H5Sget_simple_extent_npoints(space.get()) == std::ssize(shape) &&
              axis < shape.size(),
          "its list of dimension scales has another form");
  std::vector<unsigned char> bytes(shape.size() * reference_bytes);
  check(H5Aread(attribute.get(), kept, bytes.data()), "dimension scale");
  Cursor references(Bytes(bytes).subspan(axis * reference_bytes), name);
  const FileBytes file = FileBytes::of(dataset);
  GlobalHeap heap(file);
  const Bytes scales = heap.object(reference_at(references), sizeof address);
  for (Cursor scale(scales, name); scale.rest() > 0;) {
    if (scale.number<std::uint64_t>() == address) return true;
  }
  return false;
}

}  // namespace gainlens::runfile::hdf5
