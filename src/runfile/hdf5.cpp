#include "runfile/hdf5.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5_hl.h>

#include "core/checked.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace gainlens::runfile::hdf5 {
namespace {

/// Runs before the first call of the library. The library then prints no messages (they become Error), loads no plugins
/// for untrusted files, and does not try again to close a file when the program ends: after a full disk that would
/// crash.
void prepare_library() {
  [[maybe_unused]] static const bool once = [] {
    H5dont_atexit();
    H5open();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);
    return true;
  }();
}

/// The cause of the last failure: the innermost entry of the library's error stack. For a failed system call only its
/// message is kept, because the rest holds the time and addresses.
std::string library_reason() {
  std::string reason;
  const auto keep = [](unsigned, const H5E_error2_t* entry, void* data) -> herr_t {
    *static_cast<std::string*>(data) = entry->desc != nullptr ? entry->desc : "";
    return 1;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep, &reason);
  constexpr std::string_view marker = "error message = '";
  if (const auto start = reason.find(marker); start != std::string::npos) {
    reason.erase(0, start + marker.size());
    reason.erase(std::min(reason.find('\''), reason.size()));
  }
  return reason.empty() ? "the HDF5 library gives no reason" : reason;
}

/// The first failure since write_file() began; empty if there was none. Destructors store their failures here.
std::string& failure_while_writing() {
  static std::string failure;
  return failure;
}

/// "<action>: <why the library failed>". Stored for write_file() if it is the first failure.
std::string failure_of(std::string_view action) {
  const std::string failure = fmt::format("{}: {}", action, library_reason());
  H5Eclear2(H5E_DEFAULT);
  if (failure_while_writing().empty()) failure_while_writing() = failure;
  return failure;
}

[[noreturn]] void fail(std::string_view action) {
  throw Error(failure_of(action));
}

void check(herr_t status, std::string_view action) {
  if (status < 0) fail(action);
}

template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw Error(fmt::format(format, std::forward<Args>(args)...));
}

std::vector<hsize_t> extents(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

std::string shown(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Handle property_list(hid_t of_class) {
  return {H5Pcreate(of_class), H5Pclose, "property list"};
}

Handle dataspace(const Shape& shape) {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose, "dataspace"};
  return {H5Screate_simple(static_cast<int>(shape.size()), extents(shape).data(), nullptr), H5Sclose, "dataspace"};
}

Handle space_of(const Handle& dataset) {
  return {H5Dget_space(dataset.get()), H5Sclose, "dataspace"};
}

Handle fixed_text_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "text type");
  check(H5Tset_size(type.get(), size), "text type");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "text type");
  return type;
}

Shape shape_of(const Handle& dataset, const std::string& name) {
  const Handle space = space_of(dataset);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  require(rank >= 0 && H5Sget_simple_extent_type(space.get()) != H5S_NULL, "dataset '{}' has no shape", name);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "shape");
  return {sizes.begin(), sizes.end()};  // a size beyond int64 becomes negative and fits no schema
}

Handle file_access() {
  Handle access = property_list(H5P_FILE_ACCESS);
  check(H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG), "file access");
  // A fixed format version, whatever the library's default is. Version 3 objects carry checksums.
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110), "file access");
  // The run folder has its own lock. The library's lock would fail on read-only and network file systems.
  check(H5Pset_file_locking(access.get(), false, true), "file access");
  return access;
}

