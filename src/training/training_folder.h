#pragma once

#include "core/json.h"
#include "runfile/folder_lock.h"
#include "training/stored_request.h"

#include <filesystem>
#include <string>

namespace gainlens::training {

/// The state file in the folder of a training.
inline std::filesystem::path state_file_in(const std::filesystem::path& folder) {
  return folder / "state.safetensors";
}

/// The folder of one training. It is locked while this object exists. `request.json` holds everything that determines
/// the weights. `state.safetensors` holds the state from which a training continues.
class TrainingFolder {
 public:
  /// Creates the folder, or opens an existing one for the same request. A folder without a saved state takes any
  /// request. A request that has grown replaces the stored one, in the form of the stored one.
  /// @throws InvalidArgument  the folder holds another request (the first difference is named), is locked by another
  ///     process, or cannot be written to
  TrainingFolder(std::filesystem::path folder, Json request, const RequestRules& rules = {});

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path state_file() const { return state_file_in(folder_); }
  /// request_identity() of its request. The state holds it, so that the state of another training is noticed.
  const std::string& identity() const { return identity_; }

 private:
  std::filesystem::path folder_;
  runfile::FolderLock lock_;
  std::string identity_;
};

}  // namespace gainlens::training
