#pragma once

#include "core/json.h"

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::models {

/// Reads the keys of one JSON object of a config.json, each with its type and range. It remembers which keys it was
/// asked for; refuse_unread finds keys of the file that were not read. Every message names the file and the key.
class ConfigReader {
 public:
  /// @param where   the file, for messages
  /// @param prefix  written before each key in messages, e.g. "rope_scaling."
  /// @throws InvalidArgument  `object` is not a JSON object
  ConfigReader(const Json& object, std::string where, std::string prefix = "");

  /// Integer in [low, high]; `fallback` if the key is absent.
  /// @throws InvalidArgument  the key is absent and there is no fallback; it is null, not an integer (4096.0 is not
  ///     one), or out of range
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high,
                       std::optional<std::int64_t> fallback = std::nullopt);

  /// Finite number in [low, high]; otherwise like integer().
  double number(std::string_view key, double low, double high, std::optional<double> fallback = std::nullopt);

  /// Null means false where false is the fallback: both readings of null agree. Otherwise it is refused.
  bool boolean(std::string_view key, bool fallback);
  std::string text(std::string_view key, std::optional<std::string> fallback = std::nullopt);

  /// The raw value; a null pointer if the key is absent. Marks the key as read.
  const Json* find(std::string_view key);
  /// The raw value; a null pointer if the key is absent or null. Marks the key as read.
  const Json* find_non_null(std::string_view key);

  /// The nested object under `key`; empty if it is absent or null.
  std::optional<ConfigReader> object(std::string_view key);

  /// The whole object, for keys that are themselves names (layer types).
  const Json& json() const { return *object_; }
  const std::string& where() const { return where_; }
  /// The key in the form of messages: "'rope_scaling.factor'".
  std::string quoted(std::string_view key) const;
  /// The same without quotes, as --ignore-config-key takes it.
  std::string unquoted(std::string_view key) const;

  /// Keeps something about the file that the user should know.
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::vector<std::string>& notes() const { return notes_; }

  /// The keys that were not read, in alphabetical order.
  std::vector<std::string> unread() const;
  /// Whether a key differs from one that was asked for by at most two letters.
  bool is_misspelt(std::string_view key) const;
  /// @throws InvalidArgument  always: the key of a config.json may change what the model computes (the message suggests
  /// the
  ///     nearest key of those that were read and of `known`)
  [[noreturn]] void refuse(const std::string& key, std::span<const std::string_view> known = {}) const;
  /// @throws InvalidArgument  a key was not read and is not in `inert`
  void refuse_unread(std::span<const std::string_view> inert = {}) const;
  /// The same for objects inside a config.json: a key whose value is null passes, because it says nothing.
  void refuse_unread_values(std::span<const std::string_view> inert = {}) const;

 private:
  std::string unknown(const std::string& key, std::span<const std::string_view> known) const;

  const Json* object_;
  std::string where_;
  std::string prefix_;
  std::set<std::string, std::less<>> read_;
  std::vector<std::string> notes_;
};

/// A JSON value for a message, cut to 60 bytes.
std::string brief(const Json& value);

}  // namespace gainlens::models
