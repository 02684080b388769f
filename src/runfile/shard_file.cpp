#include "runfile/shard_file.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/file_descriptor.h"
#include "core/json.h"
#include "core/sha256.h"
#include "runfile/checksums.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace gainlens::runfile {
namespace {

constexpr const char* shard_format = "gainlens-shard";

/// What a shard's numbers depend on: the request without the lengths and samples that may still grow.
std::string identity(const Request& request) {
  Json json = request.to_json();
  json.erase("lengths");
  json.erase("samples");
  return sha256_hex(json.dump());
}

std::string shard_path(const DatasetInfo& info) {
  return fmt::format("{}/{}", name_of(info.group), info.name);
}

void write_datasets(const hdf5::Handle& file, const Request& request, const ShardKey& key, const ShardResult& result) {
  hdf5::write_attribute(file.get(), "format", shard_format);
  hdf5::write_attribute(file.get(), "format_version", run_format_version);
  hdf5::write_attribute(file.get(), "length", key.length);
  hdf5::write_attribute(file.get(), "sample", key.sample);
  hdf5::write_attribute(file.get(), "request", identity(request));
  std::map<Group, hdf5::Handle> folders;
  for (const Group group : groups) folders.emplace(group, hdf5::create_group(file.get(), std::string(name_of(group))));
  for (const DatasetInfo& info : schema()) {
    if (!info.present(request)) continue;
    const hdf5::Handle& folder = folders.at(info.group);
    if (info.kind == Kind::text) {
      hdf5::write_strings(folder.get(), info.name, result.sink_text, info.shard_shape(request, key.length));
      continue;
    }
    const hdf5::Handle dataset = hdf5::create_dataset(folder.get(), info.name, shard_layout(info, request, key.length));
    hdf5::write(dataset, H5T_NATIVE_DOUBLE, entries(result, info.group).at(info.name).values.data());
  }
}

/// The number as a file of this precision gives it back.
double stored(double value, bool float64) {
  return float64 ? value : static_cast<double>(static_cast<float>(value));
}

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Refuses a finite number that the file's precision would store as infinity.
void check_range(const Request& request, const ShardKey& key, const ShardResult& result) {
  if (stores_float64(request)) return;
  constexpr double most = std::numeric_limits<float>::max();
  for (const Group group : groups) {
    for (const auto& [name, array] : entries(result, group)) {
      const auto beyond = std::find_if(array.values.begin(), array.values.end(),
                                       [](double value) { return std::isfinite(value) && std::abs(value) > most; });
      if (beyond == array.values.end()) continue;
      throw_run_failed(
          "{}/{} of T {} sample {} is {:.3g}, beyond what float32 holds; sweep with --dtype float64 into another "
          "folder",
          name_of(group), name, key.length, key.sample, *beyond);
    }
  }
}

/// Reads the shard back and compares it with the result, because run.h5 is proven against the shard later.
void prove_datasets(const std::filesystem::path& path, const Request& request, const ShardKey& key,
                    const ShardResult& result) {
  const hdf5::Handle shard = open_shard(path, request, key);
  for (const DatasetInfo& info : schema()) {
    if (!info.present(request)) continue;
    if (info.kind == Kind::text) {
      if (hdf5::read_strings(shard.get(), shard_path(info), info.shard_shape(request, key.length), max_text_bytes) !=
          result.sink_text)
        throw hdf5::Error(fmt::format("dataset '{}' does not read back as it was written", shard_path(info)));
      continue;
    }
    const std::vector<double>& values = entries(result, info.group).at(info.name).values;
    std::vector<double> found(values.size());
    hdf5::read(open_shard_dataset(shard, info, request, key.length), H5T_NATIVE_DOUBLE, found.data());
    const bool float64 = info.kind == Kind::integer || stores_float64(request);
    const bool same = std::equal(values.begin(), values.end(), found.begin(), [float64](double value, double back) {
      return same_bits(stored(value, float64), back);
    });
    if (!same) throw hdf5::Error(fmt::format("dataset '{}' does not read back as it was written", shard_path(info)));
  }
}

std::pair<ShardKey, std::string> parse_line(std::string_view line, const std::string& where) {
  const Json json = parse_json(line, where);
  CHECK(json.is_object() && json.size() == 3 && json.contains("length") && json.contains("sample") &&
            json.contains("sha256") && json["length"].is_number_integer() && json["sample"].is_number_integer() &&
            json["sha256"].is_string() && is_sha256(json["sha256"].get_ref<const std::string&>()),
        "{}: is not a line of a manifest: '{}'", where, printable(line));
  return {{json["length"], json["sample"]}, json["sha256"]};
}

std::string line_of(const ShardKey& key, const std::string& sha256) {
  return Json{{"length", key.length}, {"sample", key.sample}, {"sha256", sha256}}.dump() + "\n";
}

/// The lines of a manifest, without an incomplete last one.
struct WholeLines {
  std::map<ShardKey, std::string> digests;
  std::size_t bytes = 0;
};

WholeLines whole_lines(const std::string& text, const std::filesystem::path& path) {
  WholeLines whole;
  int number = 1;
  for (std::size_t end; (end = text.find('\n', whole.bytes)) != std::string::npos; whole.bytes = end + 1, ++number) {
    const bool last = end + 1 == text.size();
    try {
      const auto [key, digest] = parse_line(std::string_view(text).substr(whole.bytes, end - whole.bytes),
                                            fmt::format("{}, line {}", path.string(), number));
      whole.digests.insert_or_assign(key, digest);
    } catch (const InvalidArgument& error) {
      // Some file systems keep the length of an incomplete line and fill it with zeros. Only the last line can be
      // incomplete.
      if (last) break;
      throw_invalid("{}; delete the file and repeat the command: the shards are then checked and listed again",
                    error.what());
    }
  }
  return whole;
}

}  // namespace

