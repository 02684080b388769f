#include "formats/gguf_file.h"

#include "core/check.h"
#include "formats/gguf_part.h"

#include <limits>
#include <system_error>
#include <utility>

namespace gainlens::formats {
namespace {

/// What a part of a split checkpoint says about the whole.
struct Split {
  std::int64_t number = 0;   // of this part, from 0
  std::int64_t count = 1;    // parts
  std::int64_t tensors = 0;  // in all parts
};

Split split_of(const GgufMetadata& metadata) {
  Split split;
  split.count = metadata.integer("split.count", 0, std::numeric_limits<std::uint16_t>::max(), 1);
  if (split.count <= 1) return {};
  split.number = metadata.integer("split.no", 0, split.count - 1);
  split.tensors = metadata.integer("split.tensors.count", 0, std::numeric_limits<std::int64_t>::max());
  return split;
}

/// "-00002-of-00003.gguf" for part 1 of 3: how the name of each part ends.
std::string suffix_of(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

/// The paths of all parts, made from the name of one part.
std::vector<std::filesystem::path> paths_of_parts(const GgufPart& part, const Split& split) {
  const std::string name = part.path.filename().string();
  const std::string suffix = suffix_of(split.number, split.count);
  CHECK(name.ends_with(suffix),
        "{}: part {} of {} by this file's metadata; its name must end with '{}', to find the others",
        part.metadata.place("split.no"), split.number + 1, split.count, suffix);
  const std::string stem = name.substr(0, name.size() - suffix.size());
  std::vector<std::filesystem::path> paths;
  for (std::int64_t number = 0; number < split.count; ++number) {
    paths.push_back(part.path.parent_path() / (stem + suffix_of(number, split.count)));
    std::error_code ignored;
    CHECK(std::filesystem::exists(paths.back(), ignored),
          "{}: no such file; it is part {} of {} of this checkpoint, fetch it", printable(paths.back().string()),
          number + 1, split.count);
  }
  return paths;
}

/// Checks that a part belongs to the same checkpoint as the first part, and has the number that its name says.
void check_belongs(const GgufPart& part, std::int64_t number, const GgufPart& first, const Split& whole) {
  const std::string where = printable(part.path.string());
  const Split split = split_of(part.metadata);
  CHECK(split.count == whole.count, "{}: split.count is {}, but {} in {}; fetch both again", where, split.count,
        whole.count, first.metadata.where());
  CHECK(split.number == number, "{}: part {} of {} by its name, but part {} by its metadata; fetch it again", where,
        number + 1, whole.count, split.number + 1);
  CHECK(split.tensors == whole.tensors,
        "{}: split.tensors.count is {}, but {} in {}; the parts are of different checkpoints", where, split.tensors,
        whole.tensors, first.metadata.where());
  constexpr std::string_view architecture = "general.architecture";
  if (!part.metadata.has(architecture)) return;  // only the first part must have it
  const std::string own = part.metadata.text(architecture), other = first.metadata.text(architecture);
  CHECK(own == other, "{}: {} '{}', but '{}' in {}; the parts are of different checkpoints", where, architecture,
        printable(own), printable(other), first.metadata.where());
}

}  // namespace

GgufFile GgufFile::open(const std::filesystem::path& path) {
  GgufPart given = read_gguf_part(path);
  const Split whole = split_of(given.metadata);
  GgufFile file;
  std::vector<GgufPart> parts;
  if (whole.count == 1) {
    parts.push_back(std::move(given));
  } else {
    for (const auto& part_path : paths_of_parts(given, whole)) parts.push_back(read_gguf_part(part_path));
  }
  for (std::size_t number = 0; number < parts.size(); ++number) {
    GgufPart& part = parts[number];
    if (parts.size() > 1) check_belongs(part, static_cast<std::int64_t>(number), parts.front(), whole);
    file.files_.push_back(part.path);
    for (auto& [name, entry] : part.entries) {
      const bool is_new = file.entries_.emplace(name, std::move(entry)).second;
      CHECK(is_new, "{}: tensor '{}' is in an earlier part of this checkpoint too; each must be in one part",
            printable(part.path.string()), printable(name));
    }
  }
  CHECK(parts.size() == 1 || std::cmp_equal(file.entries_.size(), whole.tensors),
        "{}: split.tensors.count is {}, but the {} parts hold {}; fetch them again", printable(path.string()),
        whole.tensors, parts.size(), file.entries_.size());
  file.metadata_ = std::move(parts.front().metadata);
  file.version_ = parts.front().version;
  return file;
}

}  // namespace gainlens::formats
