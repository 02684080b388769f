#pragma once

#include "core/json.h"
#include "runfile/stored_json.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

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

}  // namespace gainlens::runfile
