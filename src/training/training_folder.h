#pragma once

#include "core/json.h"
#include "runfile/folder_lock.h"

#include <filesystem>
#include <span>
#include <string>

namespace gainlens::training {

/// Refuses a request that is not the stored one.
/// @param may_grow  JSON pointers to whole numbers that may be larger than the stored ones, because a training with
///     more of them begins as the stored one did: epochs at a constant learning rate
/// @throws InvalidArgument  names the first difference, and the folder
void check_same_request(const Json& stored, const Json& asked, const std::filesystem::path& folder,
                        std::span<const char* const> may_grow = {});

/// The sha256 of a request, without what may grow: all trainings that may continue each other have the same.
std::string request_identity(Json request, std::span<const char* const> may_grow = {});

/// The folder of one training. It is locked while this object exists. `request.json` holds everything that determines
/// the weights. `state.safetensors` holds the state from which a training continues.
class TrainingFolder {
 public:
  /// Creates the folder, or opens an existing one for the same request. A folder without a saved state takes any
  /// request. A request that has grown replaces the stored one.
  /// @throws InvalidArgument  the folder holds another request (the first difference is named), is locked by another
  ///     process, or cannot be written to
  TrainingFolder(std::filesystem::path folder, const Json& request, std::span<const char* const> may_grow = {});

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path state_file() const { return folder_ / "state.safetensors"; }
  /// request_identity() of its request. The state holds it, so that the state of another training is noticed.
  const std::string& identity() const { return identity_; }

 private:
  std::filesystem::path folder_;
  runfile::FolderLock lock_;
  std::string identity_;
};

}  // namespace gainlens::training
