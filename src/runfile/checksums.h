#pragma once

#include "core/environment.h"
#include "core/error.h"
#include "core/json.h"

#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::runfile {

/// A file that is missing or has changed.
struct FileFault {
  std::filesystem::path file;
  std::string message;  ///< what is wrong with it, and how to repair it
};

/// Calls a function that throws what speaks against a file.
/// @param faults  what it throws is noted here, so that others can be looked at; null: it is not caught
/// @returns  whether nothing speaks against it
template <typename Look>
bool look_at(std::vector<FileFault>* faults, const std::filesystem::path& file, const Look& look) {
  try {
    look();
    return true;
  } catch (const InvalidArgument& error) {
    if (faults == nullptr) throw;
    faults->push_back({file, error.what()});
    return false;
  }
}

/// The message of the first fault, and the names of the other files. Empty: there is none.
std::string faults_in_words(std::span<const FileFault> faults);

/// The list of checksums in a folder of files that were written once. `sha256sum -c files.sha256` reads it too.
inline constexpr const char* checksum_list_name = "files.sha256";

/// Writes the sha256 of each file into the list of the folder.
/// @param names  of the files, as paths below the folder
/// @throws InvalidArgument  a file cannot be read
/// @throws RunFailed        the disk is full
void write_checksum_list(const std::filesystem::path& folder, std::span<const std::string> names);

/// What a comparison with the list of a folder has found.
struct ComparedFolder {
  bool has_list = false;
  std::vector<FileFault> faults;
};

/// Which of the listed files are compared.
enum class Listed {
  all,
  here,  ///< those of the folder itself; files in folders of it are left out
};

/// Compares the files of a folder with its list.
/// @param repair  how to repair a file, behind "put it back, or "
/// @throws InvalidArgument  the list is broken, or names a file outside the folder
ComparedFolder compare_with_list(const std::filesystem::path& folder, const std::string& repair,
                                 Listed which = Listed::all);

// What lists of files with checksums say (manifest.jsonl, files.sha256), and which of it is not followed.

/// Whether a text is a sha256 in hexadecimal digits, as all files write it.
bool is_sha256(std::string_view text);

/// Whether a name is that of a file in the folder of its list or below it, in its only spelling: no absolute path, no
/// "..", no "a//b".
bool names_file_below(const std::string& name);

/// Refuses to read a listed file that is a link, or lies behind one, which may lead out of the folder.
/// @pre  the file is there, and names_file_below(name)
/// @throws InvalidArgument  it is or does
void check_no_link(const std::filesystem::path& folder, const std::string& name);

/// Compares a file with its checksum.
/// @param says  what holds the checksum, between the two: " and manifest.jsonl says"
/// @param why   the rest of the message: "the file has changed since it was written; delete it"
/// @throws InvalidArgument  they differ (both are named)
void check_digest(const std::filesystem::path& file, const std::string& listed, std::string_view says,
                  std::string_view why);

/// Files that a training has made and keeps in one folder, for example config.json and model.safetensors.
struct KeptFiles {
  std::filesystem::path folder;
  std::span<const char* const> names;
};

/// The sha256 of each file by its name: {"config.json": "..."}.
/// @throws InvalidArgument  a file cannot be read
Json checksums_of(const KeptFiles& files);

/// How to speak of kept files in messages.
struct KeptFilesWords {
  std::string owner;   ///< "the best step, 12": whose files they are
  std::string list;    ///< "the training state": what holds their checksums
  std::string repair;  ///< "delete out/training/state.safetensors to train again"
};

/// Proves that the files are there, and are as they were when their checksums were taken.
/// @param checksums  as returned by checksums_of; null, as in what older versions wrote: only their presence is proven
/// @throws InvalidArgument  one is missing or differs; the message names it and says how to repair it
void prove_kept(const Json& checksums, const KeptFiles& files, const KeptFilesWords& words);

/// SHA-256 of large files. A file is hashed once for each user, not once for each run: the checksums are kept in
/// `checksums.json` in a folder of the user.
///
///     const HashCache cache = HashCache::for_user();
///     request.model[name] = cache.sha256(weights);
///
/// A stored checksum is used while path, size, modification time, time of the last change (ctime), inode and device of
/// the file stay the same. It is not stored if the file was changed in the last two seconds.
///
/// What is trusted: a wrong checksum in the cache would become the checksum in a run. The cache is therefore used only
/// if its folder belongs to this user and nobody else may write it. The cache cannot see a change of the file that
/// leaves its times as they were, such as writing to the disk below the file system. If you doubt a checksum, delete
/// the folder: this costs only time.
///
/// Several processes may use one cache at the same time. A cache that is damaged, cannot be read or cannot be written
/// is no error: the file is hashed.
class HashCache {
 public:
  using Clock = std::function<std::time_t()>;

  /// The cache in `$XDG_CACHE_HOME/gainlens`, or in `$HOME/.cache/gainlens` if XDG_CACHE_HOME is not set. A path that
  /// is not absolute counts as not set. If both are not set, nothing is kept.
  static HashCache for_user(const Environment& environment = process_environment());

  /// @param folder  is made if only its last two parts are missing; empty: nothing is kept
  /// @param clock   the present time
  explicit HashCache(
      std::optional<std::filesystem::path> folder, Clock clock = [] { return std::time(nullptr); });

  /// 64 hex digits. @throws InvalidArgument  the file cannot be read, or changes while it is read
  std::string sha256(const std::filesystem::path& file) const;
  /// Those of the files of a checkpoint, by name without folder: what a request says of a model.
  std::map<std::string, std::string> sha256_by_name(const std::vector<std::filesystem::path>& files) const;

  /// Most files whose checksums are kept. Those that were hashed first are dropped first.
  static constexpr std::size_t max_files = 1000;

 private:
  void store(const std::string& path, Json entry) const;

  std::optional<std::filesystem::path> folder_;
  Clock clock_;
};

/// What the system says of a file. It differs once the file was changed or replaced, also if its modification time was
/// set back: the time of the last change (ctime) cannot be set.
struct FileState {
  Json signature;           ///< size, modification time, ctime, inode and device
  std::time_t changed = 0;  ///< the later of modification time and ctime

  bool operator==(const FileState&) const = default;
};

/// @throws InvalidArgument  there is no such file, or it cannot be reached
FileState state_of(const std::filesystem::path& file);

/// The SHA-256 of a file that this process may have hashed before: it is not read again while its state is the same. As
/// for HashCache, a file that was changed in the last two seconds is hashed each time.
/// @param now  the present time
/// @throws InvalidArgument  as sha256_file()
std::string sha256_once(const std::filesystem::path& file, std::time_t now = std::time(nullptr));

/// Files that must stay as they are while they are used: what is computed from them is stored under their checksums.
class WatchedFiles {
 public:
  WatchedFiles() = default;
  /// Remembers the state of the files. To be made before the checksums are taken. @throws InvalidArgument  as state_of
  explicit WatchedFiles(const std::vector<std::filesystem::path>& files);

  /// @throws InvalidArgument  one of them (it is named) was changed, replaced or removed since the object was made
  void check() const;

 private:
  std::vector<std::pair<std::filesystem::path, FileState>> files_;
};

}  // namespace gainlens::runfile
