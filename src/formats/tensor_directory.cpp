#include "core/check.h"
#include "core/checked.h"
#include "core/json.h"
#include "formats/pickle.h"
#include "formats/tensor_file.h"

#include <algorithm>
#include <set>
#include <system_error>

namespace gainlens::formats {
namespace {

constexpr const char* single_name = "model.safetensors";
constexpr const char* index_name = "model.safetensors.index.json";
constexpr std::string_view suffix = ".safetensors";

/// Whether the folder has a file of this name. A link to a missing file counts too, so that opening it can name that
/// file.
bool listed(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

std::vector<std::string> safetensors_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& item : std::filesystem::directory_iterator(folder, error)) {
    std::string name = item.path().filename().string();
    if (name.ends_with(suffix)) names.push_back(std::move(name));
  }
  CHECK(!error, "{}: cannot be listed: {}", printable(folder.string()), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

[[noreturn]] void refuse_folder_without_weights(const std::filesystem::path& folder) {
  const std::string where = printable(folder.string());
  if (const auto names = safetensors_names(folder); !names.empty()) {
    throw_invalid("{}: neither {} nor {}, but '{}'; rename the weights to {}", where, single_name, index_name,
                  printable(names.front()), single_name);
  }
  if (const auto pickled = pickled_weights(folder); !pickled.empty()) {
    throw_invalid(
        "{}: only pickled weights ('{}'{}), which may run any program when loaded; convert them to safetensors in that "
        "folder: {}",
        where, printable(pickled.front().filename().string()),
        pickled.size() > 1 ? fmt::format(" and {} more", pickled.size() - 1) : "", conversion_command(pickled));
  }
  throw_invalid("{}: no weights; looked for {} and {}", where, single_name, index_name);
}

void check_shard_name(const std::string& shard, const std::string& tensor, const std::string& where) {
  const bool plain = shard.find('/') == std::string::npos && shard.find("..") == std::string::npos &&
                     shard.find('\0') == std::string::npos;
  CHECK(plain,
        "{}: weight_map puts tensor '{}' in '{}'; must be the name of a file in the same folder, without '/' or '..'",
        where, printable(tensor), printable(shard));
  CHECK(shard.ends_with(suffix), "{}: weight_map puts tensor '{}' in '{}'; must be a {} file", where, printable(tensor),
        printable(shard), suffix);
}

/// tensor name -> shard name.
std::map<std::string, std::string> read_weight_map(const Json& index, const std::string& where) {
  CHECK(index.is_object() && index.contains("weight_map"), "{}: no weight_map; must be an object with one", where);
  const Json& weight_map = index["weight_map"];
  CHECK(weight_map.is_object(), "{}: weight_map is {}; must be an object, tensor name to shard", where,
        weight_map.type_name());
  CHECK(!weight_map.empty(), "{}: weight_map is empty; must name the shard of each tensor", where);
  std::map<std::string, std::string> shard_of;
  for (const auto& [tensor, shard] : weight_map.items()) {
    CHECK(shard.is_string(), "{}: weight_map key '{}' holds {}; must be the name of a shard", where, printable(tensor),
          shard.type_name());
    check_shard_name(shard.get_ref<const std::string&>(), tensor, where);
    shard_of.emplace(tensor, shard.get<std::string>());
  }
  return shard_of;
}

/// Refuses shards that were left from another checkpoint; nothing else would notice them.
void check_no_stray_shards(const std::filesystem::path& folder, const std::set<std::string>& named,
                           const std::string& where) {
  for (const std::string& name : safetensors_names(folder)) {
    const bool shard = name.starts_with("model-") && name.find("-of-") != std::string::npos;
    CHECK(!shard || named.contains(name),
          "{}: shard '{}' lies in the folder but is not in the index; remove it, or fetch the index that names it",
          where, printable(name));
  }
}

/// Index and shards must put the tensors of the shards in the same places. Adds a remark if the index names others.
void check_against_shards(const std::map<std::string, std::string>& shard_of, const std::vector<TensorFile>& shards,
                          const std::string& where, std::vector<std::string>& remarks) {
  std::map<std::string, const TensorFile*> by_name;
  for (const TensorFile& shard : shards) by_name.emplace(shard.path().filename().string(), &shard);
  std::vector<std::string> absent;
  for (const auto& [tensor, shard] : shard_of) {
    if (by_name.at(shard)->has(tensor)) continue;
    const bool elsewhere =
        std::ranges::any_of(shards, [&name = tensor](const TensorFile& file) { return file.has(name); });
    CHECK(!elsewhere,
          "{}: tensor '{}' should be in '{}' but is not; index and shard must come from the same checkpoint", where,
          printable(tensor), printable(shard));
    absent.push_back(tensor);
  }
  if (!absent.empty()) {
    remarks.push_back(fmt::format("the index names {} tensor{} that no shard has, the first is '{}'", absent.size(),
                                  absent.size() == 1 ? "" : "s", printable(absent.front())));
  }
  for (const auto& [name, shard] : by_name) {
    for (const auto& [tensor, entry] : shard->entries()) {
      const auto found = shard_of.find(tensor);
      CHECK(found != shard_of.end(),
            "{}: tensor '{}' of '{}' is not in the index; index and shard must come from the same checkpoint", where,
            printable(tensor), printable(name));
      CHECK(found->second == name,
            "{}: tensor '{}' is in '{}' and in '{}'; the index puts it in the first, remove the other", where,
            printable(tensor), printable(found->second), printable(name));
    }
  }
}

/// Adds a remark if metadata.total_size is there and is not the sum of the bytes of all tensors.
void compare_total_size(const Json& index, const std::vector<TensorFile>& shards, const std::string& where,
                        std::vector<std::string>& remarks) {
  if (!index.contains("metadata")) return;
  const Json& metadata = index["metadata"];
  CHECK(metadata.is_object(), "{}: metadata is {}; must be an object", where, metadata.type_name());
  if (!metadata.contains("total_size")) return;
  const Json& stated = metadata["total_size"];
  std::uint64_t total = 0;
  for (const TensorFile& shard : shards) {
    for (const auto& [name, entry] : shard.entries())
      total = checked_add<std::uint64_t>(total, entry.bytes.size(), where);
  }
  // Compared as a number, whatever its JSON type: some writers store 1024.0.
  if (stated.is_number() && stated == total) return;
  remarks.push_back(fmt::format("metadata.total_size of the index is {}; the tensors of the shards take {} bytes",
                                stated.is_number() ? stated.dump() : std::string(stated.type_name()), total));
}

}  // namespace

TensorDirectory TensorDirectory::open(const std::filesystem::path& folder) {
  std::error_code error;
  CHECK(std::filesystem::is_directory(folder, error), "{}: not a folder; give the folder that holds {}",
        printable(folder.string()), single_name);
  const auto single = folder / single_name;
  const auto index = folder / index_name;
  CHECK(!(listed(single) && listed(index)), "{}: both {} and {}, and either could be meant; remove one",
        printable(folder.string()), single_name, index_name);
  TensorDirectory directory;
  if (listed(single)) {
    directory.files_.push_back(TensorFile::open(single));
  } else if (listed(index)) {
    directory.index_ = index;
    const std::string where = printable(index.string());
    const Json json = read_json_file(index);
    const auto shard_of = read_weight_map(json, where);
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : shard_of) {
      CHECK(shards.contains(shard) || listed(folder / shard),
            "{}: shard '{}' (of tensor '{}') is missing from the folder; fetch it", where, printable(shard),
            printable(tensor));
      shards.insert(shard);
    }
    check_no_stray_shards(folder, shards, where);
    for (const std::string& shard : shards) directory.files_.push_back(TensorFile::open(folder / shard));
    check_against_shards(shard_of, directory.files_, where, directory.remarks_);
    compare_total_size(json, directory.files_, where, directory.remarks_);
  } else {
    refuse_folder_without_weights(folder);
  }
  for (const TensorFile& file : directory.files_)
    directory.entries_.insert(file.entries().begin(), file.entries().end());
  return directory;
}

std::vector<std::filesystem::path> TensorDirectory::files() const {
  std::vector<std::filesystem::path> paths;
  for (const TensorFile& file : files_) paths.push_back(file.path());
  if (!index_.empty()) paths.push_back(index_);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace gainlens::formats
