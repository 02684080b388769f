#include "recommend/variants.h"

#include "core/check.h"
#include "experiment/job.h"

namespace gainlens::recommend {

std::map<std::string, Settings> settings_of_variants(const std::vector<Variant>& variants, const Settings& run) {
  std::map<std::string, Settings> settings;
  std::map<std::string, std::string> owner;  // of the settings, as text
  const std::string run_text = Json(to_json(run)).dump();
  for (const Variant& variant : variants) {
    const std::string where = fmt::format("--variant {}", printable(variant.name, 60));
    CHECK(
        experiment::is_variant_name(variant.name),
        "--variant: '{}' cannot be the name of a variant; give at most 60 letters, digits, '-', '_', '.' and '+', the "
        "first one a letter or a digit, and neither 'seed-N' nor 'training'",
        printable(variant.name, 80));
    CHECK(!settings.contains(variant.name), "{}: stands twice", where);
    check_settings(variant.changes, where, *run.backbone);
    Json all = Json(to_json(run));
    all.update(variant.changes);
    const Settings made = settings_of(all, where, *run.backbone);
    const std::string text = Json(to_json(made)).dump();
    CHECK(text != run_text, "{}: changes nothing: its settings are those of the run; change one, or leave it out",
          where);
    const auto [other, is_new] = owner.emplace(text, variant.name);
    CHECK(is_new, "{}: has the same settings as variant {}; leave one of them out", where, other->second);
    settings.emplace(variant.name, made);
  }
  return settings;
}

Json to_json(const std::map<std::string, Settings>& variants, const std::vector<Variant>& given) {
  Json document = Json::object();
  for (const Variant& variant : given) {
    const Json all = Json(to_json(variants.at(variant.name)));
    Json& changes = document[variant.name] = Json::object();
    for (const auto& [key, value] : variant.changes.items()) changes[key] = all.at(key);
  }
  return document;
}

std::vector<Variant> stored_variants(const Json& request, const std::string& where) {
  std::vector<Variant> variants;
  const auto stored = request.find("variants");
  if (stored == request.end()) return variants;
  CHECK(stored->is_object(), "{}: 'variants' is {}; must be an object", where, printable(stored->dump(), 60));
  for (const auto& [name, changes] : stored->items()) variants.push_back({name, changes});
  return variants;
}

Settings settings_of_request(const Json& request, const std::string& variant, const std::string& where) {
  CHECK(request.contains("backbone") && request["backbone"].is_string(), "{}: has no text 'backbone'", where);
  CHECK(request.contains("training"), "{}: has no 'training'", where);
  const BackboneKind& backbone = backbone_named(request["backbone"].get<std::string>(), where + ": 'backbone'");
  Settings settings = stored_settings(request["training"], where, backbone);
  if (variant.empty()) return settings;
  auto variants = settings_of_variants(stored_variants(request, where), settings);
  const auto found = variants.find(variant);
  CHECK(found != variants.end(), "{}: has no variant '{}'", where, printable(variant, 60));
  return found->second;
}

}  // namespace gainlens::recommend
