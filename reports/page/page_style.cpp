#include "reports/page/page_style.h"

#include "core/sha256.h"
#include "reports/figures/palette.h"
#include "reports/page/embedded_data.h"
#include "reports/page/typography.h"

#include <fmt/format.h>

#include <string_view>

namespace gainlens::reports {
namespace {

/// The content policy makes the browser itself refuse anything that is not in this file, and every script but ours.
std::string policy() {
  return fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:; script-src '{}'\">\n",
      script_source(page_script()));
}

/// By which pages without a generator are known.
constexpr std::string_view older_policy =
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
pre { font-size: .74rem; line-height: 1.4; overflow-x: auto; }
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
.wide table { font-size: .64rem; }
.wide th, .wide td { padding: .25rem .22rem; }
thead td { border-top: 1.6px solid var(--rule); }
thead tr + tr th { border-top: 0; }
thead th.span { text-align: center; }
th:first-child, td:first-child { padding-left: .1rem; }
th.text, td.text { text-align: left; white-space: normal; overflow-wrap: break-word; min-width: 7em; }
button.sort { font: inherit; color: inherit; text-align: inherit; background: none; border: 0; padding: 0; margin: 0;
  cursor: pointer; position: relative; }
button.sort::after { content: "\2195"; color: var(--soft); visibility: hidden; position: absolute; left: 100%; bottom: 0; }
th:hover > button.sort::after, button.sort:focus-visible::after { visibility: visible; }
th[aria-sort] > button.sort::after { content: "\2191"; color: var(--accent); visibility: visible; }
th[aria-sort=descending] > button.sort::after { content: "\2193"; }
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
.choosers { display: flex; flex-wrap: wrap; gap: .4rem 1.1rem; margin: .5rem 0; }
.choosers, .readout, .title, h3 + .pair { font-family: "DejaVu Sans", Verdana, "Segoe UI", sans-serif; }
.choosers label { font-size: .76rem; color: var(--soft); }
select { font: inherit; color: var(--ink); background: var(--ground); border: 1px solid var(--line); border-radius: 4px;
  padding: .2rem .3rem; max-width: 16rem; }
canvas { display: block; width: 100%; touch-action: pan-y; }
.readout:empty { display: none; }
.tokens { line-height: 1.9; }
button.token { font: inherit; font-size: .85rem; color: var(--ink); border: 1px solid var(--line); border-radius: 3px;
  padding: .05em .25em; margin: 0 .12em; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; cursor: default; }
button.token[aria-pressed=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent); }
[data-part] > .lead { font-size: .85rem; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: .6rem 1.8rem; align-items: start; }
.pair .choosers { margin: 0 0 .4rem; }
.readout { font-size: .76rem; color: var(--soft); min-height: 2.6em; margin: .3rem 0 0; }
.title { font-size: .76rem; margin: 0 0 .3rem; max-width: none; }
.head { border-top: 1px solid var(--line); margin-top: 1.2rem; padding-top: .2rem; }
.head .table { margin-top: 0; }
.small { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 1rem; margin-bottom: 1.2rem; }
.small .title { color: var(--soft); font-size: .68rem; min-height: 2.6em; }
.scroll { max-height: 24rem; overflow: auto; border: 1px solid var(--line); border-radius: 4px; padding: 0 .6rem; }
.scroll .table { overflow: visible; margin: .6rem 0; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
@media screen and (max-width: 760px) { figure.column, .screen, .pair { display: block; } .pair > * + * { margin-top: 1rem; } dl { grid-template-columns: 1fr;
  } dd { margin-bottom: .4rem; } }
@page { margin: 16mm 15mm; }
@media print {
:root { color-scheme: light; }
body { font-size: 10.5pt; }
main { max-width: none; padding: 0; }
nav, .scripted, [data-part] { display: none; }
pre { white-space: pre-wrap; }
button.sort::after { display: none; }
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

std::string script_source(std::string_view script) {
  const std::string hex = sha256_hex(script);
  std::string digest;
  for (std::size_t at = 0; at < hex.size(); at += 2)
    digest += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
  return "sha256-" + base64(digest);
}

std::string page_title(std::string_view what, std::string_view on) {
  return fmt::format("{}{}{} – gainlens", what, on.empty() ? "" : " on ", on);
}

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n"
      "{}{}<title>{}</title>\n<style>{}@media screen and (prefers-color-scheme: dark) "
      "{{\n{}}}\n</style>\n</head>\n<body>\n<main>\n",
      generator, policy(), escape_html(title), style, dark_rules());
}

std::string page_end() {
  return fmt::format("</main>\n<script>{}</script>\n</body>\n</html>\n", page_script());
}

bool is_own_page(std::string_view text) {
  const std::string_view head = text.substr(0, text.find("<title>"));
  return head.find(generator) != head.npos || head.find(older_policy) != head.npos;
}

}  // namespace gainlens::reports
