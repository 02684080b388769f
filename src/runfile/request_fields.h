#pragma once

#include "core/json.h"
#include "runfile/request.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// A key of a sweep's request: how it is written, read and compared.
struct RequestField {
  std::string key;
  std::function<Json(const Request&)> get;
  /// @throws InvalidArgument  the value has another type
  std::function<void(Request&, const Json&, std::string_view where)> set;

  /// What a request means that lacks the key: what held before the key existed. It is written only where the value is
  /// another one, so requests of earlier versions stay as they are. Discarded: every request has the key.
  Json absent = Json(Json::value_t::discarded);
  /// Whether this request cannot lack the key although others can.
  std::function<bool(const Request&)> needed = [](const Request&) { return false; };

  /// How a message names it: the option of `gainlens sweep` that decides it, where there is one.
  std::string name;
  /// The value in words, for differences; empty: as JSON.
  std::function<std::string(const Request&)> words;
  /// Why two requests with these values measure other numbers, in one line; empty if they do not. Without this function
  /// two values that differ do.
  std::function<std::string(const Request& stored, const Request& asked)> difference;
  /// Of an input with a checksum: its name in messages.
  std::string InputNames::*input = nullptr;
};

/// Every key, in the order in which requests are compared: what the user sees first stands first, and a field that
/// follows from another one stands behind it.
const std::vector<RequestField>& request_fields();

/// "X is A in the stored request and B in this one".
std::string difference_line(std::string_view what, std::string_view stored, std::string_view asked);

}  // namespace gainlens::runfile
