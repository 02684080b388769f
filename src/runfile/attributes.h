#pragma once

#include "runfile/coordinates.h"
#include "runfile/request.h"
#include "runfile/schema.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::runfile {

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
