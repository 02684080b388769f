#include "runfile/run_file.h"

#include "core/atomic_file.h"
#include "core/checked.h"
#include "core/error.h"
#include "runfile/coordinates.h"
#include "runfile/shard_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gainlens::runfile {
namespace {

using Scales = std::map<Axis, hdf5::Handle>;

void describe(const hdf5::Handle& object, const Attributes& attributes) {
  for (const auto& [name, text] : attributes) hdf5::write_attribute(object.get(), name, text);
}

/// The type of a coordinate in the file. Text has none here: hdf5::write_strings() chooses it.
hid_t stored_type(const CoordinateValues& values) {
  if (std::holds_alternative<std::vector<std::int8_t>>(values)) return H5T_STD_I8LE;
  if (std::holds_alternative<std::vector<std::int64_t>>(values)) return H5T_STD_I64LE;
  return std::holds_alternative<std::vector<double>>(values) ? H5T_IEEE_F64LE : H5I_INVALID_HID;
}

hid_t memory_type(std::int8_t) {
  return H5T_NATIVE_INT8;
}
hid_t memory_type(std::int64_t) {
  return H5T_NATIVE_INT64;
}
hid_t memory_type(double) {
  return H5T_NATIVE_DOUBLE;
}

/// Writes run.h5: first all groups, datasets and coordinates, then the numbers of the shards one by one.
class RunFileWriter {
 public:
  RunFileWriter(const hdf5::Handle& file, const Request& request, std::string_view program_version)
      : request_(request), file_(file) {
    hdf5::write_attribute(file_.get(), "format", run_format);
    hdf5::write_attribute(file_.get(), "format_version", run_format_version);
    describe(file_, attributes_of_run(request, program_version));
    describe(hdf5::write_strings(file_.get(), "request", {request.to_json().dump()}, {}), attributes_of_request());
    const std::vector<Axis> axes = root_axes(request);
    for (const Axis axis : axes) scales_.emplace(axis, write_scale(file_, axis, 0));
    for (const Coordinate* coordinate : coordinates_on(axes, Group::summary, request)) {
      coordinates_.emplace(coordinate->name, write_coordinate(file_, *coordinate, Group::summary, request.lengths));
    }
    for (const Group group : groups_of_all_lengths) {
      if (holds(group)) add_group(file_, std::string(name_of(group)), group, request.lengths.front());
    }
    if (holds(Group::queries)) {
      const hdf5::Handle queries = hdf5::create_group(file_.get(), std::string(name_of(Group::queries)));
      for (const std::int64_t length : request.lengths)
        add_group(queries, std::to_string(length), Group::queries, length);
    }
  }

  void write_complete(const std::map<ShardKey, std::filesystem::path>& shards) {
    std::vector<std::int8_t> complete;
    for (const std::int64_t length : request_.lengths) {
      for (std::int64_t sample = 0; sample < request_.samples; ++sample)
        complete.push_back(shards.contains({length, sample}));
    }
    const hdf5::Handle dataset = hdf5::create_dataset(
        file_.get(), "complete", {H5T_STD_I8LE, {std::ssize(request_.lengths), request_.samples}, {}});
    hdf5::write(dataset, H5T_NATIVE_INT8, complete.data());
    describe(dataset, attributes_of_complete(request_));
    attach(dataset, {Axis::length, Axis::sample}, scales_);
  }

