#pragma once

#include "core/json.h"
#include "runfile/folder_lock.h"

#include <filesystem>

namespace gainlens::training {

/// The folder of one training, locked while this lives: `request.json` says what determines the weights,
/// `state.safetensors` is the state to go on from.
class TrainingFolder {
 public:
  /// Creates the folder, or opens it again for the same request.
  /// @throws InvalidArgument  it holds another request (first difference named), is locked by another process, or
  ///     cannot be written to
  TrainingFolder(std::filesystem::path folder, const Json& request);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path state_file() const { return folder_ / "state.safetensors"; }

 private:
  std::filesystem::path folder_;
  runfile::FolderLock lock_;
};

}  // namespace gainlens::training
