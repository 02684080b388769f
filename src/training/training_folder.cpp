#include "training/training_folder.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/sha256.h"
#include "formats/content_checksum.h"
#include "formats/tensor_file.h"
#include "runfile/run_file_name.h"
#include "runfile/training_files.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/ranges.h>

#include <cstring>
#include <iterator>
#include <span>
#include <vector>

namespace gainlens::training {
namespace {

const std::filesystem::path& made_writable(const std::filesystem::path& folder) {
  ensure_writable_folder(folder);
  return folder;
}

using Pointer = Json::json_pointer;

bool has_object(const Json& request, const std::string& place) {
  return request.contains(Pointer(place)) && request.at(Pointer(place)).is_object();
}

/// The request with every key that it may lack.
Json filled(Json request, const RequestRules& rules) {
  for (const auto& [place, values] : rules.absent) {
    if (!has_object(request, place)) continue;
    Json complete = values;
    complete.update(request.at(Pointer(place)));
    request.at(Pointer(place)) = std::move(complete);
  }
  return request;
}

/// Pointers to the keys of a request that another one lacks, in objects of which a version knows every key.
std::vector<std::string> keys_beyond(const Json& request, const Json& other, const RequestRules& rules) {
  std::vector<std::string> found;
  for (const std::string& place : rules.complete) {
    if (!has_object(request, place) || !has_object(other, place)) continue;
    for (const auto& [key, value] : request.at(Pointer(place)).items()) {
      if (!other.at(Pointer(place)).contains(key)) found.push_back(fmt::format("{}/{}", place, key));
    }
  }
  return found;
}

/// What the version knows that asks.
/// @param complete  its request, filled
runfile::KnownRequest known_by(const Json& complete, std::int64_t version, const RequestRules& rules) {
  runfile::KnownRequest known{version, {}};
  for (const std::string& place : rules.complete) {
    if (!has_object(complete, place)) continue;
    std::vector<std::string>& keys = known.keys[place];
    for (const auto& [key, value] : complete.at(Pointer(place)).items()) keys.push_back(key);
  }
  return known;
}

std::int64_t version_of(const Json& request) {
  const auto found = request.find("version");
  return found != request.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// Describes the first difference between two filled requests; empty if they are the same.
/// @param as_stored  the stored request as it is
/// @param hints      RequestRules::hints
std::string first_difference(const Json& stored, const Json& asked, const Json& as_stored,
                             const std::map<std::string, std::string>& hints) {
  for (const Json& change : Json::diff(stored, asked)) {
    const Pointer place(change.at("path").get<std::string>());
    const auto shown = [&place](const Json& json) {
      const bool known = json.contains(place) && !json.at(place).is_null();
      return known ? printable(json.at(place).dump(), 80) : "absent";
    };
    if (place.back() == "-")
      return fmt::format("{} has more entries in this request", printable(place.parent_pointer().to_string(), 100));
    const bool meant = stored.contains(place) && !stored.at(place).is_null() && !as_stored.contains(place);
    const auto hint = hints.find(place.to_string());
    return fmt::format("{} is {} in the stored request{} and {} in this one{}", printable(place.to_string(), 100),
                       shown(stored), meant ? " (which does not name it)" : "", shown(asked),
                       hint != hints.end() ? " (" + hint->second + ")" : "");
  }
  return "";
}

constexpr std::string_view format_name = "gainlens-training-state";
constexpr std::pair<at::ScalarType, formats::DType> dtypes[] = {{at::kDouble, formats::DType::f64},
                                                                {at::kFloat, formats::DType::f32},
                                                                {at::kLong, formats::DType::i64},
                                                                {at::kByte, formats::DType::u8}};

formats::DType dtype_on_disk(at::ScalarType type, const std::string& name) {
  for (const auto& [torch, disk] : dtypes) {
    if (torch == type) return disk;
  }
  ASSERT(false, "training state: tensor {} has a type that cannot be stored", name);
  return {};
}

at::Tensor copy_of(const formats::TensorEntry& entry, const std::string& where) {
  for (const auto& [torch, disk] : dtypes) {
    if (disk != entry.dtype) continue;
    at::Tensor tensor = at::empty(entry.shape, torch);
    std::memcpy(tensor.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
    return tensor;
  }
  throw_invalid("{}: tensor '{}' has a type that a training state never holds; delete the file to train from the start",
                where, printable(entry.name, 100));
}

/// The sha256 of a state. With it, a file that was damaged on the disk is refused.
template <typename Tensors>
std::string checksum(const std::string& step, const std::string& notes, const Tensors& tensors) {
  return formats::content_checksum(step + "\n" + notes + "\n", tensors);
}

formats::TensorFile open_state(const std::filesystem::path& file) {
  try {
    return formats::TensorFile::open(file);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}; delete it to train from the start", error.what());
  }
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

void check_same_request(const Json& stored, const Json& asked, const std::filesystem::path& folder,
                        const RequestRules& rules) {
  const std::string where = printable(folder.string());
  const std::string file = printable((folder / runfile::request_file_name).string());
  CHECK(stored.is_object() && !stored.empty(),
        "{}: is not the request of a training; put it back, or choose another folder", file);
  const std::int64_t stored_version = version_of(stored), own_version = version_of(asked);
  CHECK(stored_version >= own_version,
        "{}: holds a training with another request: /version is {} in the stored request and {} in this one: an "
        "earlier version of gainlens made it; choose another folder",
        where, stored_version, own_version);
  Json complete = filled(asked, rules);
  const runfile::KnownRequest known = known_by(complete, own_version, rules);
  if (stored_version > own_version) runfile::refuse_newer_request(stored, known, file);
  for (const std::string& place : rules.first) {
    const auto of = [&](const Json& request) {
      return request.contains(Pointer(place)) ? request.at(Pointer(place)) : Json();
    };
    const std::string difference =
        first_difference({{"at", of(stored)}}, {{"at", of(asked)}}, {{"at", of(stored)}}, {});
    CHECK(difference.empty(), "{}: holds a training with another request: {}{}; choose another folder", where, place,
          difference.substr(std::string_view("/at").size()));
  }
  runfile::refuse_newer_request(stored, known, file);
  Json grown = filled(stored, rules);
  const std::vector<std::string> missing = keys_beyond(complete, grown, rules);
  CHECK(missing.empty(),
        "{}: holds a training with another request: its request.json lacks {}, which every version writes; choose "
        "another folder",
        where, printable(fmt::format("{}", fmt::join(missing, ", ")), 200));
  for (const std::string& place : rules.may_grow) {
    const Pointer at(place);
    const bool numbers = grown.contains(at) && complete.contains(at) && grown.at(at).is_number_integer() &&
                         complete.at(at).is_number_integer();
    if (numbers && grown.at(at) < complete.at(at)) grown.at(at) = complete.at(at);
  }
  for (const std::string& place : rules.names) {
    if (grown.contains(Pointer(place)) && complete.contains(Pointer(place)))
      grown.at(Pointer(place)) = complete.at(Pointer(place));
  }
  for (const std::string& place : rules.may_gain) {
    if (!has_object(grown, place) || !has_object(complete, place)) continue;
    const Json left = grown.at(Pointer(place)), right = complete.at(Pointer(place));
    grown.at(Pointer(place)).update(right);
    grown.at(Pointer(place)).update(left);
    complete.at(Pointer(place)).update(left);
    complete.at(Pointer(place)).update(right);
  }
  const std::string difference = first_difference(grown, complete, stored, rules.hints);
  CHECK(difference.empty(), "{}: holds a training with another request: {}; choose another folder", where, difference);
}

Json in_form_of(const Json& stored, Json asked, const RequestRules& rules) {
  for (const std::string& place : rules.names) {
    if (stored.contains(Pointer(place)) && asked.contains(Pointer(place)))
      asked.at(Pointer(place)) = stored.at(Pointer(place));
  }
  for (const std::string& place : rules.may_gain) {
    if (!has_object(stored, place)) continue;
    Json gained = stored.at(Pointer(place));
    if (has_object(asked, place)) gained.update(asked.at(Pointer(place)));
    asked[Pointer(place)] = std::move(gained);
  }
  for (const auto& [place, values] : rules.absent) {
    if (!has_object(stored, place) || !has_object(asked, place)) continue;
    const Json& kept = stored.at(Pointer(place));
    Json& form = asked.at(Pointer(place));
    for (const auto& [key, value] : values.items()) {
      if (!kept.contains(key) && form.contains(key) && form.at(key) == value) form.erase(key);
      if (kept.contains(key) && !form.contains(key) && !value.is_null()) form[key] = value;
    }
  }
  return asked;
}

std::string request_identity(Json request, const RequestRules& rules) {
  for (const std::string& place : rules.may_grow) {
    const Pointer at(place);
    if (request.contains(at)) request.at(at) = nullptr;
  }
  return sha256_hex(request.dump());
}

void save_training_state(const std::filesystem::path& file, const TrainingState& state) {
  std::vector<at::Tensor> contiguous;  // must exist until the bytes are written
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [name, tensor] : state.tensors) {
    const at::Tensor& kept = contiguous.emplace_back(tensor.detach().contiguous());
    tensors.push_back({name,
                       dtype_on_disk(kept.scalar_type(), name),
                       kept.sizes().vec(),
                       {static_cast<const std::byte*>(kept.const_data_ptr()), kept.nbytes()}});
  }
  const std::string step = std::to_string(state.step), notes = state.notes.dump();
  const std::string sum = checksum(step, notes, tensors);
  formats::write_tensors(file, tensors,
                         {{"format", std::string(format_name)}, {"step", step}, {"notes", notes}, {"sha256", sum}});
}

TrainingState load_training_state(const std::filesystem::path& file) {
  const formats::TensorFile stored = open_state(file);
  const std::string where = printable(file.string());
  const auto& metadata = stored.metadata();
  const auto format = metadata.find("format"), step = metadata.find("step"), notes = metadata.find("notes");
  const auto sum = metadata.find("sha256");
  CHECK(format != metadata.end() && format->second == format_name && step != metadata.end() &&
            notes != metadata.end() && sum != metadata.end(),
        "{}: not a training state of gainlens; delete it to train from the start", where);
  std::vector<formats::TensorEntry> entries;  // sorted by name, as they were written
  for (const auto& [name, entry] : stored.entries()) entries.push_back(entry);
  CHECK(checksum(step->second, notes->second, entries) == sum->second,
        "{}: has changed since it was written; delete it to train from the start", where);
  TrainingState state;
  const Json number = parse_json(step->second, where + " (step)");
  CHECK(number.is_number_unsigned(), "{}: 'step' is '{}'; must be a whole number of at least 0", where,
        printable(step->second, 40));
  state.step = number.get<std::int64_t>();
  state.notes = parse_json(notes->second, where + " (notes)");
  for (const auto& [name, entry] : stored.entries()) state.tensors.emplace(name, copy_of(entry, where));
  return state;
}

Json tensors_to_json(std::span<const models::NamedTensor> tensors) {
  Json document = Json::object();
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor values = tensor.to(at::kCPU, at::kDouble).contiguous();
    const double* const first = values.const_data_ptr<double>();
    document[name] = std::vector<double>(first, first + values.numel());
  }
  return document;
}

void tensors_from_json(const Json& document, std::span<const models::NamedTensor> tensors) {
  const at::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : tensors) {
    const auto values = document.at(name).get<std::vector<double>>();
    CHECK(std::ssize(values) == tensor.numel(), "training state: '{}' has {} numbers; must have {}", name,
          values.size(), tensor.numel());
    tensor.copy_(at::tensor(values, at::kDouble).view(tensor.sizes()));
  }
}

}  // namespace gainlens::training
