#include "reports/page/page_style.h"

#include "reports/figures/palette.h"
#include "reports/page/typography.h"

#include <fmt/format.h>

#include <string_view>

namespace gainlens::reports {
namespace {

// The content policy makes the browser itself refuse anything that is not in this file.
constexpr std::string_view policy =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
    "data:\">\n";

constexpr std::string_view generator = "<meta name=\"generator\" content=\"gainlens\">\n";

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ground: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --rule: #1b1f24;
  --wash: #f6f8fa; --accent: #0072b2; }
@media screen and (prefers-color-scheme: dark) {
:root { --ground: #14181c; --ink: #e3e6e8; --soft: #a3acb5; --line: #363e46; --rule: #a3acb5; --wash: #1c2228;
  --accent: #56b4e9; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 17px/1.5 Charter, "Bitstream Charter", "Sitka Text", Cambria, "DejaVu Serif", serif; }
main { max-width: 1000px; margin: 0 auto; padding: 2.4rem 1.2rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .6rem; }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p, li, dd { max-width: 76ch; }
p { margin: .5rem 0; }
.lead { color: var(--soft); }
nav, table, dl, .absent, svg text { font-family: "DejaVu Sans", Verdana, "Segoe UI", sans-serif; }
nav { font-size: .8rem; margin: 1rem 0 0; line-height: 1.9; }
nav a { margin-right: 1.1em; white-space: nowrap; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
figure { margin: 1.2rem 0 1.6rem; }
figure svg { display: block; width: 100%; height: auto; }
figure.column { display: grid; grid-template-columns: minmax(280px, 460px) minmax(220px, 1fr); gap: 1.4rem;
  align-items: start; }
figcaption { font-size: .88rem; line-height: 1.45; }
figcaption p { max-width: none; margin: .35rem 0; }
.can, .cannot { color: var(--soft); }
.absent { background: var(--wash); border: 1px dashed var(--soft); border-radius: 4px; padding: .6rem .9rem;
  color: var(--soft); font-size: .85rem; }
.table { overflow-x: auto; margin: 1.1rem 0 1.5rem; }
sub, sup { line-height: 0; }
table { width: 100%; border-collapse: collapse; font-size: .74rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; border-bottom: 1.6px solid var(--rule); }
caption { text-align: left;
  font: .88rem/1.45 Charter, "Bitstream Charter", "Sitka Text", Cambria, "DejaVu Serif", serif;
  padding-bottom: .45rem; caption-side: top; }
th, td { padding: .25rem .6rem; text-align: right; vertical-align: top; font-weight: 400; }
td { white-space: nowrap; }
thead th { border-top: 1.6px solid var(--rule); border-bottom: 1px solid var(--rule); font-weight: 600;
  vertical-align: bottom; }
.wide table { font-size: .66rem; }
.wide th, .wide td { padding: .25rem .3rem; }
thead td { border-top: 1.6px solid var(--rule); }
thead tr + tr th { border-top: 0; }
thead th.span { text-align: center; }
th:first-child, td:first-child { padding-left: .1rem; }
th.text, td.text { text-align: left; white-space: normal; overflow-wrap: break-word; min-width: 7em; }
tr.group th { text-align: left; font-weight: 600; padding-top: .6rem; border-top: 1px solid var(--line); }
tbody tr:first-child.group th { border-top: 0; }
tbody tr:not(.group):hover { background: var(--wash); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1.2rem; font-size: .8rem; }
dt { font-weight: 600; }
dd { margin: 0; overflow-wrap: anywhere; }
ul { padding-left: 1.2rem; font-size: .93rem; }
.screen { display: grid; grid-template-columns: minmax(280px, 440px) minmax(300px, 1fr); gap: 1.6rem;
  align-items: start; }
.screen figure.column { display: block; }
.screen figure, .screen .table { margin-top: .4rem; margin-bottom: .6rem; }
.screen .table caption, .screen figcaption { font-size: .8rem; }
.lead-section { font-size: 1.05rem; }
details.paper { margin-top: 2.6rem; border-top: 1px solid var(--line); padding-top: .6rem; }
details.paper > summary { font-size: 1.3rem; font-weight: 600; color: var(--ink); }
summary { cursor: pointer; font-size: .88rem; color: var(--accent); }
code.token { background: var(--wash); border: 1px solid var(--line); border-radius: 3px; padding: 0 .25em; }
code { font-size: .85em; overflow-wrap: anywhere; }
@media screen and (max-width: 760px) { figure.column, .screen { display: block; } dl { grid-template-columns: 1fr;
  } dd { margin-bottom: .4rem; } }
@page { margin: 16mm 15mm; }
@media print {
:root { color-scheme: light; }
body { font-size: 10.5pt; }
main { max-width: none; padding: 0; }
nav { display: none; }
details::details-content { content-visibility: visible; block-size: auto; }
a { color: inherit; }
h2, h3 { break-after: avoid; }
figure, tr, caption, li { break-inside: avoid; }
.table { break-inside: avoid; overflow: visible; }
.table.long { break-inside: auto; }
thead { display: table-header-group; }
table { font-size: 7.4pt; }
th, td { padding: .16rem .35rem; }
figure.column, .screen { grid-template-columns: 3.33in 1fr; }
}
)";

}  // namespace

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n"
      "{}{}<title>{}</title>\n<style>{}@media screen and (prefers-color-scheme: dark) "
      "{{\n{}}}\n</style>\n</head>\n<body>\n<main>\n",
      generator, policy, escape_html(title), style, dark_rules());
}

bool is_own_page(std::string_view text) {
  const std::string_view head = text.substr(0, text.find("<title>"));
  return head.find(generator) != head.npos || head.find(policy) != head.npos;  // older pages have the policy alone
}

}  // namespace gainlens::reports