/// Refuses data in other files, and storage that is larger than the file, before memory of that size is allocated.
void check_storage(const Handle& dataset, const std::string& path, const Layout& layout) {
  const Handle creation(H5Dget_create_plist(dataset.get()), H5Pclose, "dataset properties");
  require(H5Pget_external_count(creation.get()) == 0, "dataset '{}' keeps its data in another file", path);
  const H5D_layout_t kind = H5Pget_layout(creation.get());
  if (!layout.chunk.empty()) {
    require(kind == H5D_CHUNKED, "dataset '{}' is not chunked", path);
    std::vector<hsize_t> chunk(layout.chunk.size());
    check(H5Pget_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()), "chunks");
    require(chunk == extents(layout.chunk), "dataset '{}' has chunks of {}; expected {}", path,
            shown({chunk.begin(), chunk.end()}), shown(layout.chunk));
    return;
  }
  require(kind == H5D_CONTIGUOUS, "dataset '{}' is not contiguous", path);
  const auto bytes = static_cast<std::uint64_t>(checked_mul<std::int64_t>(
      checked_elements(layout.shape, path), static_cast<std::int64_t>(H5Tget_size(layout.type)), path));
  const Handle file(H5Iget_file_id(dataset.get()), H5Fclose, "file");
  hsize_t file_bytes = 0;
  check(H5Fget_filesize(file.get(), &file_bytes), "file size");
  const haddr_t start = H5Dget_offset(dataset.get());
  const std::uint64_t stored =
      stored_bytes(dataset);  // for text more than `bytes`: a reference is longer in the file than in memory
  require(stored >= bytes && start != HADDR_UNDEF && start <= file_bytes && stored <= file_bytes - start,
          "dataset '{}' claims {} bytes that the file does not hold", path, bytes);
}

/// Memory for the strings of one read. It is bounded, and freed with the object, also if the read fails.
class TextArena {
 public:
  explicit TextArena(std::uint64_t most_bytes) : left_(most_bytes) {}
  bool refused() const { return refused_; }

  static void* allocate(std::size_t size, void* self) noexcept {
    auto& arena = *static_cast<TextArena*>(self);
    arena.refused_ = arena.refused_ || size > arena.left_;
    if (arena.refused_) return nullptr;
    arena.left_ -= size;
    return arena.blocks_.emplace_back(std::make_unique<char[]>(size)).get();
  }
  static void release(void*, void*) noexcept {}

 private:
  std::uint64_t left_;
  bool refused_ = false;
  std::vector<std::unique_ptr<char[]>> blocks_;
};

}  // namespace

Handle::Handle(hid_t id, Close closer, std::string_view action) : id_(id), close_(closer) {
  if (id < 0) fail(action);
}
Handle::Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
Handle& Handle::operator=(Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}
Handle::~Handle() {
  if (id_ >= 0 && close_(id_) < 0) failure_of("close");
}

void write_file(const std::filesystem::path& path, const std::function<void(const Handle& file)>& fill) {
  prepare_library();
  failure_while_writing().clear();
  {
    const Handle creation = property_list(H5P_FILE_CREATE);
    check(H5Pset_obj_track_times(creation.get(), false), "file properties");
    const Handle file(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), file_access().get()), H5Fclose, "create");
    fill(file);
    require(H5Fget_obj_count(file.get(), H5F_OBJ_ALL) == 1, "objects of the file are still open");
    check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "flush");
  }
  require(failure_while_writing().empty(), "{}", failure_while_writing());
}

Handle open_file(const std::filesystem::path& path) {
  prepare_library();
  return {H5Fopen(path.c_str(), H5F_ACC_RDONLY, file_access().get()), H5Fclose, "open"};
}

Handle create_group(hid_t parent, const std::string& name) {
  const Handle creation = property_list(H5P_GROUP_CREATE);
  check(H5Pset_obj_track_times(creation.get(), false), "group properties");
  return {H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), H5Gclose,
          fmt::format("group '{}'", name)};
}

bool has_object(hid_t parent, const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string step = path.substr(0, end);
    H5L_info_t info;
    if (H5Lexists(parent, step.c_str(), H5P_DEFAULT) <= 0) return false;
    if (H5Lget_info(parent, step.c_str(), &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD) return false;
  }
  return true;
}

