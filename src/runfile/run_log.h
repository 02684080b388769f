#pragma once

#include "core/json.h"

#include <filesystem>
#include <string>

namespace gainlens::runfile {

/// log.json: facts to keep that do not determine the numbers of a run. It is never compared. Deleting it costs only
/// time.
class RunLog {
 public:
  /// An empty log if there is no file.
  /// @throws InvalidArgument  it is damaged
  static RunLog read(const std::filesystem::path& folder);
  /// @throws RunFailed  disk full
  void write() const;

  /// Adds the caller's facts about this start (command line, paths, versions), with the time.
  void add_start(const Json& start);
  /// The starts of the run so far, oldest first.
  const Json& starts() const { return content_.at("starts"); }
  /// The version of gainlens of the last start; empty if the log does not say it.
  std::string last_version() const;
  /// The checksum of what run.h5 was made from, and the checksum of run.h5 itself; null if it has not been made.
  const Json& combined() const { return content_.at("combined"); }
  void set_combined(const Json& combined) { content_["combined"] = combined; }

 private:
  std::filesystem::path path_;
  Json content_ = {{"starts", Json::array()}, {"combined", nullptr}};
};

}  // namespace gainlens::runfile
