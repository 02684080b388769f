#pragma once

#include <string_view>
#include <vector>

namespace gainlens::models {

/// What the reference implementation of a family makes of a key of config.json. Source: reference_key_table.cpp, which
/// tests/models/configs/make_reference_keys.py derives from the source of Hugging Face transformers.
struct ReferenceKey {
  bool read = false;             ///< by its configuration class, its modeling code, or the code that all models share
  std::string_view usual_value;  ///< JSON of the value that an absent key has; empty: none, or not known
};

/// @param model_type  of a family (Family::name)
ReferenceKey reference_key(std::string_view model_type, std::string_view key);

namespace reference {

/// Keys, separated by white space: `key`, or `key=value` with the value of an absent key as JSON.
struct FamilyKeys {
  std::string_view model_type;
  std::string_view keys;  ///< in addition to those of all families, or with another value
};

extern const std::string_view shared_keys;  ///< of all families
const std::vector<FamilyKeys>& family_keys();

}  // namespace reference
}  // namespace gainlens::models
