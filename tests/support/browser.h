#pragma once

#include "core/json.h"

#include <string>
#include <vector>

namespace gainlens::testing {

/// Opens a page in Chromium without a window, runs a test script in it and returns what the script left.
///
/// The page is a copy that allows the test script by its hash, beside the scripts that it allows anyway. The script is
/// the body of an async function that begins when the page is loaded and its parts are filled. It writes into
/// `results`. It can use `until(condition)`, which waits, and `move(node, x, y, event = "pointermove")`, which sends an
/// event of the pointer to a place in a node. The results also have "failure", what the script threw (null: nothing),
/// "errors", what the page's own scripts threw, and "refused", the number of times that the content policy stepped in.
/// @param flags  of Chromium, beside the usual ones
/// @throws RunFailed  Chromium is not installed, or fails
Json in_browser(const std::string& page, const std::string& script, const std::vector<std::string>& flags = {});

/// The page printed by Chromium: the bytes of a PDF. Throws as in_browser().
std::string printed_page(const std::string& page);

/// `text` with every `from` replaced.
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace gainlens::testing
