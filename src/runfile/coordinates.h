#pragma once

#include "runfile/request.h"
#include "runfile/schema.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gainlens::runfile {

/// Unit and meaning of a dimension scale.
struct AxisWords {
  std::string_view unit;
  std::string_view meaning;
};
AxisWords words_of(Axis axis);

/// Row-major values of a coordinate variable, in the type in which they are stored.
using CoordinateValues =
    std::variant<std::vector<std::int8_t>, std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>>;

/// A coordinate variable of run.h5 besides the dimension scales: what is known of the entries of some axes. It follows
/// from the request alone, never from a measured number. It lies at the root, and under the same name in every group
/// that has all of its axes. A group /queries/<T> has one length, so coordinates have no length axis there.
/// Source: docs/run-file.md, "Coordinates".
struct Coordinate {
  std::string_view name;
  std::vector<Axis> axes;
  std::string_view unit;  ///< empty for text
  std::string_view meaning;
  std::string_view presence;  ///< the runs that have it, in words
  bool (*present)(const Request& request);
  /// @param lengths  those on the length axis: all of the request's, or the one of /queries/<T>
  CoordinateValues (*values)(const Request& request, std::span<const std::int64_t> lengths);

  /// The axes in a group: without length in Group::queries.
  std::vector<Axis> axes_in(Group group) const;
  /// Whether datasets on these axes can have it as a coordinate: whether it has no other axis.
  bool fits(std::span<const Axis> axes_of_dataset, Group group) const;
};

/// The table of all coordinates, in the order in which files are written.
std::span<const Coordinate> coordinates();

/// The axes that the datasets of a group have, in the order in which they come.
std::vector<Axis> axes_of_group(Group group, const Request& request);

/// The coordinates of a request that fit the axes.
std::vector<const Coordinate*> coordinates_on(std::span<const Axis> axes, Group group, const Request& request);

/// Text attributes of an object of run.h5: names and texts, in the order in which they are written. Their names are
/// those of the CF conventions for netCDF. Source: docs/run-file.md, "Attributes".
using Attributes = std::vector<std::pair<std::string, std::string>>;

/// What the file says about itself at the root.
/// @param program_version  of the gainlens that writes the file; empty: not known, and left out
Attributes attributes_of_run(const Request& request, std::string_view program_version);

Attributes attributes_of(Axis axis);
Attributes attributes_of(const Coordinate& coordinate);
/// `units`, `long_name`, `coordinates`, and a `comment` where a number holds by construction.
Attributes attributes_of(const DatasetInfo& info, const Request& request);
Attributes attributes_of_complete(const Request& request);
Attributes attributes_of_request();

/// A sentence about numbers that follow from the attention window and not from the model; empty for most datasets.
std::string_view comment_on(const DatasetInfo& info);

}  // namespace gainlens::runfile