Handle create_dataset(hid_t parent, const std::string& name, const Layout& layout) {
  const Handle creation = property_list(H5P_DATASET_CREATE);
  check(H5Pset_obj_track_times(creation.get(), false), "dataset properties");
  if (H5Tget_class(layout.type) == H5T_FLOAT) {
    const double missing = std::numeric_limits<double>::quiet_NaN();
    check(H5Pset_fill_value(creation.get(), H5T_NATIVE_DOUBLE, &missing), "fill value");
  } else if (layout.fill) {
    check(H5Pset_fill_value(creation.get(), H5T_NATIVE_INT64, &*layout.fill), "fill value");
  }
  if (layout.chunk.empty()) {
    check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "dataset properties");
  } else {
    check(H5Pset_chunk(creation.get(), static_cast<int>(layout.chunk.size()), extents(layout.chunk).data()), "chunks");
    check(H5Pset_shuffle(creation.get()), "shuffle filter");
    check(H5Pset_deflate(creation.get(), 4), "deflate filter");
    check(H5Pset_fletcher32(creation.get()), "checksum filter");
  }
  return {H5Dcreate2(parent, name.c_str(), layout.type, dataspace(layout.shape).get(), H5P_DEFAULT, creation.get(),
                     H5P_DEFAULT),
          H5Dclose, fmt::format("dataset '{}'", name)};
}

Handle open_any(hid_t parent, const std::string& path) {
  require(has_object(parent, path), "dataset '{}' is missing", path);
  return {H5Dopen2(parent, path.c_str(), H5P_DEFAULT), H5Dclose, fmt::format("dataset '{}'", path)};
}

Shape shape_at(hid_t parent, const std::string& path) {
  return shape_of(open_any(parent, path), path);
}

bool has_type(const Handle& dataset, hid_t type) {
  const Handle stored(H5Dget_type(dataset.get()), H5Tclose, "type");
  return H5Tequal(stored.get(), type) > 0;
}

Handle open_dataset(hid_t parent, const std::string& path, const Layout& layout) {
  Handle dataset = open_any(parent, path);
  const Shape shape = shape_of(dataset, path);
  require(shape == layout.shape, "dataset '{}' has shape {}; expected {}", path, shown(shape), shown(layout.shape));
  require(has_type(dataset, layout.type), "dataset '{}' holds numbers of another type than the request says", path);
  check_storage(dataset, path, layout);
  return dataset;
}

void write(const Handle& dataset, hid_t memory_type, const void* data) {
  check(H5Dwrite(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "write");
}

void write_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, const void* data) {
  const Handle target = space_of(dataset);
  check(H5Sselect_hyperslab(target.get(), H5S_SELECT_SET, extents(offset).data(), nullptr, extents(count).data(),
                            nullptr),
        "selection");
  check(H5Dwrite(dataset.get(), memory_type, dataspace(count).get(), target.get(), H5P_DEFAULT, data), "write");
}

void read(const Handle& dataset, hid_t memory_type, void* data) {
  check(H5Dread(dataset.get(), memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "read");
}

void read_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data) {
  const Handle source = space_of(dataset);
  check(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, extents(offset).data(), nullptr, extents(count).data(),
                            nullptr),
        "selection");
  check(H5Dread(dataset.get(), memory_type, dataspace(count).get(), source.get(), H5P_DEFAULT, data), "read");
}

std::uint64_t stored_bytes(const Handle& dataset) {
  return H5Dget_storage_size(dataset.get());
}

