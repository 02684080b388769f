#include "runfile/intervention_names.h"

#include "runfile/stored_json.h"

#include <string_view>

namespace gainlens::runfile {

std::string name_of_model(const std::filesystem::path& model) {
  std::string name = (model.has_filename() ? model : model.parent_path()).filename().string();
  for (const std::string_view extension : {".gguf", ".safetensors"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) name.erase(name.size() - extension.size());
  }
  return name;
}

std::string names_text(const InterventionNames& names) {
  return json_text({{"model", names.model}, {"text", names.text}, {"clean", names.clean}, {"corrupt", names.corrupt}},
                   2) +
         "\n";
}

std::optional<InterventionNames> read_intervention_names(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / intervention_names_file;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  return read_checked(file, [](const Json& json) {
    return InterventionNames{json.at("model").get<std::string>(), json.at("text").get<std::string>(),
                             json.at("clean").get<std::string>(), json.at("corrupt").get<std::string>()};
  });
}

}  // namespace gainlens::runfile
