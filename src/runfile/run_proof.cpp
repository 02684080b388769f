#include "runfile/run_proof.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/checksums.h"
#include "runfile/depth_run.h"
#include "runfile/folder_lock.h"
#include "runfile/run_file.h"
#include "runfile/run_folder.h"
#include "runfile/run_reader.h"
#include "runfile/shard_file.h"

#include <optional>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

void prove_shard(const fs::path& file, const std::string& listed) {
  CHECK(fs::exists(file),
        "{}: is listed in manifest.jsonl and is not there; repeat the sweep command, which computes it again",
        printable(file.string()));
  check_digest(file, listed, " and manifest.jsonl says",
               "the file has changed since it was written; delete it and repeat the sweep command, which computes it "
               "again");
}

/// Empty, or why run.h5 could not be proven.
std::string prove_combined(const fs::path& folder) {
  const fs::path file = folder / run_file_name;
  if (!fs::exists(file)) return {};  // RunReader says what to do about it
  const Json combined = RunLog::read(folder).combined();
  if (!combined.is_object() || !combined.contains("sha256") || !combined.at("sha256").is_string()) {
    return "log.json keeps no checksum of run.h5, so it is not proven that run.h5 was made from its shards.";
  }
  check_digest(file, combined.at("sha256").get<std::string>(), " and log.json says",
               "the file has changed since it was combined; repeat the sweep command, which rebuilds it from its "
               "shards");
  return {};
}

/// The sha256 that `<file>.sha256` gives for the file, as `sha256sum` writes it.
std::string listed_beside(const fs::path& list) {
  const std::string text = read_text_file(list, 4096);
  const std::string digest = text.substr(0, text.find_first_not_of("0123456789abcdef"));
  CHECK(digest.size() == 64, "{}: holds no sha256; write it with: sha256sum {}", printable(list.string()),
        printable(list.stem().string()));
  return digest;
}

RunProof prove_alone(const fs::path& file) {
  if (prove_by_neighbour(file))
    return {0, "run.h5 was given without its folder: it has the checksum that lies beside it, and no shard is proven."};
  return {0, "run.h5 was given without its folder: its numbers are not proven against checksums.", !fs::exists(file)};
}

/// A folder without shards, as runs are shipped.
RunProof prove_without_manifest(const fs::path& folder) {
  const bool has_neighbour = fs::exists(folder / run_file_name) && prove_by_neighbour(folder / run_file_name);
  const std::string gap = prove_combined(folder);
  if (gap.empty() || has_neighbour)
    return {0,
            "The folder holds no manifest.jsonl: run.h5 has the checksum that was stored with it, and no shard is "
            "proven."};
  return {0, "The folder holds no manifest.jsonl: its shards are not proven against checksums.", false};
}

/// run.h5 must be of the model and text in request.json, and hold no chunk that the manifest does not list.
void check_agreement(const fs::path& folder, const std::map<ShardKey, std::string>& digests) {
  if (!fs::exists(folder / run_file_name)) return;
  const RunReader reader = RunReader::open(folder);
  const fs::path file = folder / "request.json";
  if (fs::exists(file)) {
    const Request request = Request::from_json(read_json_file(file), printable(file.string()));
    const std::string difference = reader.request().difference(request);
    CHECK(difference.empty(), "{}: is not of the request in request.json ({}); repeat the sweep command",
          printable(reader.path().string()), difference);
  }
  for (std::size_t length = 0; length < reader.lengths().size(); ++length) {
    for (std::int64_t sample = 0; sample < reader.samples(); ++sample) {
      const ShardKey key{reader.lengths()[length], sample};
      CHECK(!reader.complete(length, sample) || digests.contains(key),
            "{}: holds the chunk of {} tokens, sample {}, which manifest.jsonl does not list; repeat the sweep command",
            printable(reader.path().string()), key.length, key.sample);
    }
  }
}

RunProof prove_folder(const fs::path& path) {
  check_not_being_written(path);
  const fs::path list = path / "manifest.jsonl", request_file = path / "request.json";
  if (!fs::exists(list)) return prove_without_manifest(path);
  std::optional<Request> request;  // read first: it says so if this is no sweep
  if (fs::exists(request_file))
    request = Request::from_json(read_json_file(request_file), printable(request_file.string()));
  const auto digests = read_manifest(list);
  if (request) check_listed(digests, *request, list);
  for (const auto& [key, digest] : digests) prove_shard(path / "shards" / shard_file_name(key), digest);
  const std::string gap = prove_combined(path);
  check_agreement(path, digests);
  return {digests.size(), gap, gap.empty()};
}

/// A line as `sha256sum` writes it.
std::string checksum_line(const std::string& sha256, const fs::path& file) {
  return sha256 + "  " + file.filename().string() + "\n";
}

}  // namespace

bool prove_by_neighbour(const fs::path& file) {
  const fs::path list = checksum_file_of(file);
  if (!fs::exists(list)) return false;
  check_digest(file, listed_beside(list), fmt::format(" and {} says", printable(list.string())),
               "the file is damaged or was changed; fetch it again, or delete it and repeat the command that wrote it");
  return true;
}

fs::path checksum_file_of(const fs::path& file) {
  return file.string() + ".sha256";
}

void write_checksum_beside(const fs::path& file) {
  write_file_atomically(checksum_file_of(file), checksum_line(sha256_file(file), file));
}

void write_with_checksum(const fs::path& file, std::string_view content) {
  fs::remove(file);
  write_file_atomically(checksum_file_of(file), checksum_line(sha256_hex(content), file));
  write_file_atomically(file, content);
}

RunProof prove_run(const fs::path& path) {
  const bool is_folder = fs::is_directory(path);
  RunProof proof = is_folder ? prove_folder(path) : prove_alone(path);
  const fs::path depth = (is_folder ? path : path.parent_path()) / depth_file;
  if (fs::exists(depth) && !prove_by_neighbour(depth)) {
    proof.depth_compared = false;
    proof.unproven += (proof.unproven.empty() ? "" : " ") + no_checksum_beside(depth_file);
  }
  return proof;
}

std::string no_checksum_beside(std::string_view name) {
  return fmt::format("{} has no checksum beside it; what it holds is not proven.", name);
}

}  // namespace gainlens::runfile
