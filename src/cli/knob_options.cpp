#include "cli/knob_options.h"

#include "core/check.h"

#include <algorithm>

namespace gainlens::cli {

std::string knob_option(const std::string& key) {
  std::string name = "--" + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

Json knob_value(const std::string& text) {
  const Json parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
}

void add_no_jacobian(CLI::App& command, bool& given, const std::string& group) {
  command.add_flag("--no-jacobian", given, "The same as --jacobian none")->group(group);
}

void read_no_jacobian(bool given, std::map<std::string, std::string>& knobs) {
  if (!given) return;
  std::string& jacobian = knobs["jacobian"];
  CHECK(jacobian.empty() || jacobian == "none", "--no-jacobian: --jacobian {} is given too", printable(jacobian, 60));
  jacobian = "none";
}

std::string filter_option(const std::string& key, bool no_jacobian) {
  return no_jacobian && key == "jacobian" ? "--no-jacobian" : knob_option(key);
}

}  // namespace gainlens::cli
