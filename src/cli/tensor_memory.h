#pragma once

namespace gainlens::cli {

/// Lets tensors of 1 MiB or more take their memory from a BlockCache (core/block_cache.h), as long as the program runs.
/// Every layer allocates and frees tensors of tens of megabytes. The C library would either get each of them anew from
/// the system, which clears it page by page, or keep all of them, in pieces that do not fit the next tensor: then the
/// process needs half as much again as its tensors. Called once, before the first tensor is made.
void keep_tensor_memory();

}  // namespace gainlens::cli
