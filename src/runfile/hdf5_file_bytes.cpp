#include "runfile/hdf5_detail.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gainlens::runfile::hdf5 {
namespace {

std::uint64_t size_of_file(int descriptor) {
  struct stat status {};
  require(::fstat(descriptor, &status) == 0, "its size cannot be read: {}", system_reason());
  return static_cast<std::uint64_t>(status.st_size);
}

}  // namespace

Bytes Cursor::take(std::uint64_t count) {
  require(count <= rest_.size(), "{}: {} bytes are missing", what_, count - rest_.size());
  const Bytes taken = rest_.first(static_cast<std::size_t>(count));
  rest_ = rest_.subspan(taken.size());
  return taken;
}

std::uint64_t Cursor::number(unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, take(bytes).data(), std::min<std::size_t>(bytes, sizeof value));
  return value;
}

void Cursor::expect(std::string_view bytes) {
  const Bytes found = take(bytes.size());
  require(std::memcmp(found.data(), bytes.data(), bytes.size()) == 0, "{}: is not of the form that gainlens writes",
          what_);
}

void Cursor::end() const {
  require(rest_.empty(), "{}: {} bytes stand behind its end", what_, rest_.size());
}

FileBytes::FileBytes(int descriptor) : descriptor_(descriptor), size_(size_of_file(descriptor)) {}

FileBytes FileBytes::of(const Handle& object) {
  const Handle file(H5Iget_file_id(object.get()), H5Fclose, "file");
  void* descriptor = nullptr;
  require(H5Fget_vfd_handle(file.get(), H5P_DEFAULT, &descriptor) >= 0 && descriptor != nullptr,
          "the HDF5 library does not give the file");
  return FileBytes(*static_cast<const int*>(descriptor));
}

void FileBytes::check_holds(std::uint64_t address, std::uint64_t count, std::string_view what) const {
  require(address <= size_ && count <= size_ - address, "{}: {} bytes at byte {}, and the file has {}", what, count,
          address, size_);
}

std::vector<unsigned char> FileBytes::at(std::uint64_t address, std::uint64_t count, std::string_view what) const {
  check_holds(address, count, what);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t read =
        ::pread(descriptor_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(address + done));
    if (read < 0 && errno == EINTR) continue;
    require(read >= 0, "{}: cannot be read: {}", what, system_reason());
    require(read > 0, "{}: the file was shortened while it was read", what);
    done += static_cast<std::size_t>(read);
  }
  return bytes;
}

}  // namespace gainlens::runfile::hdf5
