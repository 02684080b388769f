#include "runfile/kept_files.h"

#include "core/check.h"
#include "core/sha256.h"

namespace gainlens::runfile {

Json checksums_of(const KeptFiles& files) {
  Json checksums = Json::object();
  for (const char* name : files.names) checksums[name] = sha256_file(files.folder / name);
  return checksums;
}

void prove_kept(const Json& checksums, const KeptFiles& files, const KeptFilesWords& words) {
  for (const char* name : files.names) {
    const std::filesystem::path path = files.folder / name;
    CHECK(std::filesystem::exists(path), "{}: {} of {} is missing; put it back, or {}",
          printable(files.folder.string()), name, words.owner, words.repair);
    if (checksums.is_null()) continue;
    const std::string digest = sha256_file(path);
    CHECK(checksums.is_object() && checksums.value(name, Json()) == digest,
          "{}: its sha256 is {}, and {} says {}: the file has changed since the training wrote it; put it back, or {}",
          printable(path.string()), digest, words.list,
          printable((checksums.is_object() ? checksums.value(name, Json()) : checksums).dump()), words.repair);
  }
}

}  // namespace gainlens::runfile