namespace {

/// A chunk as it is stored, with all filters still applied.
struct StoredChunk {
  std::vector<hsize_t> offset;
  std::uint32_t skipped_filters = 0;
  std::vector<char> bytes;
  bool operator==(const StoredChunk&) const = default;
};

StoredChunk read_chunk(const Handle& dataset, std::vector<hsize_t> offset) {
  StoredChunk chunk{std::move(offset), 0, {}};
  hsize_t size = 0;
  check(H5Dget_chunk_storage_size(dataset.get(), chunk.offset.data(), &size), "chunk");
  chunk.bytes.resize(size);
  check(H5Dread_chunk(dataset.get(), H5P_DEFAULT, chunk.offset.data(), &chunk.skipped_filters, chunk.bytes.data()),
        "read of a chunk");
  return chunk;
}

/// Calls `use` with each chunk of a shard's dataset. Its offset is changed to the one in [sample, axes...].
template <typename Use>
void for_each_chunk(const Handle& from, std::int64_t sample, Use use) {
  const Handle space = space_of(from);
  const auto rank = static_cast<std::size_t>(H5Sget_simple_extent_ndims(space.get()));
  const std::uint64_t chunks = chunk_count(from);
  for (hsize_t index = 0; index < chunks; ++index) {
    std::vector<hsize_t> offset(rank);
    unsigned skipped_filters = 0;
    haddr_t address = 0;
    hsize_t size = 0;
    check(H5Dget_chunk_info(from.get(), space.get(), index, offset.data(), &skipped_filters, &address, &size), "chunk");
    StoredChunk chunk = read_chunk(from, std::move(offset));
    chunk.offset.insert(chunk.offset.begin(), static_cast<hsize_t>(sample));
    use(chunk);
  }
}

}  // namespace

std::uint64_t chunk_count(const Handle& dataset) {
  hsize_t chunks = 0;
  check(H5Dget_num_chunks(dataset.get(), space_of(dataset).get(), &chunks), "chunks");
  return chunks;
}

void copy_chunks(const Handle& from, const Handle& to, std::int64_t sample) {
  for_each_chunk(from, sample, [&](const StoredChunk& chunk) {
    check(H5Dwrite_chunk(to.get(), H5P_DEFAULT, chunk.skipped_filters, chunk.offset.data(), chunk.bytes.size(),
                         chunk.bytes.data()),
          "write of a chunk");
  });
}

bool has_copied_chunks(const Handle& from, const Handle& to, std::int64_t sample) {
  bool same = true;
  for_each_chunk(from, sample, [&](const StoredChunk& chunk) { same = same && read_chunk(to, chunk.offset) == chunk; });
  return same;
}

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

namespace {

std::vector<const char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<const char*> pointers;
  pointers.reserve(strings.size());
  for (const std::string& text : strings) pointers.push_back(text.c_str());
  return pointers;
}

/// Reads `count` strings of the selected part of a dataset.
std::vector<std::string> selected_strings(const Handle& dataset, hid_t memory, hid_t selection, std::size_t count,
                                          std::uint64_t most_bytes, const std::string& path) {
  TextArena arena(most_bytes);
  const Handle transfer = property_list(H5P_DATASET_XFER);
  check(H5Pset_vlen_mem_manager(transfer.get(), TextArena::allocate, &arena, TextArena::release, nullptr),
        "text buffers");
  std::vector<char*> pointers(count, nullptr);
  const herr_t status = H5Dread(dataset.get(), text_type(), memory, selection, transfer.get(), pointers.data());
  require(!arena.refused(), "dataset '{}' claims more text than {} bytes, which is the most that is read", path,
          most_bytes);
  check(status, fmt::format("read of '{}'", path));
  std::vector<std::string> strings;
  strings.reserve(pointers.size());
  for (const char* text : pointers) strings.emplace_back(text != nullptr ? text : "");
  return strings;
}

}  // namespace

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
                                      std::uint64_t most_bytes) {
  const Handle dataset = open_any(parent, path);
  const Shape found = shape_of(dataset, path);
  require(found == shape, "dataset '{}' has shape {}; expected {}", path, shown(found), shown(shape));
  const Handle stored(H5Dget_type(dataset.get()), H5Tclose, "type");
  require(H5Tis_variable_str(stored.get()) > 0, "dataset '{}' does not hold text", path);
  check_storage(dataset, path, {stored.get(), shape, {}});
  return selected_strings(dataset, H5S_ALL, H5S_ALL, static_cast<std::size_t>(checked_elements(shape, path)),
                          most_bytes, path);
}

