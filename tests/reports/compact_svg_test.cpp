#include "reports/page/compact_svg.h"

#include <gtest/gtest.h>

namespace gainlens::reports {
namespace compact_svg_test {

TEST(CompactSvg, JoinsEqualGroupsAndShortensPaths) {
  EXPECT_EQ(
      compact_svg("<g fill=\"none\">\n\t<g a='b'>\n\t\t<polygon/>\n\t</g>\n\t<path stroke='#fff'  d='M1,2 L1,4 L5,4 "
                  "L5,2 L1,2 Z  '/></g>\n<g fill=\"none\">\n\t<path d='M1,2 L3,4'/></g>\n<g fill=\"red\"></g>"),
      "<g fill=\"none\">\n<g a='b'>\n<polygon/>\n</g>\n<path stroke='#fff'  d='M1,2V4H5V2Z'/>\n<path d='M1,2L3,4'/>"
      "</g>\n<g fill=\"red\"></g>");
  EXPECT_EQ(compact_svg("<use xlink:href='#p'/>"), "<use href='#p'/>");
}

TEST(CompactSvg, LeavesWhatWouldLookDifferent) {
  for (const char* svg :
       {"<g opacity='.5'><a/></g><g opacity='.5'><b/></g>", "<g id='a'><a/></g><g id='a'></g>",
        "<g a='1'><a/></g><g a='2'><b/></g>", "<g a='1'><a/></g><path d='M1,2C3,4'/>", "<path d='M1,2 C3,4 5,6 7,8'/>",
        "<path d='M1,2L1,3L3,3M4,4L4,5Z'/>", "<text>a\n\t b > c</text>", "<g/><g/>", "", "<", "</g></g>"})
    EXPECT_EQ(compact_svg(svg), svg);
}

}  // namespace compact_svg_test
}  // namespace gainlens::reports
