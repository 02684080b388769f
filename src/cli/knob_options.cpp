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
  // JSON has no number that begins with its point.
  const std::string number = text.starts_with('.') ? "0" + text : text;
  const Json parsed = Json::parse(number, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : Json(text);
}

void add_no_jacobian(CLI::App& command, bool& given, const std::string& group) {
  command.add_flag("--no-jacobian", given, "The same as --jacobian none")->group(group);
}

void read_short_form(bool given, const std::string& flag, const std::string& key, const std::string& value,
                     std::map<std::string, std::string>& knobs) {
  if (!given) return;
  std::string& text = knobs[key];
  CHECK(text.empty() || text == value, "{}: {} {} is given too", flag, knob_option(key), printable(text, 60));
  text = value;
}

void read_no_jacobian(bool given, std::map<std::string, std::string>& knobs) {
  read_short_form(given, "--no-jacobian", "jacobian", "none", knobs);
}

std::string filter_option(const std::string& key, bool no_jacobian) {
  return no_jacobian && key == "jacobian" ? "--no-jacobian" : knob_option(key);
}

}  // namespace gainlens::cli
