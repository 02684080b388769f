#include "runfile/hdf5.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <hdf5_hl.h>

#include "core/available_memory.h"
#include "core/checked.h"
#include "core/quantity.h"
#include "core/regular_file.h"
#include "runfile/hdf5_detail.h"
#include "runfile/hdf5_structure.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace gainlens::runfile::hdf5 {
namespace {

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

Handle property_list(hid_t property_class) {
  return {H5Pcreate(property_class), H5Pclose, "property list"};
}

Handle fixed_text_type(std::size_t size) {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose, "text type");
  check(H5Tset_size(type.get(), size), "text type");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "text type");
  return type;
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

/// The dataspace of a dataset with a box selected; that of one value as it is.
Handle selected(const Handle& dataset, const Shape& offset, const Shape& count) {
  Handle space = space_of(dataset);
  if (count.empty()) return space;
  check(
      H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, extents(offset).data(), nullptr, extents(count).data(), nullptr),
      "selection");
  return space;
}

/// Refuses chunks of another shape. That a contiguous dataset lies in the file was seen when the file was opened.
void check_storage(const Handle& dataset, const std::string& path, const Layout& layout) {
  const Handle creation = creation_of(dataset);
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
  const auto values = static_cast<std::uint64_t>(checked_elements(layout.shape, path));
  require(values == 0 || H5Dget_offset(dataset.get()) != HADDR_UNDEF,
          "dataset '{}' claims {} values that the file does not hold", path, values);
}

}  // namespace

/// The library then prints no messages (they become Error), loads no plugins for untrusted files, and does not try
/// again to close a file when the program ends: after a full disk that would crash.
void prepare_library() {
  [[maybe_unused]] static const bool once = [] {
    H5dont_atexit();
    H5open();
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
    H5PLset_loading_state(0);
    return true;
  }();
}

void check(herr_t status, std::string_view action) {
  if (status < 0) fail(action);
}

std::vector<hsize_t> extents(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

std::string shown(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Handle dataspace(const Shape& shape) {
  if (shape.empty()) return {H5Screate(H5S_SCALAR), H5Sclose, "dataspace"};
  return {H5Screate_simple(static_cast<int>(shape.size()), extents(shape).data(), nullptr), H5Sclose, "dataspace"};
}

Handle space_of(const Handle& dataset) {
  return {H5Dget_space(dataset.get()), H5Sclose, "dataspace"};
}

Handle type_of(const Handle& dataset) {
  return {H5Dget_type(dataset.get()), H5Tclose, "type"};
}

Handle creation_of(const Handle& dataset) {
  return {H5Dget_create_plist(dataset.get()), H5Pclose, "dataset properties"};
}

bool advance(Shape& at, const Shape& begin, const Shape& end, const Shape& step, std::size_t axes) {
  for (std::size_t axis = axes; axis-- > 0; at[axis] = begin[axis])
    if ((at[axis] += step[axis]) < end[axis]) return true;
  return false;
}

Shape shape_of(const Handle& dataset, const std::string& name) {
  const Handle space = space_of(dataset);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  require(rank >= 0 && H5Sget_simple_extent_type(space.get()) != H5S_NULL, "dataset '{}' has no shape", name);
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr), "shape");
  return {sizes.begin(), sizes.end()};  // a size beyond int64 becomes negative and fits no schema
}

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
    // The library may count objects that it lost with a damaged file before.
    const ssize_t open_before = H5Fget_obj_count(file.get(), H5F_OBJ_ALL);
    fill(file);
    require(H5Fget_obj_count(file.get(), H5F_OBJ_ALL) == open_before, "objects of the file are still open");
    check(H5Fflush(file.get(), H5F_SCOPE_GLOBAL), "flush");
  }
  require(failure_while_writing().empty(), "{}", failure_while_writing());
}

