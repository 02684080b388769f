#include "runfile/stopped_sweep.h"

#include "core/counted.h"
#include "core/error.h"
#include "core/scratch_folder.h"
#include "runfile/manifest.h"
#include "runfile/run_file.h"
#include "runfile/run_log.h"
#include "runfile/shard_file.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>

namespace gainlens::runfile {

namespace fs = std::filesystem;

std::optional<StoppedSweep> open_stopped_sweep(const fs::path& folder) {
  const fs::path request_file = folder / request_file_name, list = folder / "manifest.jsonl";
  if (fs::exists(folder / run_file_name) || !fs::exists(request_file) || !fs::exists(list)) return std::nullopt;
  RunProof proof = prove_run(folder);
  if (proof.shards == 0) return std::nullopt;
  const Request request = Request::from_json(read_json_file(request_file), printable(request_file.string()));
  std::map<ShardKey, fs::path> shards;
  for (const auto& [key, digest] : read_manifest(list)) shards.emplace(key, folder / "shards" / shard_file_name(key));
  const ScratchFolder scratch(fs::temp_directory_path(), "gainlens-stopped-sweep-");
  const fs::path file = scratch.path() / run_file_name;
  write_run_file(file, request, shards, RunLog::read(folder).last_version());
  RunReader reader = RunReader::open(file, folder / run_file_name);  // which keeps it open
  proof.unproven = fmt::format(
      "The sweep was stopped: {} of {} are there. Repeat its gainlens sweep command with the same --out, which "
      "measures the rest.",
      shards.size(), counted(std::ssize(request.lengths) * request.samples, "chunk"));
  return StoppedSweep{std::move(proof), std::move(reader)};
}

}  // namespace gainlens::runfile
