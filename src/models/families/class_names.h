#pragma once

#include "models/families/config_reader.h"
#include "models/families/family.h"

namespace gainlens::models {

/// The family of a config.json by its model_type. A file without one (some of 2019) is identified by `architectures`.
/// @throws InvalidArgument  the model_type is not supported; there is none, and no family has this architecture
const Family& family_of_config(ConfigReader& reader);

/// Checks that `architectures` and `auto_map` name classes of this family: those of its reference implementation, or
/// code of its own under the same names, which is how checkpoints were published before a library had the family.
/// @throws InvalidArgument  another class, which may compute something else under the same model_type
void check_class_names(ConfigReader& reader, const Family& family);

/// Whether `auto_map` names code that comes with the checkpoint and computes the model, in place of the reference.
bool has_own_code(const ConfigReader& reader);

}  // namespace gainlens::models
