#pragma once

#include "core/json.h"

#include <filesystem>
#include <string>

namespace gainlens::runfile {

/// log.json: what is worth keeping and does not determine the numbers. Never compared; deleting it costs time only.
class RunLog {
 public:
  /// Empty where there is none.
  /// @throws InvalidArgument  it is damaged
  static RunLog read(const std::filesystem::path& folder);
  /// @throws RunFailed  disk full
  void write() const;

  /// Adds what the caller says of this start (command line, paths, versions) with the time.
  void add_start(const Json& start);
  const Json& hashes() const { return content_.at("file_hashes"); }
  void set_hashes(const Json& hashes) { content_["file_hashes"] = hashes; }
  /// Which shards run.h5 was made of, and its own checksum; null where it has not been made.
  const Json& combined() const { return content_.at("combined"); }
  void set_combined(const Json& combined) { content_["combined"] = combined; }

 private:
  std::filesystem::path path_;
  Json content_ = {{"starts", Json::array()}, {"file_hashes", Json::object()}, {"combined", nullptr}};
};

}  // namespace gainlens::runfile
