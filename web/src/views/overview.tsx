// All exchanges of all tapes in one list, however many there are, with what is wrong with each.
import { effect } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { compared } from "../compare";
import { Empty, Progress } from "../components/states";
import { SafeText, safe } from "../components/text";
import { changed, cleared, FilterBar, filterOf } from "../filters";
import { plural } from "../format";
import { connection, follow, news, returns } from "../live";
import { go, toOverview } from "../router";
import { Rows } from "../rows";
import type { LsDocument } from "../schema/ls";
import { type Indexed, source } from "../source";
import { AHEAD, Grid, withOrder } from "./overview/grid";

type Tape = LsDocument["tapes"][number];

const TAPES_EVERY_MS = 2000;
const MOST_TAPES = 200;

/** Says that the next exchange to be chosen is shown beside another one. */
function Comparing() {
  const one = compared.value;
  if (!one) return null;
  return (
    <p class="comparing" role="status">
      Choose the exchange to compare with{" "}
      <strong>
        <SafeText text={`${one.tape}#${one.exchange}`} />
      </strong>
      .{" "}
      <button
        type="button"
        onClick={() => {
          compared.value = null;
        }}
      >
        Cancel
      </button>
    </p>
  );
}

export function OverviewView({ query }: { query: URLSearchParams }) {
  const filter = filterOf(query);
  const order = query.get("order") ?? "-at";
  const asked = new URLSearchParams(filter);
  asked.set("order", order);
  const key = asked.toString();
  useEffect(() => follow(filter), [filter.toString()]);
  const latest = useMemo(() => new Rows(asked), [key]);
  useEffect(() => () => latest.close(), [latest]);
  useEffect(() => {
    let seen = returns.value;
    return effect(() => {
      if (returns.value !== seen) {
        seen = returns.value;
        latest.again();
      }
      const told = news.value;
      if (!told) return;
      if (told.filter === filter.toString()) latest.follow(told);
      latest.renew(told.revision);
    });
  }, [latest]);
  useEffect(() => {
    if (latest.about === null) latest.want(0, AHEAD);
  }, [latest]);

  // What was shown stays until there is something else to show.
  const before = useRef(latest);
  const ready = latest.about !== null || latest.problem !== null;
  if (ready) before.current = latest;
  const rows = before.current;
  const tapes = useTapes();
  useLayoutEffect(() => {
    // Not by :has() in the style: it is looked at with each row that comes and goes.
    const { dataset } = document.documentElement;
    dataset.fills = "";
    return () => {
      delete dataset.fills;
    };
  }, []);
  const facets = rows.about?.facets ?? null;
  const filterBar = useMemo(
    () => (
      <FilterBar
        query={query}
        to={toOverview}
        facets={facets}
        tapes={tapes?.map((tape) => tape.path) ?? []}
        into={() => document.getElementById("exchanges")?.focus()}
      >
        <OrderChoice query={query} />
      </FilterBar>
    ),
    [query, facets, tapes],
  );
  const tapeList = useMemo(() => <Tapes tapes={tapes} query={query} />, [tapes, query]);

  return (
    <div class="overview">
      <div class="overview-head">
        <h1>Exchanges</h1>
        <Count rows={rows} filtered={filter.size > 0} busy={!ready} />
        <Recording />
      </div>
      {filterBar}
      {tapeList}
      <Comparing />
      <Indexing rows={rows} />
      <List rows={rows} query={query} listKey={key} tapes={tapes} />
    </div>
  );
}

function Count({ rows, filtered, busy }: { rows: Rows; filtered: boolean; busy: boolean }) {
  const about = rows.about;
  const text = !about
    ? ""
    : filtered
      ? `${about.total.toLocaleString("en")} of ${plural(about.all, "exchange")}`
      : plural(about.all, "exchange");
  // Said once for each filter; a count that goes up while recording would not let one listen.
  const [said, say] = useState("");
  useEffect(() => {
    if (about && !busy) say(text);
  }, [rows, busy]);
  return (
    <>
      <p class="count" aria-hidden="true">
        {busy ? (about ? "Searching ..." : "Loading ...") : text}
      </p>
      <p class="unseen" role="status">
        {said}
      </p>
    </>
  );
}

function Recording() {
  const running = news.value?.all_running ?? 0;
  if (!running || connection.value !== "open") return null;
  return (
    <p class="recording">
      <span class="pulse" aria-hidden="true" /> {running} running
    </p>
  );
}

function Reading({ indexed }: { indexed: Indexed }) {
  const { done, of, bytes } = indexed;
  return <Progress what="Reading tapes:" done={done} of={of} part={bytes.done / (bytes.of || 1)} />;
}

function Indexing({ rows }: { rows: Rows }) {
  const indexed = news.value?.indexed ?? rows.about?.indexed;
  if (!indexed || indexed.done >= indexed.of || !rows.about?.all) return null;
  return <Reading indexed={indexed} />;
}

/** The list of tapes, asked for anew when something has changed, but not all the time. */
function useTapes(): Tape[] | null {
  const [tapes, set] = useState<Tape[] | null>(null);
  useEffect(() => {
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let again = false;
    const ask = () => {
      again = false;
      timer = setTimeout(() => {
        timer = undefined;
        if (again) ask();
      }, TAPES_EVERY_MS);
      source.tapes().then(
        (document) => current && set(document.tapes),
        () => {}, // the list of exchanges says what is wrong
      );
    };
    const stop = effect(() => {
      news.value?.revision;
      returns.value;
      if (timer === undefined) ask();
      else again = true;
    });
    return () => {
      current = false;
      stop();
      clearTimeout(timer);
    };
  }, []);
  return tapes;
}

