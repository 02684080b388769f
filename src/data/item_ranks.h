#pragma once

#include "data/leave_one_out.h"
#include "runfile/recommend_run.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// Ranks of the held-out items of all users, by one model or by the models of several seeds.
struct ItemRanks {
  std::vector<std::uint64_t> seeds;       ///< that rise; {0} without a column seed
  std::vector<std::vector<float>> ranks;  ///< [seed, user] from 1, the best; a half where items share ranks
  bool seeded = false;                    ///< the file has a column seed
};

/// Whether a path can be a file of ranks: its name is that of a table (delimiter_of_file), and it is no folder.
bool is_ranks_file(const std::filesystem::path& path);

/// Reads a table (RFC 4180, plain or gzipped) with the columns user, target and rank, and seed if there are several.
/// Other columns are not used. Names of users and of target items are those of the data; an apostrophe that keeps a
/// spreadsheet from taking a name for a formula may stand in front. Without a column seed the seed is 0.
/// @throws InvalidArgument  missing, unreadable; a column that is not there (those that are there are shown); malformed
///     lines; a user who is not in the split, a target that is not the held-out item of the user, a rank that is not 1
///     to the number of items in steps of a half, a user twice or not at all with a seed (the first one is named)
ItemRanks read_item_ranks(const std::filesystem::path& path, const LeaveOneOut& split, HeldOut held_out);

/// The run that such ranks would have come from: one arm without a training.
/// @param arm        its name
/// @param data_name  as data_of_request()
/// @param held_out   what was ranked; of the validation as runfile::on_validation_items() gives it
runfile::RecommendRun run_of_ranks(const ItemRanks& ranks, const LeaveOneOut& split, const std::string& arm,
                                   const std::string& data_name, HeldOut held_out = HeldOut::test);

/// The name of a file without its extensions for tables: "theirs" of "theirs.csv.gz".
std::string stem_of_table(const std::filesystem::path& path);

}  // namespace gainlens::data
