#pragma once

#include "core/json.h"

#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {

/// What `inspect` has found, in order: lines for the terminal, and one JSON object.
class Findings {
 public:
  /// @param name  of the line, and with _ for spaces the JSON key
  void add(const std::string& name, const std::string& text, const Json& value);
  void add(const std::string& name, const std::string& text) { add(name, text, text); }
  /// In JSON alone.
  void add_json(const std::string& key, const Json& value) { json_[key] = value; }
  /// On the terminal alone.
  void add_line(const std::string& name, const std::string& text) { lines_.emplace_back(name, text); }

  /// The verdict, last of all.
  /// @param reason  empty: usable
  void conclude(const std::string& reason);

  void print(bool json) const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
  OrderedJson json_ = OrderedJson::object();
};

}  // namespace gainlens::cli
