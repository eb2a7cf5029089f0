"""The style of the page that `html` writes: readable in daylight, at night, and on paper."""

STYLE = """\
:root {
  color-scheme: light dark;
  --ink: light-dark(#1c1e21, #e4e6eb);
  --paper: light-dark(#ffffff, #17181a);
  --panel: light-dark(#f4f5f7, #222427);
  --line: light-dark(#d8dbe0, #3a3d42);
  --faint: light-dark(#6a6f76, #9aa0a8);
  --bad: light-dark(#b3261e, #ff8a80);
  --good: light-dark(#1e7b34, #7fd694);
  --wire: light-dark(#1f5fbf, #7fb0ff);
  --app: light-dark(#a15c00, #ffb95c);
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1.5rem; color: var(--ink);
  background: var(--paper); font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.2rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
h3 { font-size: .95rem; margin: 0 0 .3rem; }
header p, small, footer { color: var(--faint); margin: .2rem 0; font-weight: normal; }
code { font: .9em/1.4 ui-monospace, monospace; overflow-wrap: break-word; white-space: pre-wrap; }
td code { overflow-wrap: normal; }
td:last-child code, td:nth-last-child(2) code, p code { overflow-wrap: anywhere; }
.verdict { border: 1px solid var(--line); border-left: .4rem solid var(--faint);
  background: var(--panel); padding: .8rem 1rem; margin: 1rem 0; border-radius: .3rem; }
.verdict h2 { margin: 0; font-size: 1.3rem; }
.verdict h2::first-letter { text-transform: uppercase; }
.verdict h2 span { color: var(--faint); font-weight: normal; }
.verdict p { margin: .5rem 0 0; overflow-wrap: anywhere; }
.verdict.app { border-left-color: var(--app); }
.verdict.model, .verdict.provider, .verdict.gateway, .verdict.transport, .verdict.upstream {
  border-left-color: var(--wire); }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--faint); font-weight: normal; font-size: .85rem;
  white-space: nowrap; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .5rem; vertical-align: top;
  overflow-wrap: break-word; }
.timeline { font: .85rem/1.4 ui-monospace, monospace; }
.timeline td:first-child { text-align: right; white-space: nowrap; }
.timeline td:nth-child(4) { overflow-wrap: anywhere; }
.timeline td:nth-child(2) { width: 22%; }
.timeline td:nth-child(3), .timeline tr.recorder td { color: var(--faint); }
.timeline b { color: var(--bad); }
.axis { position: relative; height: 1.2em; border-left: 1px solid var(--line);
  border-right: 1px solid var(--line); }
.axis i { position: absolute; top: .35em; width: .5em; height: .5em; margin-left: -.25em;
  border-radius: 50%; background: var(--faint); }
.axis i.wire { background: var(--wire); }
.axis i.app { background: var(--app); border-radius: 0; }
.axis i.log { background: var(--bad); }
.wrong { color: var(--bad); }
.right { color: var(--good); }
article { border-left: .25rem solid var(--line); padding: .2rem .8rem; margin: .8rem 0; }
article.error { border-left-color: var(--bad); }
article.warning { border-left-color: var(--app); }
article p { margin: .2rem 0; }
footer { margin-top: 2rem; font-size: .85rem; }
@media print { body { max-width: none; } section, article { break-inside: avoid; } }
"""
