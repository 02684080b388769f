#pragma once

#include "models/decoder/decoder_config.h"
#include "models/families/config_reader.h"
#include "models/families/family.h"

namespace gainlens::models {

/// Checks the keys of a config.json that its family did not read. A key passes
/// - if its value is null
/// - if it is inert in all families or in this one, or inert by its kind (inert_keys.h)
/// - if it states what the decoder computes anyway: a size, number or switch in another spelling (`n_head` beside
///   `num_attention_heads`), or a part that this decoder does not have, at the value of its absence (`lm_head_bias`:
///   false)
/// - if it is a limit on the length of texts, or a window that `use_sliding_window` switches off
/// - if the reference reads it (reference_keys.h), and its value is that of an absent key
/// - if the reference does not read it, and it neither has a meaning that another program may compute nor looks like a
///   misspelt key of the family. Then the reader notes that it is ignored.
///
/// @param config  what was read from the other keys
/// @param by_reference  whether the reference alone reads the file. False: so does another program or the code that
///     comes with the checkpoint, and a key that the reference does not read may mean something there. It is refused
/// @throws InvalidArgument  a key states something else (the message gives both), or is unknown
void check_other_keys(ConfigReader& reader, const DecoderConfig& config, const Family& family, bool by_reference);

}  // namespace gainlens::models
