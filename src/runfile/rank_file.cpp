#include "runfile/rank_file.h"

#include "core/atomic_file.h"
#include "core/check.h"

#include <fcntl.h>
#include <sys/file.h>

#include <array>
#include <random>
#include <system_error>
#include <thread>
#include <vector>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds pause{20};

fs::path rank_path(const fs::path& run, std::int64_t rank) {
  return run / ranks_folder_name / fmt::format("rank-{}", rank);
}

std::string new_token() {
  std::array<char, 128> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {'?'};
  std::random_device random;
  return fmt::format("{}@{}-{:08x}{:08x}", ::getpid(), host.data(), random(), random());
}

/// The token in a file that a living process has locked; empty if there is no such file or no such process.
/// @throws RunFailed  the system cannot say which
std::optional<std::string> living_token(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe does not hold us up
  if (file.get() < 0 && errno == ENOENT) return std::nullopt;
  if (file.get() < 0) throw_run_failed("{}: cannot be read: {}", printable(path.string()), system_reason());
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  if (errno != EWOULDBLOCK) throw_run_failed("{}: cannot be locked: {}", printable(path.string()), system_reason());
  std::array<char, 256> token{};
  const ssize_t size = ::pread(file.get(), token.data(), token.size(), 0);
  return std::string(token.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
}

}  // namespace

RankFile::RankFile(const fs::path& run, std::int64_t rank, std::chrono::milliseconds patience)
    : path_(rank_path(run, rank)), token_(new_token()), file_(-1) {
  const auto give_up = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto holder = living_token(path_);
    if (!holder && publish()) return;
    CHECK(!holder || std::chrono::steady_clock::now() < give_up,
          "{}: process {} is rank {} of this run; start each rank once, and wait until the processes of an earlier "
          "start have ended",
          printable(run.string()), printable(*holder), rank);
    std::this_thread::sleep_for(pause);
  }
}

/// Makes the rank file. It is locked and complete before another process can see it under its name. Returns false if
/// another process has meanwhile removed the folder, or the file because it was not locked yet.
bool RankFile::publish() {
  const std::string cannot = printable(path_.parent_path().string()) + ": cannot be written to";
  std::error_code error;
  fs::create_directories(path_.parent_path(), error);
  // The last process of an earlier start may remove the folder at this moment.
  if (error == std::errc::file_exists && (!fs::exists(path_.parent_path()) || fs::is_directory(path_.parent_path())))
    return false;
  if (error && error != std::errc::no_such_file_or_directory) {
    errno = error.value();
    throw_cannot_be_made(cannot);
  }
  const fs::path temporary = path_.string() + "." + token_ + ".tmp";  // after a failure remove_dead_ranks() removes it
  file_ = FileDescriptor(::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file_.get() < 0 && errno == ENOENT)
    return false;  // the last process of an earlier start has just removed the folder
  if (file_.get() < 0) throw_cannot_be_made(cannot);
  // No other process keeps a lock on it, but one that looks for dead ranks locks it for a moment.
  CHECK(::flock(file_.get(), LOCK_EX) == 0, "{}: cannot be locked: {}; use a folder on a file system with locks",
        printable(path_.parent_path().string()), system_reason());
  if (!write_all(file_, token_)) throw_run_failed("{}: {}", cannot, system_reason());
  const bool renamed = ::rename(temporary.c_str(), path_.c_str()) == 0;
  if (!renamed && errno != ENOENT) throw_cannot_be_made(cannot);
  return renamed;
}

RankFile::~RankFile() {
  std::error_code ignored;
  try {
    if (living_token(path_) == token_) fs::remove(path_, ignored);
  } catch (const RunFailed&) {
    // It stays. The next start finds that its process has ended.
  }
  fs::remove(path_.parent_path(), ignored);  // succeeds only for the last process: the folder is empty then
}

std::optional<std::string> living_rank(const fs::path& run, std::int64_t rank) {
  return living_token(rank_path(run, rank));
}

void remove_dead_ranks(const fs::path& run) {
  const fs::path folder = run / ranks_folder_name;
  std::vector<fs::path> found;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored))
    found.push_back(entry->path());
  for (const fs::path& path : found) {
    if (living_token(path)) continue;
    // A process that starts may have put its own file in the place of the dead one meanwhile. A file that was moved
    // away can be asked again: nobody replaces it. Other files than those of ranks have names of their own.
    const bool replaceable = !path.has_extension();
    const fs::path apart = replaceable ? path.string() + "." + new_token() + ".dead" : path.string();
    if (replaceable) fs::rename(path, apart, ignored);
    if (living_token(apart)) {
      fs::rename(apart, path, ignored);
    } else {
      fs::remove(apart, ignored);
    }
  }
  fs::remove(folder, ignored);
}

}  // namespace gainlens::runfile
