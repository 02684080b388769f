#include "support/browser.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "reports/figures/program.h"
#include "reports/page/page_style.h"
#include "support/shared_data.h"

namespace gainlens::testing {
namespace {

/// Before everything else on the page: it hears of what its scripts do wrong.
constexpr std::string_view before = R"js(
const results = {failure: null, errors: [], refused: 0};
addEventListener('error', (event) => results.errors.push(String(event.message)));
addEventListener('unhandledrejection', (event) => results.errors.push(String(event.reason)));
document.addEventListener('securitypolicyviolation', () => ++results.refused);
const until = async (condition) => {
  for (let i = 0; i < 500 && !condition(); ++i) await new Promise((then) => setTimeout(then, 10));
  if (!condition()) throw new Error('waited in vain for ' + condition);
};
const move = (node, x, y, type = 'pointermove') => {
  const box = node.getBoundingClientRect();
  node.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, bubbles: true}));
};
addEventListener('load', async () => {
  try {
    await until(() => !document.querySelector('[data-part][hidden]'));
    await new Promise((then) => setTimeout(then, 50));
)js";

/// What is left is plain ASCII without markup, which the printed document holds as it is.
constexpr std::string_view after = R"js(
  } catch (error) {
    results.failure = String(error);
  }
  const left = document.createElement('pre');
  left.id = 'results';
  left.textContent = JSON.stringify(results).replace(/[<>&\u007f-\uffff]/g,
    (sign) => '\\u' + sign.charCodeAt(0).toString(16).padStart(4, '0'));
  document.body.append(left);
});
)js";

std::string chromium(const std::string& page, const std::vector<std::string>& flags, const std::string& made = {}) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "page.html", page);
  std::vector<std::string> words = {"chromium",          "--headless",
                                    "--no-sandbox",  // root has none
                                    "--disable-gpu",     "--disable-dev-shm-usage",
                                    "--hide-scrollbars", "--user-data-dir=" + (folder.path() / "profile").string()};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back("file://" + (folder.path() / "page.html").string());
  std::string out = reports::run_program(words, folder.path(), {}, "chromium (Debian: apt-get install chromium)");
  return made.empty() ? out : read_text_file(folder.path() / made);
}

}  // namespace

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

Json in_browser(const std::string& page, const std::string& script, const std::vector<std::string>& flags) {
  const std::string whole = std::string(before) + script + std::string(after);
  const std::string own = "script-src '" + reports::script_source(reports::page_script());
  CHECK(page.find(own) != std::string::npos, "the page does not allow its script");
  std::string copy =
      replaced(page, own,
               "script-src '" + reports::script_source(whole) + "' '" + reports::script_source(reports::page_script()));
  copy.insert(copy.find("<title>"), "<script>" + whole + "</script>");
  std::vector<std::string> words = {"--virtual-time-budget=20000", "--window-size=1280,1600", "--dump-dom"};
  words.insert(words.end(), flags.begin(), flags.end());
  const std::string dom = chromium(copy, words);
  constexpr std::string_view start = "<pre id=\"results\">";
  const auto at = dom.rfind(start);
  CHECK(at != std::string::npos, "the page's test script did not end: {} bytes of document", dom.size());
  const auto end = dom.find("</pre>", at);
  return Json::parse(dom.substr(at + start.size(), end - at - start.size()));
}

std::string printed_page(const std::string& page) {
  return chromium(page, {"--virtual-time-budget=20000", "--no-pdf-header-footer", "--print-to-pdf=page.pdf"},
                  "page.pdf");
}

}  // namespace gainlens::testing
