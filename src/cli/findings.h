#pragma once

#include "core/json.h"

#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {

/// The findings of `inspect`, in order: lines for the terminal, and one JSON object.
class Findings {
 public:
  /// @param name  name of the line; with _ in place of spaces it is the JSON key
  void add(const std::string& name, const std::string& text, const Json& value);
  void add(const std::string& name, const std::string& text) { add(name, text, text); }
  /// Adds a finding to the JSON object only.
  void add_json(const std::string& key, const Json& value) { json_[key] = value; }
  /// Adds a line for the terminal only.
  void add_line(const std::string& name, const std::string& text) { lines_.emplace_back(name, text); }

  /// Adds the last finding: whether the checkpoint or run is usable.
  /// @param reason  why it is not usable; empty if it is usable
  void conclude(const std::string& reason);

  /// How what is inspected can be used, as the end of "yes ...": "in bfloat16; ...".
  void usable_how(std::string how) { how_ = std::move(how); }

  void print(bool json) const;

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
  OrderedJson json_ = OrderedJson::object();
  std::string how_;
};

}  // namespace gainlens::cli
