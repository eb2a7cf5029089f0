// Paper has no summary to open: while the page is printed, everything is open.

const opened = new Set<HTMLDetailsElement>();

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll<HTMLDetailsElement>("details:not([open])")) {
    details.open = true;
    opened.add(details);
  }
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
  opened.clear();
});
