#include "reports/look/look_report.h"

#include "analyses/synthetic_run.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "reports/page/embedded_data.h"
#include "reports/page/page_style.h"
#include "reports/sweep/sweep_report.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace gainlens::reports {
namespace page_script_test {

using gainlens::testing::report_run;
using gainlens::testing::SyntheticRun;
using gainlens::testing::TemporaryFolder;
using gainlens::testing::write_run;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageScript, IsSmallAndNeverMakesMarkupOfText) {
  const std::string script(page_script());
  EXPECT_LE(script.size(), max_script_bytes);
  EXPECT_GT(script.size(), max_script_bytes / 2);
  for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
                           "fetch(", "XMLHttpRequest", "import", "localStorage", "</script"})
    EXPECT_THAT(script, Not(HasSubstr(word))) << word;
  EXPECT_THAT(script, Not(HasSubstr("/**")));
  EXPECT_THAT(script, Not(HasSubstr("\n ")));
}

TEST(PageScript, SourcesAreHashes) {
  // openssl dgst -sha256 -binary | base64
  EXPECT_EQ(script_source(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(script_source("alert(1)"), "sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=");
}

TEST(Base64, IsThatOfTheRfc) {
  for (const auto& [bytes, text] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}})
    EXPECT_EQ(base64(bytes), text);
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(EmbeddedData, HoldsNoMarkupAndTakesAnyBytes) {
  EmbeddedData data;
  data.words["text"] = "</script><img src=x onerror=alert(1)>\xff";
  EXPECT_EQ(data.add(std::vector<double>{1, 2}), 0u);
  EXPECT_EQ(data.add(std::vector<double>{3}), 2u);
  const std::string html = embedded_part("explore", data);
  EXPECT_TRUE(std::regex_match(html, std::regex("<div data-part=\"explore\" hidden><script "
                                                "type=\"application/octet-stream\">[A-Za-z0-9+/]+=*</script></div>\n")))
      << html;
}

TEST(TokenStrip, RefusesWhatDoesNotFit) {
  TokenStrip strip{{"a", "b"}, {0}, 1, 1, {0, 0}, {1, 1}};
  EXPECT_THAT(token_strip(strip), HasSubstr("data-part=\"tokens\""));
  strip.head = 1;
  EXPECT_THROW(token_strip(strip), InternalError);
  strip.head = 0;
  strip.query = 2;
  EXPECT_THROW(token_strip(strip), InternalError);
  strip.query.reset();
  strip.keys = {0, 2};
  EXPECT_THROW(token_strip(strip), InternalError);
  strip.keys = {0};
  EXPECT_THROW(token_strip(strip), InternalError);
  EXPECT_THROW(token_strip({}), InternalError);
}

TEST(PageSize, OfAllHeadsOfALargeModelIsBelowTwoMegabytes) {
  const TemporaryFolder folder;
  SyntheticRun run = report_run(1);
  run.lengths = {64, 128, 256, 512, 1024, 2048};
  run.layers = 28;
  run.heads = 16;
  run.kv_heads = 8;
  write_report(write_run(folder.path() / "run", run), folder.path() / "out", {}, {.style = {.formats = {"svg"}}});
  const std::string page = read_text_file(folder.path() / "out" / "report.html");
  EXPECT_THAT(page, HasSubstr("data-part=\"explore\""));
  EXPECT_LT(page.size(), 2'000'000u);
  RecordProperty("bytes", static_cast<int>(page.size()));
}

}  // namespace page_script_test
}  // namespace gainlens::reports
