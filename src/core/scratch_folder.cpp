#include "core/scratch_folder.h"

#include "core/error.h"

#include <stdlib.h>

#include <string>
#include <system_error>

namespace gainlens {

ScratchFolder::ScratchFolder(const std::filesystem::path& parent, std::string_view prefix) {
  std::string pattern = (parent / prefix).string() + "XXXXXX";  // mkdtemp fills in the last six
  if (::mkdtemp(pattern.data()) == nullptr)
    throw_run_failed("{}: no temporary folder can be made in it", printable(parent.string()));
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gainlens