std::string shard_file_name(const ShardKey& key) {
  return fmt::format("T{}-S{}.h5", key.length, key.sample);
}

std::optional<ShardKey> parse_shard_file_name(const std::string& name) {
  long long length = 0;
  long long sample = 0;
  if (std::sscanf(name.c_str(), "T%18lld-S%18lld.h5", &length, &sample) != 2) return std::nullopt;
  const ShardKey key{length, sample};
  if (shard_file_name(key) != name) return std::nullopt;
  return key;
}

hid_t stored_type(const DatasetInfo& info, const Request& request) {
  if (info.kind == Kind::integer) return H5T_STD_I64LE;
  if (info.kind == Kind::text) return hdf5::text_type();
  return stores_float64(request) ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
}

hdf5::Layout shard_layout(const DatasetInfo& info, const Request& request, std::int64_t length) {
  hdf5::Layout layout{stored_type(info, request), info.shard_shape(request, length), info.shard_chunk(request, length)};
  if (info.kind == Kind::integer) layout.fill = -1;
  return layout;
}

void write_shard(const std::filesystem::path& path, const Request& request, const ShardKey& key,
                 const ShardResult& result) {
  const std::string mismatch = result_mismatch(result, request, key.length);
  ASSERT(mismatch.empty(), "shard of length {} sample {}: {}", key.length, key.sample, mismatch);
  check_range(request, key, result);
  try {
    hdf5::write_file(path, [&](const hdf5::Handle& file) { write_datasets(file, request, key, result); });
    flush_to_disk(path);
    prove_datasets(path, request, key, result);
  } catch (const hdf5::Error& error) {
    throw_run_failed("{}: cannot be written: {}; finished shards are kept: make room and repeat the command to resume",
                     path.string(), error.what());
  }
}

hdf5::Handle open_shard(const std::filesystem::path& path, const Request& request, const ShardKey& key) {
  hdf5::Handle file = hdf5::open_file(path);
  if (hdf5::read_text_attribute(file.get(), "format") != shard_format ||
      hdf5::read_integer_attribute(file.get(), "format_version") != run_format_version) {
    throw hdf5::Error("it is not a shard of this format version");
  }
  if (hdf5::read_integer_attribute(file.get(), "length") != key.length ||
      hdf5::read_integer_attribute(file.get(), "sample") != key.sample) {
    throw hdf5::Error("it holds another length or sample than its name says");
  }
  if (hdf5::read_text_attribute(file.get(), "request") != identity(request))
    throw hdf5::Error("it was made for another request");
  for (const DatasetInfo& info : schema()) {
    if (info.present(request)) open_shard_dataset(file, info, request, key.length);
  }
  return file;
}

hdf5::Handle open_shard_dataset(const hdf5::Handle& shard, const DatasetInfo& info, const Request& request,
                                std::int64_t length) {
  return hdf5::open_dataset(shard.get(), shard_path(info), shard_layout(info, request, length));
}

std::map<ShardKey, std::string> read_manifest(const std::filesystem::path& path) {
  return whole_lines(read_text_file(path), path).digests;
}

void check_listed(const std::map<ShardKey, std::string>& digests, const Request& request,
                  const std::filesystem::path& path) {
  for (const auto& [key, digest] : digests) {
    CHECK(request.holds(key),
          "{}: lists the chunk of {} tokens, sample {}, which is not one of this run; delete the file and repeat the "
          "sweep command: the shards are then checked and listed again",
          printable(path.string()), key.length, key.sample);
  }
}

Manifest::Manifest(std::filesystem::path path) : path_(std::move(path)) {
  const std::string text = std::filesystem::exists(path_) ? read_text_file(path_) : std::string();
  WholeLines whole = whole_lines(text, path_);
  digests_ = std::move(whole.digests);
  if (text.empty() || whole.bytes != text.size())
    write_file_atomically(path_, std::string_view(text).substr(0, whole.bytes));
}

void Manifest::append(const ShardKey& key, const std::string& sha256) {
  const std::string line = line_of(key, sha256);
  FileDescriptor file(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  struct stat before {};
  const bool opened = file.get() >= 0 && ::fstat(file.get(), &before) == 0;
  if (!opened || !write_all(file, line) || ::fsync(file.get()) != 0 || !file.close()) {
    const std::string why = system_reason();
    // Remove the part that was written: otherwise the next line would be joined to it.
    [[maybe_unused]] const bool restored = opened && ::truncate(path_.c_str(), before.st_size) == 0;
    throw_run_failed("{}: cannot be written: {}; finished shards are kept: make room and repeat the command to resume",
                     path_.string(), why);
  }
  digests_.insert_or_assign(key, sha256);
}

void Manifest::put_in_order() {
  std::string text;
  for (const auto& [key, sha256] : digests_) text += line_of(key, sha256);
  if (read_text_file(path_) != text) write_file_atomically(path_, text);
}

}  // namespace gainlens::runfile