Handle open_file(const std::filesystem::path& path) {
  prepare_library();
  std::string reason;
  const FileDescriptor file = try_open_regular_file(path, reason);
  require(file.get() >= 0, "{}", reason);
  check_structure(FileBytes(file.get()));
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
  return H5Tequal(type_of(dataset).get(), type) > 0;
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
  const Handle target = selected(dataset, offset, count);
  check(H5Dwrite(dataset.get(), memory_type, dataspace(count).get(), target.get(), H5P_DEFAULT, data), "write");
}

void read(const Handle& dataset, hid_t memory_type, void* data) {
  const Shape shape = shape_of(dataset, "to be read");
  read_box(dataset, Shape(shape.size(), 0), shape, memory_type, data);
}

void read_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data) {
  if (H5Pget_layout(creation_of(dataset).get()) == H5D_CHUNKED)
    return read_chunked_box(dataset, offset, count, memory_type, data);
  const Handle source = selected(dataset, offset, count);
  check(H5Dread(dataset.get(), memory_type, dataspace(count).get(), source.get(), H5P_DEFAULT, data), "read");
}

void check_content(const Handle& dataset, const Shape& shape, const std::string& path) {
  constexpr std::uint64_t max_packing = 1032;  // of deflate
  constexpr std::uint64_t never_too_large = std::uint64_t{1} << 30;
  const auto bytes = static_cast<std::uint64_t>(checked_mul<std::int64_t>(checked_elements(shape, path), 8, path));
  const std::uint64_t stored = stored_bytes(dataset);
  // Numbers of 4 bytes become 8. A run that has just begun may hold few of its chunks.
  require(bytes / 2 / max_packing <= stored || bytes <= never_too_large, "dataset '{}' claims {} numbers in {} bytes",
          path, bytes / 8, stored);
  const auto available = available_memory();
  require(bytes <= never_too_large || !available || bytes <= *available,
          "dataset '{}' needs {} of memory, and {} are available", path, format_bytes(bytes),
          format_bytes(available.value_or(0)));
}

std::uint64_t stored_bytes(const Handle& dataset) {
  return H5Dget_storage_size(dataset.get());
}

namespace {

/// A chunk as it is stored, with all filters still applied.
struct StoredChunk {
  std::vector<hsize_t> offset;
  std::uint32_t skipped_filters = 0;
  std::vector<unsigned char> bytes;
  bool operator==(const StoredChunk&) const = default;
};

/// @param address, size  where it lies in the file
StoredChunk chunk_at(const Handle& dataset, std::vector<hsize_t> offset, unsigned skipped_filters, haddr_t address,
                     hsize_t size) {
  StoredChunk chunk{std::move(offset), skipped_filters, {}};
  if (address != HADDR_UNDEF) chunk.bytes = FileBytes::of(dataset).at(address, size, "a chunk");
  return chunk;
}

StoredChunk read_chunk(const Handle& dataset, const std::vector<hsize_t>& offset) {
  unsigned skipped_filters = 0;
  haddr_t address = HADDR_UNDEF;
  hsize_t size = 0;
  check(H5Dget_chunk_info_by_coord(dataset.get(), offset.data(), &skipped_filters, &address, &size), "chunk");
  return chunk_at(dataset, offset, skipped_filters, address, size);
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
    StoredChunk chunk = chunk_at(from, std::move(offset), skipped_filters, address, size);
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
  constexpr std::size_t max_bytes = 1 << 16;
  const std::optional<Handle> attribute = open_scalar_attribute(object, name);
  if (!attribute) return std::nullopt;
  const Handle type(H5Aget_type(attribute->get()), H5Tclose, name);
  const std::size_t size = H5Tget_size(type.get());
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 || size == 0 || size > max_bytes)
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
  if (H5Tequal(type.get(), H5T_STD_I64LE) <= 0) return std::nullopt;
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

void hard_link(const Handle& object, hid_t folder, const std::string& name) {
  check(H5Olink(object.get(), folder, name.c_str(), H5P_DEFAULT, H5P_DEFAULT), fmt::format("link '{}'", name));
}

}  // namespace gainlens::runfile::hdf5
