#include "training/training_folder.h"

#include "core/atomic_file.h"

namespace gainlens::training {
namespace {

const std::filesystem::path& made_writable(const std::filesystem::path& folder) {
  ensure_writable_folder(folder);
  return folder;
}

}  // namespace

TrainingFolder::TrainingFolder(std::filesystem::path folder, Json request, const RequestRules& rules)
    : folder_(std::move(folder)), lock_(made_writable(folder_)) {
  const std::filesystem::path file = folder_ / "request.json";
  bool is_stored = false;
  // Without a saved state nothing can be lost: the new request replaces the old one.
  if (std::filesystem::exists(file) && std::filesystem::exists(state_file())) {
    const Json stored = read_json_file(file);
    check_same_request(stored, request, folder_, rules);
    request = in_form_of(stored, std::move(request), rules);
    is_stored = stored == request;
  }
  identity_ = request_identity(request, rules);
  if (!is_stored) write_file_atomically(file, request.dump(2) + "\n");
}

}  // namespace gainlens::training
