#pragma once

#include "core/json.h"
#include "models/checkpoint/named_tensor.h"
#include "runfile/folder_lock.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gainlens::training {

/// Which requests of one kind of training are the same although their JSON differs.
struct RequestRules {
  /// JSON pointers to whole numbers that may be larger than the stored ones, because a training with more of them
  /// begins as the stored one did: epochs at a constant learning rate.
  std::vector<std::string> may_grow;
  /// JSON pointers to objects that may have other entries: an experiment gains some, and keeps those that it has.
  std::vector<std::string> may_gain;
  /// JSON pointers to names that change nothing. The stored one stays.
  std::vector<std::string> names;
  /// JSON pointers to what decides which other keys there are. A difference in them is named first.
  std::vector<std::string> first;
  /// By JSON pointer: what a message about a difference there adds, such as the option that asks for the stored value.
  std::map<std::string, std::string> hints;
  /// By the JSON pointer to an object: the keys that a request may lack, with what it then means (Knob::absent). Null:
  /// the key means nothing if it is absent.
  std::map<std::string, Json> absent;
  /// JSON pointers to the objects of which a version knows every key. Others hold what a user wrote.
  std::vector<std::string> complete;
};

/// Refuses a request that is not the stored one. A key that one of them lacks has the value of `rules.absent`.
/// @throws InvalidArgument  names the folder, and the first difference with both values; a newer version stored the
///     request (its unknown keys are named); the stored request lacks a key that every version writes
void check_same_request(const Json& stored, const Json& asked, const std::filesystem::path& folder,
                        const RequestRules& rules = {});

/// The same request with the keys of the stored one, which an earlier version may have written: without those that the
/// stored one lacks and that mean what `rules.absent` says, with its names, and with what it has gained. A run keeps
/// the form of its request, so that the identities in its files stay the same.
Json in_form_of(const Json& stored, Json asked, const RequestRules& rules);

/// The sha256 of a request, without what may grow: all trainings that may continue each other have the same.
std::string request_identity(Json request, const RequestRules& rules = {});

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

/// Everything that a training needs to continue as if it had never stopped. The order of the data follows from the step
/// number, because it is a function of seed and epoch (schedule.h).
struct TrainingState {
  std::int64_t step = 0;        ///< number of steps done
  Json notes = Json::object();  ///< what the trainer keeps: best value, history, sums since the last evaluation
  std::map<std::string, at::Tensor> tensors;
};

/// Writes one safetensors file and replaces the old one atomically: a crash leaves either the old state or the new one.
/// @throws RunFailed  disk full
void save_training_state(const std::filesystem::path& file, const TrainingState& state);

/// @throws InvalidArgument  the file is broken, or is not a training state
TrainingState load_training_state(const std::filesystem::path& file);

/// The numbers of tensors by name, for Task::notes(): {"name": [number, ...]}.
Json tensors_to_json(std::span<const models::NamedTensor> tensors);
/// Writes the numbers into the tensors.
/// @param document  as tensors_to_json() gave it
/// @throws InvalidArgument  a tensor has another number of elements; a JSON exception if one is missing
void tensors_from_json(const Json& document, std::span<const models::NamedTensor> tensors);

}  // namespace gainlens::training
