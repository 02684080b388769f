#include "cli/findings.h"

#include "core/console.h"
#include "core/error.h"
#include "core/terminal_text.h"

#include <algorithm>

namespace gainlens::cli {

void Findings::add(const std::string& name, const std::string& text, const Json& value) {
  add_line(name, text);
  std::string key = name;
  std::replace(key.begin(), key.end(), ' ', '_');
  add_json(key, value);
}

void Findings::conclude(const std::string& reason) {
  add_line("usable", !reason.empty() ? "no: " + reason : how_.empty() ? "yes" : "yes " + how_);
  add_json("usable", reason.empty());
  if (!reason.empty()) add_json("reason", reason);
}

void Findings::print(bool json) const {
  if (json) {
    print_result("{}\n", json_text(json_, 2));
    return;
  }
  for (const auto& [name, text] : lines_) print_result("{:<18} {}\n", name, terminal_line(text));
}

}  // namespace gainlens::cli
