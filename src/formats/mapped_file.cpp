#include "formats/mapped_file.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/regular_file.h"
#include "formats/tensor_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace gainlens::formats {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, int error) {
  const std::string where = printable(path.string());
  if (error == ENOENT) {
    std::error_code ignored;
    const std::filesystem::path target = std::filesystem::read_symlink(path, ignored);
    if (!target.empty())
      throw_invalid("{}: a link to '{}', which does not exist; download the file again", where,
                    printable(target.string()));
    throw_invalid("{}: no such file", where);
  }
  const std::string message =
      fmt::format("{}: cannot be opened for reading: {}", where, std::generic_category().message(error));
  if (may_work_later(error)) throw RunFailed(message);
  throw InvalidArgument(message);
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a named pipe does not wait; the pipe is refused below.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) refuse(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) refuse(path, errno);
  CHECK(!S_ISDIR(status.st_mode), "{}: a folder; give a file", printable(path.string()));
  CHECK(S_ISREG(status.st_mode), "{}: not a regular file, so it cannot be mapped into memory",
        printable(path.string()));

  const auto size = checked_cast<std::size_t>(status.st_size, "file size");
  std::span<const std::byte> bytes;
  if (size > 0) {
    void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (address == MAP_FAILED) refuse(path, errno);
    bytes = {static_cast<const std::byte*>(address), size};
  }
  std::shared_ptr<const MappedFile> mapped(new MappedFile(path, std::move(file), bytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  refuse_lfs_pointer(text, size, printable(path.string()));
  return mapped;
}

MappedFile::MappedFile(std::filesystem::path path, FileDescriptor file, std::span<const std::byte> bytes)
    : path_(std::move(path)), file_(std::move(file)), bytes_(bytes) {}

void MappedFile::check_still_whole() const {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) refuse(path_, errno);
  CHECK(std::cmp_greater_equal(status.st_size, bytes_.size()),
        "{}: was shortened from {} to {} bytes while it was read; leave the file alone until the command has ended",
        printable(path_.string()), bytes_.size(), status.st_size);
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void check_still_whole(const TensorEntry& entry) {
  if (entry.file != nullptr) entry.file->check_still_whole();
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(mapped.data());
  const std::uintptr_t begin = (address + page - 1) / page * page;
  const std::uintptr_t end = (address + mapped.size()) / page * page;
  // This is only advice: if the system ignores it, the numbers are the same.
  if (begin < end) ::madvise(const_cast<std::byte*>(mapped.data()) + (begin - address), end - begin, MADV_DONTNEED);
}

}  // namespace gainlens::formats
