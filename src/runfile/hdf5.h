#pragma once

#include <hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// A layer over the HDF5 C library: handles are owned, failures are exceptions, and objects have no time stamps, so the
/// same calls make the same bytes. Not thread-safe, because the library is not.
namespace gainlens::runfile::hdf5 {

using Shape = std::vector<std::int64_t>;

/// Why the library failed. Callers turn it into InvalidArgument (reading) or RunFailed (writing) and add the file's
/// name.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Owns an identifier. If closing one fails, write_file() reports it at its end.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  /// @throws Error  id is negative: `action` failed
  Handle(hid_t id, Close closer, std::string_view action);
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;
  ~Handle();

  hid_t get() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// Makes or replaces a file with what `fill` puts into it. This is the only way to write a file. The library buffers
/// data, writes it when a handle is closed, and drops data that it could not write. When a full disk has room again,
/// all later calls would succeed. Therefore write_file() fails if any call in it failed, also the closing of a handle.
/// @param fill  must have closed all its handles when it returns
/// @throws Error  a call has failed; the file must not be used
void write_file(const std::filesystem::path& path, const std::function<void(const Handle& file)>& fill);
/// Read only. The file is untrusted: its structure is checked before the library sees it (hdf5_structure.h), and
/// plugins are never loaded.
/// @throws Error  missing, not a regular file, or of another form than gainlens writes
Handle open_file(const std::filesystem::path& path);

Handle create_group(hid_t parent, const std::string& name);
/// Whether the object exists and every step of `path` is a hard link. Soft and external links count as absent, because
/// they may lead out of the file.
bool has_object(hid_t parent, const std::string& path);

/// Type, shape and storage of a dataset. Chunked datasets are compressed (shuffle, deflate 4, fletcher32). The others
/// are contiguous and allocated completely when they are made. Floats start as NaN.
struct Layout {
  hid_t type = H5I_INVALID_HID;
  Shape shape;
  Shape chunk;                            ///< empty: contiguous
  std::optional<std::int64_t> fill = {};  ///< what integers start as; absent: 0
};
Handle create_dataset(hid_t parent, const std::string& name, const Layout& layout);
/// Opens an untrusted dataset.
/// @throws Error  it is absent; it has another type, shape or chunks
Handle open_dataset(hid_t parent, const std::string& path, const Layout& layout);
/// Opens a dataset whatever it holds, to read its attributes.
/// @throws Error  it is absent
Handle open_any(hid_t parent, const std::string& path);
/// Whether the elements of the dataset have this type on the disk.
bool has_type(const Handle& dataset, hid_t type);
/// The shape of a dataset, as an untrusted file claims it. Nothing may be allocated from it before open_dataset().
/// @throws Error  it is absent
Shape shape_at(hid_t parent, const std::string& path);

/// Writes or reads the whole dataset, or the box of size `count` at `offset`. Converts from or to `memory_type`.
void write(const Handle& dataset, hid_t memory_type, const void* data);
void write_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, const void* data);
void read(const Handle& dataset, hid_t memory_type, void* data);
void read_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data);
/// Checks the sizes of an untrusted dataset before memory for its numbers is taken, as doubles.
/// @throws Error  the numbers cannot come from what is stored, or do not fit into memory
void check_content(const Handle& dataset, const Shape& shape, const std::string& path);
/// Bytes of the file that hold the dataset's data.
std::uint64_t stored_bytes(const Handle& dataset);
/// Copies every chunk as it is stored, without unpacking it, from [axes...] to [sample, axes...] of a dataset with the
/// same filters.
void copy_chunks(const Handle& from, const Handle& to, std::int64_t sample);
/// Whether `to` holds exactly the bytes that copy_chunks(from, to, sample) writes.
bool has_copied_chunks(const Handle& from, const Handle& to, std::int64_t sample);
/// How many chunks of the dataset have been written.
std::uint64_t chunk_count(const Handle& dataset);

/// The type of variable-length UTF-8 strings. It lives as long as the program.
hid_t text_type();
/// Variable-length UTF-8 strings without NUL: one (shape {}) or an array of them, row-major.
Handle write_strings(hid_t parent, const std::string& name, const std::vector<std::string>& strings,
                     const Shape& shape);
/// @throws Error  absent, of another type or shape, or longer than `max_bytes` in total
std::vector<std::string> read_strings(hid_t parent, const std::string& path, const Shape& shape,
                                      std::uint64_t max_bytes);
/// Writes or reads the box of size `count` at `offset` of a dataset of text_type().
void write_strings_box(const Handle& dataset, const Shape& offset, const Shape& count,
                       const std::vector<std::string>& strings);
/// @throws Error  longer than `max_bytes` in total
std::vector<std::string> read_strings_box(const Handle& dataset, const Shape& offset, const Shape& count,
                                          std::uint64_t max_bytes);

void write_attribute(hid_t object, const std::string& name, std::string_view text);
void write_attribute(hid_t object, const std::string& name, std::int64_t number);
/// Empty if there is no such attribute or it has another type.
std::optional<std::string> read_text_attribute(hid_t object, const std::string& name);
std::optional<std::int64_t> read_integer_attribute(hid_t object, const std::string& name);

/// Makes the dataset a dimension scale of this name.
void make_scale(const Handle& dataset, const std::string& name);
void attach_scale(const Handle& dataset, const Handle& scale, unsigned axis);
/// The address of an object in the file. All names of one object have the same address.
std::uint64_t address_of(hid_t parent, const std::string& path);
/// Whether the object at this address is a scale of the dataset's axis.
bool has_scale(const Handle& dataset, unsigned axis, std::uint64_t address);
/// Gives an object a second name: `folder`/`name` in the same file.
void hard_link(const Handle& object, hid_t folder, const std::string& name);

}  // namespace gainlens::runfile::hdf5
