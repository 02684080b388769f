#include "cli/program_start.h"

#include "core/error.h"
#include "core/file_descriptor.h"
#include "source_hash.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <span>
#include <vector>

namespace gainlens::cli {
namespace {

constexpr const char* section_name = ".gainlens";
constexpr std::size_t max_bytes = 1 << 16;  // of a section that is read

// In its section for good: nothing else has to refer to it.
[[gnu::used, gnu::section(".gainlens")]] const char stamp[] =
    GAINLENS_PROGRAM_NAME "\n" GAINLENS_VERSION " " GAINLENS_SOURCE_HASH;

ProgramStamp parsed(std::string_view text) {
  text = text.substr(0, text.find('\0'));
  const std::size_t line_end = text.find('\n');
  if (line_end == text.npos) return {};
  return {std::string(text.substr(0, line_end)), std::string(text.substr(line_end + 1))};
}

/// Reads parts of an ELF file, none of which is taken on trust.
class ProgramFile {
 public:
  explicit ProgramFile(const std::filesystem::path& path)
      : where_(printable(path.string())), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (file_.get() < 0) refuse(fmt::format("cannot be started: {}", system_reason()));
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) refuse("is not a program");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  ProgramStamp stamp() {
    const auto header = read<ElfW(Ehdr)>(0, 1).front();
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_shentsize != sizeof(ElfW(Shdr)))
      refuse("is not a program of gainlens");
    const auto sections = read<ElfW(Shdr)>(header.e_shoff, header.e_shnum);
    for (const auto& section : sections) {
      if (section.sh_type != SHT_NOBITS && !lies_inside(section.sh_offset, section.sh_size)) refuse("is cut short");
    }
    if (header.e_shstrndx >= sections.size()) refuse("is not a program of gainlens");
    const std::string names = text_of(sections[header.e_shstrndx]);
    for (const auto& section : sections) {
      if (section.sh_name < names.size() && std::strcmp(names.c_str() + section.sh_name, section_name) == 0)
        return parsed(text_of(section));
    }
    refuse("is not a program of gainlens, or of an older version");
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw_run_failed("{}: {}; gainlens needs it in its own folder, install both again", where_, what);
  }

  bool lies_inside(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= size_ && bytes <= size_ - offset;
  }

  template <typename Part>
  std::vector<Part> read(std::uint64_t offset, std::size_t count) const {
    std::vector<Part> parts(count);
    const std::size_t bytes = count * sizeof(Part);
    if (!lies_inside(offset, bytes)) refuse("is cut short");
    if (::pread(file_.get(), parts.data(), bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes))
      refuse(fmt::format("cannot be read: {}", system_reason()));
    return parts;
  }

  std::string text_of(const ElfW(Shdr) & section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_size > max_bytes) refuse("is not a program of gainlens");
    const auto characters = read<char>(section.sh_offset, section.sh_size);
    return {characters.begin(), characters.end()};
  }

  std::string where_;
  FileDescriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace

ProgramStamp own_stamp() {
  return parsed(stamp);
}

ProgramStamp stamp_of(const std::filesystem::path& program) {
  return ProgramFile(program).stamp();
}

}  // namespace gainlens::cli
