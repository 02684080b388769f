#include "runfile/manifest.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/file_descriptor.h"
#include "core/json.h"
#include "runfile/listed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

namespace gainlens::runfile {
namespace {

std::pair<ShardKey, std::string> parse_line(std::string_view line, const std::string& where) {
  const Json json = parse_json(line, where);
  CHECK(json.is_object() && json.size() == 3 && json.contains("length") && json.contains("sample") &&
            json.contains("sha256") && json["length"].is_number_integer() && json["sample"].is_number_integer() &&
            json["sha256"].is_string() && is_sha256(json["sha256"].get_ref<const std::string&>()),
        "{}: is not a line of a manifest: '{}'", where, printable(line));
  return {{json["length"], json["sample"]}, json["sha256"]};
}

std::string line_of(const ShardKey& key, const std::string& sha256) {
  return Json{{"length", key.length}, {"sample", key.sample}, {"sha256", sha256}}.dump() + "\n";
}

/// The lines of a manifest, without an incomplete last one.
struct WholeLines {
  std::map<ShardKey, std::string> digests;
  std::size_t bytes = 0;
};

WholeLines whole_lines(const std::string& text, const std::filesystem::path& path) {
  WholeLines whole;
  int number = 1;
  for (std::size_t end; (end = text.find('\n', whole.bytes)) != std::string::npos; whole.bytes = end + 1, ++number) {
    const bool last = end + 1 == text.size();
    try {
      const auto [key, digest] = parse_line(std::string_view(text).substr(whole.bytes, end - whole.bytes),
                                            fmt::format("{}, line {}", path.string(), number));
      whole.digests.insert_or_assign(key, digest);
    } catch (const InvalidArgument& error) {
      // Some file systems keep the length of an incomplete line and fill it with zeros. Only the last line can be
      // incomplete.
      if (last) break;
      throw_invalid("{}; delete the file and repeat the command: the shards are then checked and listed again",
                    error.what());
    }
  }
  return whole;
}

}  // namespace

std::map<ShardKey, std::string> read_manifest(const std::filesystem::path& path) {
  return whole_lines(read_text_file(path), path).digests;
}

void check_listed(const std::map<ShardKey, std::string>& digests, const Request& request,
                  const std::filesystem::path& path) {
  for (const auto& [key, digest] : digests) {
    CHECK(request.holds(key),
          "{}: lists the chunk of {} tokens, sample {}, which is not one of this run; delete the file and repeat the "
          "sweep command: the shards are then checked and listed again",
          printable(path.string()), key.length, key.sample);
  }
}

Manifest::Manifest(std::filesystem::path path) : path_(std::move(path)) {
  const std::string text = std::filesystem::exists(path_) ? read_text_file(path_) : std::string();
  WholeLines whole = whole_lines(text, path_);
  digests_ = std::move(whole.digests);
  if (text.empty() || whole.bytes != text.size())
    write_file_atomically(path_, std::string_view(text).substr(0, whole.bytes));
}

void Manifest::append(const ShardKey& key, const std::string& sha256) {
  const std::string line = line_of(key, sha256);
  FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  struct stat before {};
  const bool opened = file.get() >= 0 && ::fstat(file.get(), &before) == 0;
  if (!opened || !write_all(file, line) || ::fsync(file.get()) != 0 || !file.close()) {
    const std::string why = system_reason();
    // Remove the part that was written: otherwise the next line would be joined to it.
    [[maybe_unused]] const bool restored = opened && ::truncate(path_.c_str(), before.st_size) == 0;
    throw_run_failed("{}: cannot be written: {}; finished shards are kept: make room and repeat the command to resume",
                     path_.string(), why);
  }
  digests_.insert_or_assign(key, sha256);
}

void Manifest::put_in_order() {
  std::string text;
  for (const auto& [key, sha256] : digests_) text += line_of(key, sha256);
  if (read_text_file(path_) != text) write_file_atomically(path_, text);
}

}  // namespace gainlens::runfile
