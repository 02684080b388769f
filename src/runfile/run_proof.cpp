#include "runfile/run_proof.h"

#include "core/error.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/folder_lock.h"
#include "runfile/manifest.h"
#include "runfile/run_file.h"
#include "runfile/run_log.h"
#include "runfile/shard_file.h"

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

void prove_shard(const fs::path& file, const std::string& listed) {
  const std::string shown = printable(file.string());
  CHECK(fs::exists(file),
        "{}: is listed in manifest.jsonl and is not there; repeat the sweep command, which computes it again", shown);
  const std::string digest = sha256_file(file);
  CHECK(digest == listed,
        "{}: its sha256 is {} and manifest.jsonl says {}: the file has changed since it was written; delete it and "
        "repeat the sweep command, which computes it again",
        shown, digest, listed);
}

/// Empty, or why run.h5 could not be proven.
std::string prove_combined(const fs::path& folder) {
  const fs::path file = folder / run_file_name;
  if (!fs::exists(file)) return {};  // RunReader says what to do about it
  const Json combined = RunLog::read(folder).combined();
  if (!combined.is_object() || !combined.contains("sha256") || !combined.at("sha256").is_string()) {
    return "log.json keeps no checksum of run.h5, so it is not proven that run.h5 was made from its shards.";
  }
  const std::string digest = sha256_file(file), listed = combined.at("sha256");
  CHECK(digest == listed,
        "{}: its sha256 is {} and log.json says {}: the file has changed since it was combined; repeat the sweep "
        "command, which rebuilds it from its shards",
        printable(file.string()), digest, printable(listed));
  return {};
}

/// A run.h5 without its folder; the checksum of a shipped one lies beside it as `sha256sum` writes it.
std::string prove_alone(const fs::path& file) {
  const fs::path list = file.string() + ".sha256";
  if (!fs::exists(list)) return "run.h5 was given without its folder: its numbers are not proven against checksums.";
  const std::string listed = read_text_file(list).substr(0, 64), digest = sha256_file(file);
  CHECK(digest == listed, "{}: its sha256 is {} and {} says {}: the file is damaged or was changed; fetch it again",
        printable(file.string()), digest, printable(list.string()), printable(listed));
  return "run.h5 was given without its folder: it has the checksum that lies beside it, and no shard is proven.";
}

}  // namespace

RunProof prove_run(const fs::path& path) {
  if (!fs::is_directory(path)) return {0, prove_alone(path)};
  check_not_being_written(path);
  const fs::path list = path / "manifest.jsonl";
  if (!fs::exists(list)) return {0, "The folder holds no manifest.jsonl: its shards are not proven against checksums."};
  const auto digests = read_manifest(list);
  for (const auto& [key, digest] : digests) prove_shard(path / "shards" / shard_file_name(key), digest);
  return {digests.size(), prove_combined(path)};
}

}  // namespace gainlens::runfile
