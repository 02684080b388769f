#pragma once

#include "core/json.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gainlens::training {

/// Which requests of one kind of training are the same although their JSON differs.
struct RequestRules {
  /// JSON pointers to whole numbers that may be larger than the stored ones, because a training with more of them
  /// begins as the stored one did: epochs at a constant learning rate.
  std::vector<std::string> may_grow;
  /// JSON pointers to objects that may have other entries: an experiment gains some, and keeps those that it has.
  std::vector<std::string> may_gain;
  /// JSON pointers to names that change nothing. The stored one stays.
  std::vector<std::string> names;
  /// JSON pointers to what decides which other keys there are. A difference in them is named first.
  std::vector<std::string> first;
  /// By JSON pointer: what a message about a difference there adds, such as the option that asks for the stored value.
  std::map<std::string, std::string> hints;
  /// By the JSON pointer to an object: the keys that a request may lack, with what it then means (Knob::absent). Null:
  /// the key means nothing if it is absent.
  std::map<std::string, Json> absent;
  /// JSON pointers to the objects of which a version knows every key. Others hold what a user wrote.
  std::vector<std::string> complete;
};

/// Refuses a request that is not the stored one. A key that one of them lacks has the value of `rules.absent`.
/// @throws InvalidArgument  names the folder, and the first difference with both values; a newer version stored the
///     request (its unknown keys are named); the stored request lacks a key that every version writes
void check_same_request(const Json& stored, const Json& asked, const std::filesystem::path& folder,
                        const RequestRules& rules = {});

/// The same request with the keys of the stored one, which an earlier version may have written: without those that the
/// stored one lacks and that mean what `rules.absent` says, with its names, and with what it has gained. A run keeps
/// the form of its request, so that the identities in its files stay the same.
Json in_form_of(const Json& stored, Json asked, const RequestRules& rules);

/// The sha256 of a request, without what may grow: all trainings that may continue each other have the same.
std::string request_identity(Json request, const RequestRules& rules = {});

}  // namespace gainlens::training
