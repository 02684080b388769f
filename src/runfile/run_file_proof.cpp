
#include "core/checked.h"
#include "core/error.h"
#include "runfile/coordinates.h"
#include "runfile/hdf5_detail.h"
#include "runfile/run_file.h"
#include "runfile/run_reader.h"
#include "runfile/shard_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gainlens::runfile {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes of the file are compared with those in memory");

namespace fs = std::filesystem;
using hdf5::require;

void prove_attributes(const hdf5::Handle& object, const Attributes& attributes, const std::string& path) {
  for (const auto& [name, text] : attributes) {
    require(hdf5::read_text_attribute(object.get(), name) == text, "attribute '{}' of '{}' is not as written", name,
            path);
  }
}

/// "summary/", "queries/512/".
std::string folder_of(Group group, std::int64_t length) {
  return group == Group::queries ? fmt::format("queries/{}/", length) : fmt::format("{}/", name_of(group));
}

class FileProof {
 public:
  FileProof(const hdf5::Handle& file, const Request& request, const std::map<ShardKey, fs::path>& shards)
      : file_(file), request_(request), shards_(shards) {}

  /// Proves attributes and coordinates of each dataset, and that there are no numbers where there is no shard.
  void prove_frame(std::string_view program_version) const {
    prove_attributes(file_, attributes_of_run(request_, program_version), "/");
    prove_attributes(open_any("request"), attributes_of_request(), "request");
    const hdf5::Handle complete = hdf5::open_dataset(
        file_.get(), "complete", {H5T_STD_I8LE, {std::ssize(request_.lengths), request_.samples}, {}});
    prove_attributes(complete, attributes_of_complete(request_), "complete");
    prove_scales(complete, "complete", {Axis::length, Axis::sample}, "");
    prove_coordinates();
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_)) continue;
      const bool each_length = info.group == Group::queries;
      for (const std::int64_t length : each_length ? request_.lengths : std::vector{request_.lengths.front()}) {
        const std::string path = info.path(length);
        const hdf5::Handle dataset = open(info, length);
        prove_attributes(dataset, attributes_of(info, request_), path);
        prove_scales(dataset, path, info.run_axes(), folder_of(info.group, length));
      }
    }
    for (std::size_t place = 0; place < request_.lengths.size(); ++place) {
      for (std::int64_t sample = 0; sample < request_.samples; ++sample) {
        if (!shards_.contains({request_.lengths[place], sample}))
          prove_absent(static_cast<std::int64_t>(place), sample);
      }
    }
  }

  void prove_shard(const ShardKey& key, const hdf5::Handle& shard) {
    const auto place =
        std::lower_bound(request_.lengths.begin(), request_.lengths.end(), key.length) - request_.lengths.begin();
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_)) continue;
      const hdf5::Handle from = open_shard_dataset(shard, info, request_, key.length);
      bool same = false;
      if (info.group == Group::queries) {
        same = hdf5::has_copied_chunks(from, open(info, key.length), key.sample);
        chunks_[{&info, key.length}] += hdf5::chunk_count(from);
      } else if (info.kind == Kind::text) {
        const hdf5::Shape shape = info.shard_shape(request_, key.length);
        same = text_box(info, {place, key.sample}) ==
               hdf5::read_strings_box(from, hdf5::Shape(shape.size(), 0), shape, max_text_bytes);
      } else {
        std::vector<char> bytes(box_bytes(info));
        hdf5::read(from, stored_type(info, request_), bytes.data());
        same = bytes == box(info, {place, key.sample});
      }
      require(same, "dataset '{}' differs from the shard of length {}, sample {}", info.path(key.length), key.length,
              key.sample);
    }
  }

  /// Call it after prove_shard() of every shard. Proves that the datasets of /queries hold no chunks other than those
  /// of the shards.
  void prove_no_other_chunks() const {
    for (const auto& [dataset, expected] : chunks_) {
      const auto& [info, length] = dataset;
      require(hdf5::chunk_count(open(*info, length)) == expected, "dataset '{}' holds chunks that belong to no shard",
              info->path(length));
    }
  }

 private:
  hdf5::Handle open(const DatasetInfo& info, std::int64_t length) const {
    return hdf5::open_dataset(file_.get(), info.path(length), run_layout(info, request_, length));
  }

  /// Bytes that one shard has in a dataset. Shapes outside /queries do not depend on the length.
  std::size_t box_bytes(const DatasetInfo& info) const {
    const auto elements = checked_elements(info.shard_shape(request_, request_.lengths.front()), info.name);
    return static_cast<std::size_t>(elements) * H5Tget_size(stored_type(info, request_));
  }

  /// The size of the box that one chunk has in a dataset.
  hdf5::Shape box_size(const DatasetInfo& info) const {
    const hdf5::Shape shape = info.shard_shape(request_, request_.lengths.front());
    hdf5::Shape count = {1, 1};
    count.insert(count.end(), shape.begin(), shape.end());
    return count;
  }

  /// What [length, sample] of a dataset of numbers or integers holds.
  std::vector<char> box(const DatasetInfo& info, hdf5::Shape offset) const {
    const hdf5::Shape count = box_size(info);
    offset.resize(count.size(), 0);
    std::vector<char> bytes(box_bytes(info));
    hdf5::read_box(open(info, request_.lengths.front()), offset, count, stored_type(info, request_), bytes.data());
    return bytes;
  }

  /// The same of a dataset of text.
  std::vector<std::string> text_box(const DatasetInfo& info, hdf5::Shape offset) const {
    const hdf5::Shape count = box_size(info);
    offset.resize(count.size(), 0);
    return hdf5::read_strings_box(open(info, request_.lengths.front()), offset, count, max_text_bytes);
  }

  /// Proves the coordinates at the root and in each group. RunReader has compared the values of the scales.
  void prove_coordinates() const {
    const std::vector<Axis> at_root = root_axes(request_);
    for (const Axis axis : at_root)
      prove_attributes(open_any(name_of(axis)), attributes_of(axis), std::string(name_of(axis)));
    for (const Coordinate* coordinate : coordinates_on(at_root, Group::summary, request_))
      prove_coordinate(*coordinate, "", Group::summary, request_.lengths);
    for (const Group group : groups) {
      const bool one_length = group == Group::queries;
      const std::vector<Axis> used = axes_of_group(group, request_);
      if (used.empty()) continue;
      for (const std::int64_t length : one_length ? request_.lengths : std::vector{request_.lengths.front()}) {
        const std::string folder = folder_of(group, length);
        if (one_length) prove_attributes(open_any(folder + "query"), attributes_of(Axis::query), folder + "query");
        for (const Coordinate* coordinate : coordinates_on(used, group, request_)) {
          if (coordinate->axes_in(group) == coordinate->axes) {
            prove_second_name(folder, coordinate->name);
          } else {
            prove_coordinate(*coordinate, folder, group, std::array{length});
          }
        }
      }
    }
  }

  hdf5::Handle open_any(std::string_view path) const { return hdf5::open_any(file_.get(), std::string(path)); }

  /// @param folder   "" for the root
  /// @param group    Group::summary also stands for the root
  /// @param lengths  those of the length axis, or the one of /queries/<T>
  void prove_coordinate(const Coordinate& coordinate, const std::string& folder, Group group,
                        std::span<const std::int64_t> lengths) const {
    const std::string path = folder + std::string(coordinate.name);
    const CoordinateValues values = coordinate.values(request_, lengths);
    const hdf5::Layout layout = coordinate_layout(coordinate, values, group, request_);
    const bool same = std::visit(
        [&]<typename T>(const std::vector<T>& expected) {
          if constexpr (std::is_same_v<T, std::string>) {
            constexpr std::uint64_t max_bytes = 64u << 20;
            return hdf5::read_strings(file_.get(), path, layout.shape, max_bytes) == expected;
          } else {
            std::vector<T> found(expected.size());
            // The bytes are compared as they are stored: they need no conversion on a little-endian machine.
            hdf5::read(hdf5::open_dataset(file_.get(), path, layout), layout.type, found.data());
            return found == expected;
          }
        },
        values);
    require(same, "coordinate '{}' is not as written", path);
    const hdf5::Handle dataset = open_any(path);
    prove_attributes(dataset, attributes_of(coordinate), path);
    prove_scales(dataset, path, coordinate.axes_in(group), folder);
  }

  /// Proves that the name in the folder and the name at the root are names of one object.
  void prove_second_name(const std::string& folder, std::string_view name) const {
    const std::string path = folder + std::string(name);
    require(hdf5::address_of(file_.get(), path) == hdf5::address_of(file_.get(), std::string(name)),
            "'{}' is not '/{}'", path, name);
  }

  /// @param folder  the group that holds second names of the scales, with a slash at its end; empty: the root, with
  ///     their first names
  void prove_scales(const hdf5::Handle& dataset, const std::string& path, const std::vector<Axis>& axes,
                    const std::string& folder) const {
    for (unsigned i = 0; i < axes.size(); ++i) {
      require(hdf5::has_scale(dataset, i, hdf5::address_of(file_.get(), folder + std::string(name_of(axes[i])))),
              "axis {} of dataset '{}' lost its scale", i, path);
    }
  }

  void prove_absent(std::int64_t place, std::int64_t sample) const {
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_) || info.group == Group::queries) continue;
      require(holds_nothing(info, {place, sample}), "dataset '{}' has numbers where there is no shard",
              info.path(request_.lengths.front()));
    }
  }

  bool holds_nothing(const DatasetInfo& info, const hdf5::Shape& offset) const {
    if (info.kind != Kind::text) return box(info, offset) == nothing(info);
    const std::vector<std::string> texts = text_box(info, offset);
    return std::all_of(texts.begin(), texts.end(), [](const std::string& text) { return text.empty(); });
  }

  /// The bytes of a place where nothing was written: -1, or NaN in the precision of the file.
  std::vector<char> nothing(const DatasetInfo& info) const {
    const std::size_t size = box_bytes(info);
    if (info.kind == Kind::integer) return std::vector<char>(size, '\xff');  // -1 in two's complement
    const double wide = std::numeric_limits<double>::quiet_NaN();
    const float narrow = std::numeric_limits<float>::quiet_NaN();
    const bool float64 = stores_float64(request_);
    const std::size_t width = float64 ? sizeof wide : sizeof narrow;
    std::vector<char> bytes(size);
    for (std::size_t at = 0; at < size; at += width)
      std::memcpy(&bytes[at], float64 ? static_cast<const void*>(&wide) : &narrow, width);
    return bytes;
  }

  const hdf5::Handle& file_;
  const Request& request_;
  const std::map<ShardKey, fs::path>& shards_;
  std::map<std::pair<const DatasetInfo*, std::int64_t>, std::uint64_t> chunks_;  // of all shards, by dataset and length
};

