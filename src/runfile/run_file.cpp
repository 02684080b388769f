#include "runfile/run_file.h"

#include "core/atomic_file.h"
#include "core/checked.h"
#include "core/error.h"
#include "runfile/shard_file.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::runfile {
namespace {

using Scales = std::map<Axis, hdf5::Handle>;

/// run.h5 while it is written: first the whole frame, then the shards one by one.
class RunFileWriter {
 public:
  RunFileWriter(const hdf5::Handle& file, const Request& request) : request_(request), file_(file) {
    hdf5::write_attribute(file_.get(), "format", run_format);
    hdf5::write_attribute(file_.get(), "format_version", run_format_version);
    hdf5::write_strings(file_.get(), "request", {request.to_json().dump()}, {});
    for (const Axis axis : root_axes) scales_.emplace(axis, write_scale(file_, axis, 0));
    const hdf5::Handle attention =
        hdf5::write_strings(file_.get(), "attention", request.attention, {std::ssize(request.attention)});
    attach(attention, {Axis::layer}, scales_);
    for (const Group group : {Group::summary, Group::profile, Group::values}) {
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
    hdf5::write_attribute(dataset.get(), "long_name", "1 where the chunk has been measured");
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
    return scale;
  }

  static void attach(const hdf5::Handle& dataset, const std::vector<Axis>& axes, const Scales& scales) {
    for (unsigned i = 0; i < axes.size(); ++i) hdf5::attach_scale(dataset, scales.at(axes[i]), i);
  }

  /// A group with its datasets, and in it a second name of every scale they use: readers look for coordinates beside
  /// the data.
  void add_group(const hdf5::Handle& parent, const std::string& name, Group group, std::int64_t length) {
    const hdf5::Handle folder = hdf5::create_group(parent.get(), name);
    std::vector<Axis> used;
    for (const DatasetInfo& info : schema()) {
      if (info.group != group || !info.present(request_)) continue;
      for (const Axis axis : info.run_axes()) {
        if (std::find(used.begin(), used.end(), axis) == used.end()) used.push_back(axis);
      }
    }
    for (const Axis axis : used) {
      if (axis == Axis::query) {
        scales_.insert_or_assign(axis, write_scale(folder, axis, length));
      } else {
        hdf5::hard_link(scales_.at(axis), folder.get(), std::string(name_of(axis)));
      }
    }
    for (const DatasetInfo& info : schema()) {
      if (info.group != group || !info.present(request_)) continue;
      const hdf5::Handle dataset = hdf5::create_dataset(folder.get(), info.name, run_layout(info, request_, length));
      hdf5::write_attribute(dataset.get(), "units", info.unit);
      hdf5::write_attribute(dataset.get(), "long_name", info.meaning);
      attach(dataset, info.run_axes(), scales_);
    }
  }

  void copy_box(const DatasetInfo& info, const hdf5::Handle& from, const hdf5::Handle& to, hdf5::Shape offset,
                std::int64_t length) const {
    const hdf5::Shape shape = info.shard_shape(request_, length);
    hdf5::Shape count = {1, 1};
    count.insert(count.end(), shape.begin(), shape.end());
    offset.resize(count.size(), 0);
    const hid_t type = number_type(request_);
    std::vector<char> bytes(static_cast<std::size_t>(checked_elements(shape, info.name)) * H5Tget_size(type));
    hdf5::read(from, type, bytes.data());
    hdf5::write_box(to, offset, count, type, bytes.data());
  }

  const Request& request_;
  const hdf5::Handle& file_;
  Scales scales_;
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
  hdf5::Layout layout{number_type(request), info.run_shape(request, length), info.shard_chunk(request, length)};
  if (!layout.chunk.empty()) layout.chunk.insert(layout.chunk.begin(), 1);
  return layout;
}

void write_run_file(const std::filesystem::path& path, const Request& request,
                    const std::map<ShardKey, std::filesystem::path>& shards) {
  try {
    hdf5::write_file(path, [&](const hdf5::Handle& file) {
      RunFileWriter writer(file, request);
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
