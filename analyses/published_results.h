#pragma once

#include "core/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Where figures were published.
struct PublishedSource {
  std::string file;  ///< of data/published, without .csv
  std::string name;  ///< "RecBoard"
  std::string title;
  std::string address;
};

/// The figures of one model on one data set. All have one protocol: leave-one-out, the whole catalogue ranked, the
/// items that a user has seen left out.
struct PublishedResult {
  struct Figure {
    double mean = 0;
    std::optional<double> deviation;  ///< over the seeds
  };
  std::string source;    ///< PublishedSource::name
  std::string data_set;  ///< as gainlens calls it: "Beauty"
  std::int64_t users = 0, items = 0, interactions = 0;
  std::string split;                  ///< checksum; empty: not known
  std::string model;                  ///< "BSARec (CE)"
  std::optional<std::int64_t> seeds;  ///< nothing: not stated
  Figure hit, gain;                   ///< hr@10, ndcg@10
};

/// Those of data/published, which are compiled into the library.
const std::vector<PublishedSource>& published_sources();
const std::vector<PublishedResult>& published_results();
/// @param name  of a PublishedSource
const PublishedSource& published_source(std::string_view name);

/// What was published for some data, the best NDCG@10 first: data with as many users, items and interactions, and with
/// the same split where that of the figures is known.
/// @param split  the checksum of the data
std::vector<PublishedResult> published_for(std::int64_t users, std::int64_t items, std::int64_t interactions,
                                           std::string_view split);

/// An array of what was published, for --json and summary.json.
OrderedJson to_json(const std::vector<PublishedResult>& results);

/// Reads tables as those of data/published.
/// @param text   a table of results
/// @param where  names it in messages
/// @throws InvalidArgument  other columns; a number that is none
std::vector<PublishedResult> parse_published_results(std::string_view text, const std::string& source,
                                                     const std::string& where);

}  // namespace gainlens::analyses