function Tapes({ tapes, query }: { tapes: Tape[] | null; query: URLSearchParams }) {
  const [open, setOpen] = useState(false);
  if (!tapes?.length) return null;
  const recording = tapes.filter((tape) => tape.recording).length;
  const unread = tapes.filter((tape) => tape.error !== null);
  return (
    <details class="tapes" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {plural(tapes.length, "tape")}
        {recording > 0 && <span class="recording">, {recording} being recorded</span>}
        {unread.length > 0 && (
          <span class="severity-error">, {unread.length} that cannot be read</span>
        )}
      </summary>
      {open && <TapeTable tapes={tapes} query={query} />}
    </details>
  );
}

function TapeTable({ tapes, query }: { tapes: Tape[]; query: URLSearchParams }) {
  const known = tapes.some((tape) => tape.worst !== null);
  return (
    <div class="tapes-table">
      <table>
        <thead>
          <tr>
            <th scope="col">Tape</th>
            <th scope="col" class="number">
              Exchanges
            </th>
            <th scope="col" class="number">
              Findings
            </th>
            {known && <th scope="col">Worst</th>}
            <th scope="col">Models</th>
            <th scope="col">State</th>
          </tr>
        </thead>
        <tbody>
          {tapes.slice(0, MOST_TAPES).map((tape) => (
            <tr key={tape.path}>
              <th scope="row">
                <a href={toOverview(changed(cleared(query), { tape: tape.path }))}>
                  <SafeText text={tape.path} />
                </a>
              </th>
              <td class="number">{tape.exchanges ?? "-"}</td>
              <td class="number">{tape.findings ?? "-"}</td>
              {known && <td>{tape.worst ? `${tape.worst.code} ${tape.worst.name}` : "-"}</td>}
              <td>
                <SafeText text={tape.models.join(", ") || "-"} />
              </td>
              <td>
                {tape.error !== null ? (
                  <span class="severity-error">
                    <SafeText text={tape.error} />
                  </span>
                ) : tape.recording ? (
                  <span class="recording">being recorded</span>
                ) : (
                  "complete"
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {tapes.length > MOST_TAPES && (
        <p class="muted">
          The {MOST_TAPES} latest of {tapes.length} are listed; search for a part of the name to see
          the exchanges of another one.
        </p>
      )}
    </div>
  );
}

const ORDERS: [string, string][] = [
  ["-at", "Latest first"],
  ["at", "Earliest first"],
  ["severity", "Worst first"],
  ["-findings", "Most findings first"],
  ["-duration", "Longest first"],
  ["-first_event", "Latest first event first"],
  ["-tokens", "Most tokens first"],
  ["-calls", "Most calls first"],
];

function OrderChoice({ query }: { query: URLSearchParams }) {
  const order = query.get("order") ?? "-at";
  return (
    <select
      aria-label="Order"
      class={order === "-at" ? undefined : "set"}
      value={order}
      onChange={(event) => go(toOverview(withOrder(query, event.currentTarget.value)))}
    >
      {!ORDERS.some(([each]) => each === order) && <option value={order}>{safe(order)}</option>}
      {ORDERS.map(([each, label]) => (
        <option key={each} value={each}>
          {label}
        </option>
      ))}
    </select>
  );
}

function List(props: {
  rows: Rows;
  query: URLSearchParams;
  listKey: string;
  tapes: Tape[] | null;
}) {
  const { rows, query } = props;
  const about = rows.about;
  if (about === null) {
    if (rows.problem === null) return <Progress what="Loading the exchanges" />;
    return (
      <Empty what="The exchanges are not loaded.">
        {rows.problem}{" "}
        <button type="button" onClick={() => rows.again()}>
          Try again
        </button>
      </Empty>
    );
  }
  if (about.all === 0) {
    const indexed = news.value?.indexed ?? about.indexed;
    if (indexed.done < indexed.of) {
      return <Reading indexed={indexed} />;
    }
    return <NothingYet tapes={props.tapes} />;
  }
  if (about.total === 0) {
    return (
      <Empty what="No exchange matches.">
        All {plural(about.all, "exchange")} are left out by the filter.{" "}
        <a href={toOverview(cleared(query))}>Clear the filters</a> to see them.
      </Empty>
    );
  }
  return <Grid {...props} total={about.total} />;
}

export function NothingYet({ tapes }: { tapes: Tape[] | null }) {
  if (tapes === null) return <Progress what="Looking for tapes" />;
  if (tapes.length === 0) {
    return (
      <Empty what="There is no tape yet.">
        Start your app with <code>deltatape record -- python app.py</code> (or whatever starts it)
        in the folder that <code>deltatape open</code> was started in. Its exchanges appear here
        while they happen.
      </Empty>
    );
  }
  if (tapes.every((tape) => tape.error !== null)) {
    return (
      <Empty what="No tape can be read.">
        The list above says why. <code>deltatape fsck TAPE</code> tells more, and repairs what can
        be repaired.
      </Empty>
    );
  }
  return (
    <Empty what="No exchange is taped yet.">
      {tapes.some((tape) => tape.recording)
        ? "A tape is being recorded, and no request has come so far. "
        : "The tapes are empty. "}
      If your app has asked its provider already, <code>deltatape doctor</code> finds out why its
      requests do not pass here.
    </Empty>
  );
}
