#include "recommend/recommender_files.h"

#include "core/check.h"

namespace gainlens::recommend {
namespace {

constexpr std::string_view prefix = "gainlens-";

}  // namespace

std::string model_type_of(std::string_view backbone) {
  return fmt::format("{}{}", prefix, backbone);
}

std::optional<std::string> backbone_of_type(const Json& model_type) {
  if (!model_type.is_string()) return std::nullopt;
  const auto text = model_type.get<std::string>();
  if (!text.starts_with(prefix)) return std::nullopt;
  return text.substr(prefix.size());
}

bool is_recommender(const std::filesystem::path& path) {
  try {
    const std::filesystem::path file = path / "config.json";
    if (!std::filesystem::exists(file)) return false;
    const Json document = read_json_file(file);
    return document.is_object() && document.contains("model_type") &&
           backbone_of_type(document["model_type"]).has_value();
  } catch (const InvalidArgument&) {
    return false;
  }
}

std::int64_t catalogue_size(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  const Json document = read_json_file(file);
  const std::string where = printable(file.string());
  CHECK(document.is_object() && document.contains("items") && document["items"].is_number_unsigned(),
        "{}: has no whole number 'items'", where);
  const auto items = document["items"].get<std::uint64_t>();
  CHECK(items >= 1 && items <= max_items, "{}: 'items' is {}; must be 1 to {}", where, items, max_items);
  return static_cast<std::int64_t>(items);
}

}  // namespace gainlens::recommend
