#include "formats/adapter_folder.h"

#include "core/check.h"
#include "core/json.h"
#include "formats/gguf_file.h"
#include "formats/hub_cache.h"
#include "formats/tensor_file.h"

#include <system_error>

namespace gainlens::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t max_adapter_config_bytes = 16u << 20;
constexpr const char* adapter_base_key = "base_model_name_or_path";

bool is_regular(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

}  // namespace

std::optional<fs::path> find_adapter(const fs::path& path) {
  std::error_code error;
  fs::path folder = path;
  const fs::path config = path / adapter_config_name;
  CHECK(!fs::exists(config, error) || is_regular(config), "{}: is no regular file; the folder of an adapter needs one",
        printable(config.string()));
  if (!is_regular(config)) {
    // A model in the cache of the Hub is left to resolve_checkpoint_folder(), with its messages.
    if (is_regular(path / "config.json") || !fs::is_directory(path / "snapshots", error)) return std::nullopt;
    folder = snapshot_of_cache(path);
    if (!is_regular(folder / adapter_config_name)) return std::nullopt;
  }
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    CHECK(!fs::exists(folder / name, error),
          "{}: both {} and {}, and either could be meant; move one of them into a folder of its own",
          printable(folder.string()), name, adapter_config_name);
  }
  return folder;
}

fs::path adapter_base(const fs::path& folder, const Environment& environment) {
  const fs::path file = folder / adapter_config_name;
  const std::string where = printable(file.string());
  const Json config = read_json_file(file, max_adapter_config_bytes);
  CHECK(config.is_object(), "{}: is not a JSON object", where);
  const auto found = config.find(adapter_base_key);
  const bool given = found != config.end() && !found->is_null() && *found != "";
  CHECK(given, "{}: '{}' is missing; it must name the model that the adapter was trained on", where, adapter_base_key);
  CHECK(found->is_string(), "{}: '{}' is {}; it must be text that names the model that the adapter was trained on",
        where, adapter_base_key, printable(found->dump(), 60));
  fs::path named = found->get<std::string>();
  std::error_code ignored;
  if (named.is_relative() && fs::exists(folder / named, ignored)) named = folder / named;
  try {
    const fs::path base = locate_checkpoint(named, environment);
    CHECK(!find_adapter(base), "is an adapter itself; only adapters of a whole model are read");
    return find_gguf(base) ? base : resolve_checkpoint_folder(base);
  } catch (const InvalidArgument& error) {
    throw_invalid("{}: '{}' is {}: {}", where, adapter_base_key, printable(named.string(), 200), error.what());
  }
}

}  // namespace gainlens::formats
