#pragma once

#include "core/check.h"
#include "core/json.h"
#include "core/json_words.h"
#include "runfile/folder_lock.h"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Runs that are stored as units of work: request.json, units/NAME.json, a result, manifest.jsonl. docs/run-file.md.

namespace gainlens::runfile {

/// Reads a file by a function of its JSON. Whatever is wrong with it becomes one message with its name.
template <typename Read>
auto read_checked(const std::filesystem::path& file, const Read& read) {
  try {
    return read(read_json_file(file));
  } catch (const Json::exception& error) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the command", printable(file.string()),
                  json_error_in_words(error));
  } catch (const InvalidArgument& error) {
    throw_invalid("{}: is damaged ({}); delete it and repeat the command", printable(file.string()), error.what());
  }
}

/// @throws InvalidArgument, Json::exception  it is not there, or not a finite number
inline double number_in(const Json& json, const char* key) {
  const double number = json.at(key).get<double>();
  CHECK(std::isfinite(number), "{} is not finite", key);
  return number;
}

/// The units of a run folder: one file for each unit of work, `units/NAME.json`, {"sha256": .., "unit": ..}. The
/// checksum is over the request of the run, the name and the unit, so that a number that was changed is seen, and a
/// unit of another run or of another name too.
class StoredUnits {
 public:
  /// @param folder   of the run
  /// @param request  of the run: the content of its request.json
  StoredUnits(std::filesystem::path folder, const Json& request);

  std::filesystem::path file(std::string_view name) const;
  bool has(std::string_view name) const;
  /// The names of all units, sorted; other files are none.
  std::vector<std::string> names() const;

  /// A unit, made from its JSON by `read`.
  /// @throws InvalidArgument  it is damaged, or has no checksum, as those that older versions wrote
  template <typename Read>
  auto read(std::string_view name, const Read& read) const {
    check_has_checksum(name);
    return read_checked(file(name), [&](const Json& stored) { return read(proven(stored, name)); });
  }
  /// What the file of a unit holds.
  std::string text(std::string_view name, const Json& unit) const;

 private:
  std::string checksum(std::string_view name, const Json& unit) const;
  void check_has_checksum(std::string_view name) const;
  /// @throws InvalidArgument  the checksum does not fit
  const Json& proven(const Json& stored, std::string_view name) const;

  std::filesystem::path folder_;  // units
  std::string request_;           // checksum
};

/// Removes what it is told of when it goes, last first, up to a folder that is not empty.
class Scaffold {
 public:
  Scaffold() = default;
  Scaffold(const Scaffold&) = delete;
  Scaffold& operator=(const Scaffold&) = delete;
  ~Scaffold();
  /// Notes a folder and those of its parents that are not there.
  void note_missing(const std::filesystem::path& folder);
  void note(const std::filesystem::path& path) { paths_.push_back(path); }
  /// What was noted stays.
  void keep() { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

/// A run that is being measured: `request.json` says what determines the numbers, and `units` has one file for each
/// unit of work. A call continues what an earlier one with the same request has left. Holds the folder's lock. A call
/// that is refused before there is any unit leaves no file and no folder behind.
class RunStore {
 public:
  /// @param path     empty: nothing is kept
  /// @param request  has "format"
  /// @param named    keys whose difference is named first, in this order
  /// @param files    others that the run has from its begin: content by name
  /// @throws InvalidArgument  the folder holds something else or another request (names the key), is locked by another
  ///     process, or cannot be written to
  RunStore(std::filesystem::path path, const Json& request, const std::vector<std::string>& named,
           const std::map<std::string, std::string>& files = {});

  /// A unit that an earlier call has computed, made from its JSON by `read`; nothing: it is not there.
  /// @throws InvalidArgument  as StoredUnits::read()
  template <typename Read>
  auto unit(std::string_view name, const Read& read) const {
    using Unit = decltype(units_.read(name, read));
    return has_unit(name) ? std::optional<Unit>(units_.read(name, read)) : std::nullopt;
  }
  /// Whether an earlier call has computed the unit.
  bool has_unit(std::string_view name) const { return !path_.empty() && units_.has(name); }
  /// Stores a unit completely or not at all. @throws RunFailed  disk full
  void keep_unit(std::string_view name, const Json& unit);
  /// Tells the listener how many units are there from an earlier call, if there are any.
  void tell_of_stored() const;
  /// Where the files of the run lie; empty: nothing is kept.
  const std::filesystem::path& path() const { return path_; }

 private:
  /// Whether the folder holds the run of this request. @throws InvalidArgument  it holds something else
  bool holds_run(const Json& request, const std::vector<std::string>& named) const;

  std::filesystem::path path_;
  StoredUnits units_;
  std::optional<FolderLock> lock_;
  Scaffold made_;  // goes before the lock
};

/// The result of a kind of run that is stored as units.
struct ResultForm {
  const char* file;
  std::string_view format;
  std::int64_t version;
};

/// Writes the result of a run folder completely or not at all, and before it `manifest.jsonl`: one line
/// {"name", "sha256"} for the request, each unit and the result, sorted by name. An old result goes first, so a result
/// of this version has its checksum at any moment. The same units and result give the same bytes.
/// @throws RunFailed  disk full; the units are kept
void store_result(const std::filesystem::path& folder, const ResultForm& form, const Json& result);

/// Compares what manifest.jsonl of a finished run lists with its checksums. The units may have gone together with their
/// folder.
/// @param result  name of the file
/// @returns  why the result could not be compared, a sentence; empty: everything was
/// @throws InvalidArgument  the run is being written or is not finished; a file that is listed has changed or is
///     missing; a unit, the request or the result is not listed; a line that is damaged, stands twice, or names what
///     lies elsewhere
std::string prove_store(const std::filesystem::path& folder, const std::string& result);

/// Who compares a result with its checksum.
enum class Proof { by_reader, by_caller };

/// @throws InvalidArgument, Json::exception  it is of another form
void check_form(const Json& result, const ResultForm& form);

/// Reads the result of a finished run by a function of its JSON.
/// @throws InvalidArgument  it is damaged, or of another format or version; as prove_store()
template <typename Read>
auto read_result(const std::filesystem::path& folder, const ResultForm& form, Proof proof, const Read& read) {
  if (proof == Proof::by_reader) prove_store(folder, form.file);
  return read_checked(folder / form.file, [&](const Json& result) {
    check_form(result, form);
    return read(result);
  });
}

}  // namespace gainlens::runfile
