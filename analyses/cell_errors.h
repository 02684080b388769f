#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "analyses/selection.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gainlens::analyses {

/// The gain theory for one head, with its own K, n_eff and S over all chunks, and its own lambda.
struct CellError {
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  double max_relative_error;
  double max_constant_error;
};

/// The gain theory head by head, over the deep layers: the mean over heads may hide differences.
struct CellErrors {
  std::vector<CellError> cells;  ///< layer by layer
  std::size_t left_out;          ///< number of heads without a lambda, or without a value at some length
  double median_error;
  double median_constant_error;
  CellError worst;
  std::size_t better_than_constant;  ///< number of heads whose largest error is below that of the constant
};

/// Missing with one length, or if no head has a fit.
Maybe<CellErrors> cell_errors(const runfile::RunReader& reader, const Options& options);

OrderedJson to_json(const CellErrors& errors);

}  // namespace gainlens::analyses