std::vector<std::string> read_strings_box(const Handle& dataset, const Shape& offset, const Shape& count,
                                          std::uint64_t most_bytes) {
  const Handle source = space_of(dataset);
  check(H5Sselect_hyperslab(source.get(), H5S_SELECT_SET, extents(offset).data(), nullptr, extents(count).data(),
                            nullptr),
        "selection");
  return selected_strings(dataset, dataspace(count).get(), source.get(),
                          static_cast<std::size_t>(checked_elements(count, "text")), most_bytes, "text");
}

void write_attribute(hid_t object, const std::string& name, std::string_view text) {
  const std::string stored(text.empty() ? std::string_view("\0", 1) : text);  // the library has no type for no bytes
  const Handle type = fixed_text_type(stored.size());
  const Handle attribute(H5Acreate2(object, name.c_str(), type.get(), dataspace({}).get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, name);
  check(H5Awrite(attribute.get(), type.get(), stored.data()), name);
}

void write_attribute(hid_t object, const std::string& name, std::int64_t number) {
  const Handle attribute(H5Acreate2(object, name.c_str(), H5T_STD_I64LE, dataspace({}).get(), H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose, name);
  check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, &number), name);
}

namespace {

/// The attribute if it is there and scalar.
std::optional<Handle> open_scalar_attribute(hid_t object, const std::string& name) {
  if (H5Aexists(object, name.c_str()) <= 0) return std::nullopt;
  Handle attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, name);
  const Handle space(H5Aget_space(attribute.get()), H5Sclose, name);
  if (H5Sget_simple_extent_type(space.get()) != H5S_SCALAR) return std::nullopt;
  return attribute;
}

}  // namespace

std::optional<std::string> read_text_attribute(hid_t object, const std::string& name) {
  constexpr std::size_t most_bytes = 1 << 16;
  const std::optional<Handle> attribute = open_scalar_attribute(object, name);
  if (!attribute) return std::nullopt;
  const Handle type(H5Aget_type(attribute->get()), H5Tclose, name);
  const std::size_t size = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 || size == 0 || size > most_bytes)
    return std::nullopt;
  std::string text(size, '\0');
  check(H5Aread(attribute->get(), type.get(), text.data()), name);
  text.erase(std::min(text.find('\0'), text.size()));
  return text;
}

std::optional<std::int64_t> read_integer_attribute(hid_t object, const std::string& name) {
  const std::optional<Handle> attribute = open_scalar_attribute(object, name);
  if (!attribute) return std::nullopt;
  const Handle type(H5Aget_type(attribute->get()), H5Tclose, name);
  if (H5Tget_class(type.get()) != H5T_INTEGER) return std::nullopt;
  std::int64_t number = 0;
  check(H5Aread(attribute->get(), H5T_NATIVE_INT64, &number), name);
  return number;
}

void make_scale(const Handle& dataset, const std::string& name) {
  check(H5DSset_scale(dataset.get(), name.c_str()), "dimension scale");
}

void attach_scale(const Handle& dataset, const Handle& scale, unsigned axis) {
  check(H5DSattach_scale(dataset.get(), scale.get(), axis), "dimension scale");
}

std::uint64_t address_of(hid_t parent, const std::string& path) {
  require(has_object(parent, path), "'{}' is missing", path);
  H5O_info_t info;
  check(H5Oget_info_by_name2(parent, path.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT), path);
  return info.addr;
}

bool has_scale(const Handle& dataset, unsigned axis, std::uint64_t address) {
  const auto is_it = [](hid_t, unsigned, hid_t scale, void* wanted) -> herr_t {
    H5O_info_t info;
    if (H5Oget_info2(scale, &info, H5O_INFO_BASIC) < 0) return -1;
    return info.addr == *static_cast<const std::uint64_t*>(wanted) ? 1 : 0;
  };
  const herr_t found = H5DSiterate_scales(dataset.get(), axis, nullptr, is_it, &address);
  check(found, "dimension scale");
  return found > 0;
}

void hard_link(const Handle& object, hid_t folder, const std::string& name) {
  check(H5Olink(object.get(), folder, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), fmt::format("link '{}'", name));
}

}  // namespace gainlens::runfile::hdf5
