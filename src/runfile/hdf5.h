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

/// The HDF5 C library as this folder uses it: owned handles, failures as exceptions, and objects without times, so that
/// the same calls make the same bytes. Not thread-safe, as the library is not.
namespace gainlens::runfile::hdf5 {

using Shape = std::vector<std::int64_t>;

/// Why the library failed. Callers turn it into InvalidArgument (reading) or RunFailed (writing) and add the file's
/// name.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Owns an identifier. Where closing one fails, nobody is told before the file that is being written ends: see
/// write_file.
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

/// Makes a file, or replaces it, with what `fill` puts into it; the one way to write. The library keeps much in its
/// buffers, writes it when a handle is closed, and drops what could not be written: after a full disk that has room
/// again, everything that follows succeeds. So any call that has failed in between, the closing of any handle included,
/// fails the whole.
/// @param fill  all handles it makes are gone when it returns
/// @throws Error  a call has failed; what is in the file then is not to be used
void write_file(const std::filesystem::path& path, const std::function<void(const Handle& file)>& fill);
/// Read only. Plugins are never loaded: the file is untrusted.
Handle open_file(const std::filesystem::path& path);

Handle create_group(hid_t parent, const std::string& name);
/// Whether every step of `path` is a hard link: soft and external links lead out of the file.
bool has_object(hid_t parent, const std::string& path);

/// What a dataset is. Chunked ones are compressed (shuffle, deflate 4, fletcher32); the others are contiguous and
/// allocated whole at once. Floats start as NaN.
struct Layout {
  hid_t type = H5I_INVALID_HID;
  Shape shape;
  Shape chunk;  ///< empty: contiguous
};
Handle create_dataset(hid_t parent, const std::string& name, const Layout& layout);
/// Opens an untrusted dataset.
/// @throws Error  it is absent, or has another type, shape or chunks, data in other files, or more data than the file
Handle open_dataset(hid_t parent, const std::string& path, const Layout& layout);

/// The whole dataset, or the box at `offset` of `count`; converts from or to `memory_type`.
void write(const Handle& dataset, hid_t memory_type, const void* data);
void write_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, const void* data);
void read(const Handle& dataset, hid_t memory_type, void* data);
void read_box(const Handle& dataset, const Shape& offset, const Shape& count, hid_t memory_type, void* data);
/// Bytes of the file that hold the dataset's data.
std::uint64_t stored_bytes(const Handle& dataset);
/// Copies every chunk as it is stored, without unpacking it, from [axes...] to [sample, axes...] of a dataset with the
/// same filters.
void copy_chunks(const Handle& from, const Handle& to, std::int64_t sample);
/// Whether copy_chunks(from, to, sample) has left its bytes in `to`.
bool has_copied_chunks(const Handle& from, const Handle& to, std::int64_t sample);
/// How many chunks of the dataset have been written.
std::uint64_t chunk_count(const Handle& dataset);

/// Variable-length UTF-8 strings: one (shape {}) or a row of them.
Handle write_strings(hid_t parent, const std::string& name, const std::vector<std::string>& strings,
                     const Shape& shape);
/// @throws Error  absent, of another type or shape, or longer than `most_bytes` altogether
std::vector<std::string> read_strings(hid_t parent, const std::string& path, const Shape& shape,
                                      std::uint64_t most_bytes);

void write_attribute(hid_t object, const std::string& name, std::string_view text);
void write_attribute(hid_t object, const std::string& name, std::int64_t number);
/// Empty where there is no such attribute or it is of another type.
std::optional<std::string> read_text_attribute(hid_t object, const std::string& name);
std::optional<std::int64_t> read_integer_attribute(hid_t object, const std::string& name);

/// Makes the dataset a dimension scale of this name.
void make_scale(const Handle& dataset, const std::string& name);
void attach_scale(const Handle& dataset, const Handle& scale, unsigned axis);
/// Where in the file an object lies: one object has one address, under all its names.
std::uint64_t address_of(hid_t parent, const std::string& path);
/// Whether the object at this address is a scale of the dataset's axis.
bool has_scale(const Handle& dataset, unsigned axis, std::uint64_t address);
/// A second name for an object: `folder`/`name` in the same file.
void hard_link(const Handle& object, hid_t folder, const std::string& name);

}  // namespace gainlens::runfile::hdf5
