// Every document and section that code and documentation cite is there.
#include "architecture/repository.h"

#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>

namespace gainlens::testing {
namespace citations_test {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A heading without its marks: "## `--bos`" -> "--bos".
std::string heading_text(const std::string& line) {
  std::string text = line.substr(line.find_first_not_of('#'));
  std::erase(text, '`');
  const auto begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

/// As the usual viewers of Markdown make it: "Sink v. K" -> "sink-v-k".
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) || c == '_' || c == '-') {
      anchor += static_cast<char>(byte < 0x80 ? std::tolower(byte) : byte);
    } else if (c == ' ') {
      anchor += '-';
    }
  }
  return anchor;
}

std::set<std::string> headings_of(const fs::path& document) {
  std::set<std::string> headings;
  std::ifstream file(document);
  std::string line;
  bool code = false;
  while (std::getline(file, line)) {
    if (line.starts_with("```")) code = !code;
    if (!code && line.starts_with('#')) headings.insert(heading_text(line));
  }
  return headings;
}

/// Citations of documents as code writes them: `docs/method.md`, or `docs/method.md, "Sweep protocol"`.
void check_citations(const fs::path& root, const SourceLine& line, const std::string& next,
                     std::vector<std::string>& found) {
  static const std::regex citation(R"re(((?:docs/(?:[\w-]+/)*)?[\w-]+\.md)\b)re");
  // A section may stand on the next line of the comment.
  static const std::regex comment(R"re(^\s*(///?|#|\*|//)?\s*)re");
  const std::string text = line.text + " " + std::regex_replace(next, comment, "");
  for (std::sregex_iterator match(line.text.begin(), line.text.end(), citation), end; match != end; ++match) {
    const std::string name = (*match)[1];
    const fs::path document = root / name;
    // Parts of a link of Markdown, and pieces of a path, are not citations.
    const char before = match->position() > 0 ? line.text[static_cast<std::size_t>(match->position()) - 1] : ' ';
    if (before == '(' || before == '[' || before == '"' || before == '`') continue;
    if (!fs::exists(document)) {
      found.push_back(line.place() + ": there is no " + name);
      continue;
    }
    const std::string after = text.substr(static_cast<std::size_t>(match->position() + match->length()));
    static const std::regex section(R"re(^, "([^"]+)")re");
    std::smatch cited;
    if (std::regex_search(after, cited, section) && !headings_of(document).contains(cited[1]))
      found.push_back(line.place() + ": " + name + " has no section \"" + cited[1].str() + "\"");
  }
}

std::vector<std::string> broken_citations(const fs::path& root) {
  std::vector<std::string> found;
  const auto lines = lines_of(root, {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".cmake", "CMakeLists.txt"});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].text.find(".md") == std::string::npos || lines[i].file.starts_with("tests/architecture/")) continue;
    const bool last = i + 1 == lines.size() || lines[i + 1].file != lines[i].file;
    check_citations(root, lines[i], last ? "" : lines[i + 1].text, found);
  }
  return found;
}

/// Links in Markdown: [text](file.md), [text](file.md#section), [text](#section). Addresses on the web are not
/// followed.
std::vector<std::string> broken_links(const fs::path& root) {
  static const std::regex link(R"re(\]\(([^)\s]+)\))re");
  std::vector<std::string> found;
  for (const SourceLine& line : lines_of(root, {".md"})) {
    for (std::sregex_iterator match(line.text.begin(), line.text.end(), link), end; match != end; ++match) {
      const std::string target = (*match)[1];
      if (target.find("://") != std::string::npos || target.starts_with("mailto:")) continue;
      const std::string file = target.substr(0, target.find('#'));
      const fs::path document = file.empty() ? root / line.file : (root / line.file).parent_path() / file;
      if (!fs::exists(document)) {
        found.push_back(line.place() + ": there is no " + target);
      } else if (target.find('#') != std::string::npos) {
        std::set<std::string> anchors;
        for (const std::string& heading : headings_of(document)) anchors.insert(anchor_of(heading));
        if (!anchors.contains(target.substr(target.find('#') + 1)))
          found.push_back(line.place() + ": " + target + " leads to no heading");
      }
    }
  }
  return found;
}

TEST(Citations, EveryDocumentAndSectionIsThere) {
  EXPECT_THAT(broken_citations(GAINLENS_SOURCE_DIR), IsEmpty());
}

TEST(Citations, EveryLinkOfTheDocumentationLeadsSomewhere) {
  EXPECT_THAT(broken_links(GAINLENS_SOURCE_DIR), IsEmpty());
}

TEST(Citations, WrongOnesAreFound) {
  const TemporaryFolder root;
  const auto write = [&](const char* file, const char* text) {
    fs::create_directories((root.path() / file).parent_path());
    std::ofstream(root.path() / file) << text;
  };
  write("docs/method.md", "# Method\n## Sweep protocol\n");
  write("src/a.h",
        "/// docs/method.md, \"Sweep protocol\"; method.md\n/// docs/method.md,\n/// \"No such\" docs/gone.md\n");
  write("docs/b.md", "[a](method.md#sweep-protocol) [b](method.md#none) [c](gone.md)\n");
  const auto citations = broken_citations(root.path());
  EXPECT_EQ(citations.size(), 3u);
  EXPECT_THAT(citations, Contains("src/a.h:1: there is no method.md"));
  EXPECT_THAT(citations, Contains("src/a.h:2: docs/method.md has no section \"No such\""));
  EXPECT_THAT(citations, Contains("src/a.h:3: there is no docs/gone.md"));
  const auto links = broken_links(root.path());
  EXPECT_THAT(links, Contains(HasSubstr("method.md#none leads to no heading")));
  EXPECT_THAT(links, Contains(HasSubstr("there is no gone.md")));
  EXPECT_THAT(links, Not(Contains(HasSubstr("sweep-protocol"))));
}

}  // namespace citations_test
}  // namespace gainlens::testing
