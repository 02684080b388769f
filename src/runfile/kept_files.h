#pragma once

#include "core/json.h"

#include <filesystem>
#include <span>
#include <string>

namespace gainlens::runfile {

/// Files that a training has made and keeps in one folder, for example config.json and model.safetensors.
struct KeptFiles {
  std::filesystem::path folder;
  std::span<const char* const> names;
};

/// The sha256 of each file by its name: {"config.json": "..."}.
/// @throws InvalidArgument  a file cannot be read
Json checksums_of(const KeptFiles& files);

/// How to speak of kept files in messages.
struct KeptFilesWords {
  std::string owner;   ///< "the best step, 12": whose files they are
  std::string list;    ///< "the training state": what holds their checksums
  std::string repair;  ///< "delete out/training/state.safetensors to train again"
};

/// Proves that the files are there, and are as they were when their checksums were taken.
/// @param checksums  as returned by checksums_of; null, as in what older versions wrote: only their presence is proven
/// @throws InvalidArgument  one is missing or differs; the message names it and says how to repair it
void prove_kept(const Json& checksums, const KeptFiles& files, const KeptFilesWords& words);

}  // namespace gainlens::runfile
