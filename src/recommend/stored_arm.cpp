#include "recommend/stored_arm.h"

#include "core/check.h"
#include "core/knobs.h"

#include <fmt/ranges.h>

#include <vector>

namespace gainlens::recommend {

void read_arm(models::ConfigReader& reader, Arm& to, bft::FilterOptions& options) {
  const Json *arm = reader.find("arm"), *filter = reader.find("filter");
  if (arm == nullptr && filter == nullptr) return;
  CHECK(arm != nullptr, "{}: 'filter' is given without 'arm', the name of the arm that reads it", reader.where());
  CHECK(filter != nullptr, "{}: 'arm' is given without 'filter', the options of its filter", reader.where());
  CHECK(arm->is_string(), "{}: 'arm' is {}; must be a name", reader.where(), printable(arm->dump(), 60));
  CHECK(filter->is_object(), "{}: 'filter' is {}; must be an object", reader.where(), printable(filter->dump(), 60));
  const ArmParts* parts = find_arm(arm->get<std::string>());
  std::vector<std::string> names;
  for (const ArmParts& known : all_arms()) names.emplace_back(known.name);
  CHECK(parts != nullptr, "{}: 'arm' is {}; must be one of {}{}", reader.where(), printable(arm->dump(), 60),
        fmt::join(names, ", "), did_you_mean(arm->get<std::string>(), names));
  to = parts->arm;
  const std::string where = reader.where() + ": 'filter'";
  read_knobs(bft::filter_knobs(), options, *filter, where);
}

void write_arm(OrderedJson& document, Arm arm, const bft::FilterOptions& filter) {
  if (arm == Arm::plain) return;
  document["arm"] = name_of(arm);
  document["filter"] = knobs_to_json(bft::filter_knobs(), filter);
}

void expect_text(models::ConfigReader& reader, const std::string& key, const std::string& only) {
  const std::string text = reader.text(key);
  CHECK(text == only, "{}: '{}' is '{}'; must be '{}'", reader.where(), key, printable(text, 60), only);
}

void check_all_read(models::ConfigReader& reader) {
  std::vector<std::string> unknown = reader.unread();
  std::erase(unknown, "data");  // of which split it was trained, see recommender_checkpoint.h
  CHECK(unknown.empty(), "{}: {}", reader.where(), made_by_newer_version(unknown));
}

std::string changed_options(const bft::FilterOptions& filter) {
  std::string changed;
  const Json usual = Json(knobs_to_json(bft::filter_knobs(), bft::FilterOptions()));
  const Json own = Json(knobs_to_json(bft::filter_knobs(), filter));
  for (const auto& [key, value] : own.items()) {
    if (value != usual.at(key)) changed += fmt::format("{}{} {}", changed.empty() ? "" : ", ", key, value.dump());
  }
  return changed.empty() ? "the default options" : "the default options, but " + changed;
}

}  // namespace gainlens::recommend