  void add_shard(const ShardKey& key, const hdf5::Handle& shard) {
    const auto position =
        std::lower_bound(request_.lengths.begin(), request_.lengths.end(), key.length) - request_.lengths.begin();
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_)) continue;
      const hdf5::Handle from = open_shard_dataset(shard, info, request_, key.length);
      const hdf5::Handle to =
          hdf5::open_dataset(file_.get(), info.path(key.length), run_layout(info, request_, key.length));
      if (info.group == Group::queries) {
        hdf5::copy_chunks(from, to, key.sample);
      } else {
        copy_box(info, from, to, {position, key.sample}, key.length);
      }
    }
  }

 private:
  bool holds(Group group) const {
    return std::any_of(schema().begin(), schema().end(),
                       [&](const DatasetInfo& info) { return info.group == group && info.present(request_); });
  }

  hdf5::Handle write_scale(const hdf5::Handle& folder, Axis axis, std::int64_t length) const {
    const std::vector<std::int64_t> values = axis_values(axis, request_, length);
    hdf5::Handle scale =
        hdf5::create_dataset(folder.get(), std::string(name_of(axis)), {H5T_STD_I64LE, {std::ssize(values)}, {}});
    hdf5::write(scale, H5T_NATIVE_INT64, values.data());
    hdf5::make_scale(scale, std::string(name_of(axis)));
    describe(scale, attributes_of(axis));
    return scale;
  }

  /// @param group    Group::summary also stands for the root
  /// @param lengths  those of the length axis, or the one of /queries/<T>
  hdf5::Handle write_coordinate(const hdf5::Handle& folder, const Coordinate& coordinate, Group group,
                                std::span<const std::int64_t> lengths) const {
    const std::string name(coordinate.name);
    const CoordinateValues values = coordinate.values(request_, lengths);
    const hdf5::Layout layout = coordinate_layout(coordinate, values, group, request_);
    hdf5::Handle dataset = std::visit(
        [&]<typename T>(const std::vector<T>& entries) {
          if constexpr (std::is_same_v<T, std::string>) {
            return hdf5::write_strings(folder.get(), name, entries, layout.shape);
          } else {
            hdf5::Handle made = hdf5::create_dataset(folder.get(), name, layout);
            hdf5::write(made, memory_type(T{}), entries.data());
            return made;
          }
        },
        values);
    describe(dataset, attributes_of(coordinate));
    attach(dataset, coordinate.axes_in(group), scales_);
    return dataset;
  }

  static void attach(const hdf5::Handle& dataset, const std::vector<Axis>& axes, const Scales& scales) {
    for (unsigned i = 0; i < axes.size(); ++i) hdf5::attach_scale(dataset, scales.at(axes[i]), i);
  }

  /// Adds a group with its datasets. Every scale and every other coordinate that they use gets a second name in the
  /// group, because readers look there for coordinates. What depends on the length is made anew in a group of one
  /// length.
  void add_group(const hdf5::Handle& parent, const std::string& name, Group group, std::int64_t length) {
    const hdf5::Handle folder = hdf5::create_group(parent.get(), name);
    const std::vector<Axis> used = axes_of_group(group, request_);
    for (const Axis axis : used) {
      if (axis == Axis::query) {
        scales_.insert_or_assign(axis, write_scale(folder, axis, length));
      } else {
        hdf5::hard_link(scales_.at(axis), folder.get(), std::string(name_of(axis)));
      }
    }
    for (const Coordinate* coordinate : coordinates_on(used, group, request_)) {
      if (coordinate->axes_in(group) == coordinate->axes) {
        hdf5::hard_link(coordinates_.at(coordinate->name), folder.get(), std::string(coordinate->name));
      } else {
        write_coordinate(folder, *coordinate, group, std::array{length});
      }
    }
    for (const DatasetInfo& info : schema()) {
      if (info.group != group || !info.present(request_)) continue;
      const hdf5::Handle dataset = hdf5::create_dataset(folder.get(), info.name, run_layout(info, request_, length));
      describe(dataset, attributes_of(info, request_));
      attach(dataset, info.run_axes(), scales_);
    }
  }

  void copy_box(const DatasetInfo& info, const hdf5::Handle& from, const hdf5::Handle& to, hdf5::Shape offset,
                std::int64_t length) const {
    const hdf5::Shape shape = info.shard_shape(request_, length);
    hdf5::Shape count = {1, 1};
    count.insert(count.end(), shape.begin(), shape.end());
    offset.resize(count.size(), 0);
    if (info.kind == Kind::text) {
      const hdf5::Shape start(shape.size(), 0);
      hdf5::write_strings_box(to, offset, count, hdf5::read_strings_box(from, start, shape, max_text_bytes));
      return;
    }
    const hid_t type = stored_type(info, request_);
    std::vector<char> bytes(static_cast<std::size_t>(checked_elements(shape, info.name)) * H5Tget_size(type));
    hdf5::read(from, type, bytes.data());
    hdf5::write_box(to, offset, count, type, bytes.data());
  }

  const Request& request_;
  const hdf5::Handle& file_;
  Scales scales_;
  std::map<std::string_view, hdf5::Handle> coordinates_;  // those at the root
};

hdf5::Handle open_for_combining(const std::filesystem::path& path, const Request& request, const ShardKey& key) {
  try {
    return open_shard(path, request, key);
  } catch (const hdf5::Error& error) {
    throw_invalid("{}: cannot be read: {}; delete it and repeat the command, which computes it again", path.string(),
                  error.what());
  }
}

}  // namespace

hdf5::Layout run_layout(const DatasetInfo& info, const Request& request, std::int64_t length) {
  hdf5::Layout layout = shard_layout(info, request, length);
  layout.shape = info.run_shape(request, length);
  if (!layout.chunk.empty()) layout.chunk.insert(layout.chunk.begin(), 1);
  return layout;
}

hdf5::Layout coordinate_layout(const Coordinate& coordinate, const CoordinateValues& values, Group group,
                               const Request& request) {
  hdf5::Layout layout{stored_type(values), {}, {}};
  for (const Axis axis : coordinate.axes_in(group)) layout.shape.push_back(axis_size(axis, request, 0));
  return layout;
}

void write_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards, std::string_view program_version) {
  try {
    hdf5::write_file(path, [&](const hdf5::Handle& file) {
      RunFileWriter writer(file, request, program_version);
      writer.write_complete(shards);
      for (const auto& [key, shard] : shards) writer.add_shard(key, open_for_combining(shard, request, key));
    });
    flush_to_disk(path);
  } catch (const hdf5::Error& error) {
    throw_run_failed("{}: cannot be written: {}; the shards are kept: make room and repeat the command", path.string(),
                     error.what());
  }
}

}  // namespace gainlens::runfile
