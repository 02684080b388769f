#include "core/lfs_pointer.h"

#include "core/check.h"

namespace gainlens {

void refuse_lfs_pointer(std::string_view start, std::uintmax_t size, std::string_view where) {
  constexpr std::uintmax_t most_bytes = 1024;  // by the specification of Git LFS
  CHECK(
      size >= most_bytes || !start.starts_with("version https://git-lfs.github.com/spec/"),
      "{}: a pointer of Git LFS, in place of the file itself; run 'git lfs pull' in its folder, or fetch the file with "
      "'hf download'",
      where);
}

}  // namespace gainlens
