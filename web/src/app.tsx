// The frame around every view: where one is, the theme, and the help on keys.
import { useEffect } from "preact/hooks";
import { Dialog } from "./components/dialog";
import { Empty } from "./components/states";
import { helpShown, keysNow, useKeys } from "./keys";
import { connection } from "./live";
import { go, type Route, route, toOverview, toTrends } from "./router";
import { source } from "./source";
import { nextTheme, theme } from "./theme";
import { DiffView } from "./views/diff";
import { ExchangeView } from "./views/exchange";
import { OverviewView } from "./views/overview";
import { TrendsView } from "./views/trends";

export function App() {
  const at = route.value;
  useKeys([
    { key: "o", does: "Go to the overview", run: () => source.whole && go(toOverview()) },
    { key: "t", does: "Go to the trends", run: () => source.whole && go(toTrends()) },
    { key: "T", does: "Change the theme", run: nextTheme },
  ]);
  useEffect(() => {
    document.title = titleOf(at);
  }, [at]);
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="bar">
        <strong class="brand">deltatape</strong>
        {source.whole && (
          <nav aria-label="Views">
            <a href={toOverview()} aria-current={at.view === "overview" ? "page" : undefined}>
              Overview
            </a>
            <a href={toTrends()} aria-current={at.view === "trends" ? "page" : undefined}>
              Trends
            </a>
          </nav>
        )}
        <span class="grow" />
        <button type="button" onClick={nextTheme} aria-label={`Theme: ${theme.value}; change it`}>
          <span class="wide">Theme: </span>
          {theme.value}
        </button>
        <button
          type="button"
          onClick={() => {
            helpShown.value = true;
          }}
          aria-label="Help on keys"
        >
          ?
        </button>
      </header>
      <Away />
      <main id="main" tabIndex={-1}>
        <View at={at} />
      </main>
      {helpShown.value && <KeyHelp />}
    </>
  );
}

/** What to do while the server does not answer. */
function Away() {
  if (connection.value === "gone") {
    return (
      <p class="away" role="alert">
        <strong>deltatape open does not answer.</strong> What is shown is what it told last. Start
        it again with <code>deltatape open</code>; if it listens where it did, this page goes on by
        itself.
      </p>
    );
  }
  if (connection.value === "refused") {
    return (
      <p class="away" role="alert">
        <strong>deltatape open refuses this page,</strong> such as after it was started again: open
        the link that it printed.
      </p>
    );
  }
  return null;
}

function titleOf(at: Route): string {
  if (at.view === "exchange") return `${at.ref.tape}#${at.ref.exchange} - deltatape`;
  if (at.view === "diff") return `${at.ref.tape}#${at.ref.exchange} beside another - deltatape`;
  return at.view === "trends" ? "Trends - deltatape" : "deltatape";
}

function View({ at }: { at: Route }) {
  switch (at.view) {
    case "overview":
      return <OverviewView query={at.query} />;
    case "trends":
      return <TrendsView query={at.query} />;
    case "exchange":
      return <ExchangeView at={at.ref} query={at.query} />;
    case "diff":
      return <DiffView one={at.ref} other={at.other} />;
    case "lost":
      return (
        <Empty what="There is no such place on this page.">
          The link ends with <code>{at.hash}</code>. <a href={toOverview()}>Go to the overview</a>.
        </Empty>
      );
  }
}

function KeyHelp() {
  return (
    <Dialog
      title="Keys"
      close={() => {
        helpShown.value = false;
      }}
    >
      <dl class="keys">
        {keysNow().map((key) => (
          <div key={key.key}>
            <dt>
              <kbd>{key.key}</kbd>
            </dt>
            <dd>{key.does}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>Show or hide this help</dd>
        </div>
      </dl>
    </Dialog>
  );
}