/// Proves what every reader looks at first: the request and the mask /complete.
void prove_reading(const fs::path& path, const Request& request, const std::map<ShardKey, fs::path>& shards) {
  const RunReader reader = RunReader::open(path);
  require(reader.request().to_json() == request.to_json(), "'/request' is not as written");
  for (std::size_t place = 0; place < request.lengths.size(); ++place) {
    for (std::int64_t sample = 0; sample < request.samples; ++sample) {
      require(reader.complete(place, sample) == shards.contains({request.lengths[place], sample}),
              "'/complete' is not as written");
    }
  }
}

}  // namespace

void prove_run_file(const fs::path& path, const Request& request, const std::map<ShardKey, fs::path>& shards,
                    std::string_view program_version) {
  try {
    prove_reading(path, request, shards);
    const hdf5::Handle file = hdf5::open_file(path);
    FileProof proof(file, request, shards);
    proof.prove_frame(program_version);
    for (const auto& [key, shard] : shards) proof.prove_shard(key, open_shard(shard, request, key));
    proof.prove_no_other_chunks();
  } catch (const std::runtime_error& error) {  // hdf5::Error, and InvalidArgument of the reader
    throw_run_failed(
        "{}: does not read back as it was written: {}; the shards are kept: check the disk and repeat the command",
        printable(path.string()), printable(error.what(), 300));
  }
}

}  // namespace gainlens::runfile
