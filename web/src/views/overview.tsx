// All exchanges of all tapes in one list, however many there are, with what is wrong with each.
import { effect } from "@preact/signals";
import { defaultRangeExtractor, useVirtualizer } from "@tanstack/react-virtual";
import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty, Progress } from "../components/states";
import { SafeText, safe } from "../components/text";
import { changed, cleared, FilterBar, filterOf } from "../filters";
import { duration, plural } from "../format";
import { useKeys } from "../keys";
import { connection, news, now, returns } from "../live";
import { go, toExchange, toOverview } from "../router";
import { Rows } from "../rows";
import { CODES } from "../schema/codes";
import type { LsDocument } from "../schema/ls";
import { type Row, source } from "../source";
import { Gutter, gutterWidth, layOut, MarkLegend, Marks, type Place } from "../threads";

type Tape = LsDocument["tapes"][number];

/** Heights of a row and of the head, as in overview.css. */
const WIDE = { row: 30, head: 44 };
const NARROW = { row: 58, head: 0 };
const NARROW_WIDTH = "(max-width: 56rem)";
/** How many rows beyond those shown are asked for, too. */
const AHEAD = 30;
const OVERSCAN = 4;
const TAPES_EVERY_MS = 2000;
const MOST_TAPES = 200;

/** Where one was in the list, for coming back to it. */
let left: { key: string; offset: number; active: number } | null = null;

export function OverviewView({ query }: { query: URLSearchParams }) {
  const filter = filterOf(query);
  const order = query.get("order") ?? "-at";
  const asked = new URLSearchParams(filter);
  asked.set("order", order);
  const key = asked.toString();
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
      latest.replace(told.running);
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
        {busy ? "Searching ..." : text}
      </p>
      <p class="unseen" role="status">
        {said}
      </p>
    </>
  );
}

function Recording() {
  const running = news.value?.running.length ?? 0;
  if (!running || connection.value !== "open") return null;
  return (
    <p class="recording">
      <span class="pulse" aria-hidden="true" /> {running} running
    </p>
  );
}

function Indexing({ rows }: { rows: Rows }) {
  const indexed = news.value?.indexed ?? rows.about?.indexed;
  if (!indexed || indexed.done >= indexed.of || !rows.about?.all) return null;
  return <Progress what="Reading tapes:" done={indexed.done} of={indexed.of} />;
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
  return (
    <div class="tapes-table">
      <table>
        <thead>
          <tr>
            <th scope="col">Tape</th>
            <th scope="col">Exchanges</th>
            <th scope="col">Findings</th>
            <th scope="col">Worst</th>
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
              <td>{tape.worst ? `${tape.worst.code} ${tape.worst.name}` : "-"}</td>
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

interface Column {
  name: string;
  label: string;
  title?: string;
  /** What the server can order by. */
  order?: string;
}
const COLUMNS: Column[] = [
  { name: "exchange", label: "Exchange" },
  { name: "at", label: "Time", order: "at" },
  { name: "finding", label: "Worst finding", order: "severity" },
  { name: "model", label: "Model" },
  { name: "dialect", label: "Dialect" },
  { name: "first", label: "First event", title: "Time to the first event", order: "first_event" },
  { name: "duration", label: "Duration", order: "duration" },
  { name: "tokens", label: "Tokens", title: "Tokens: input, output", order: "tokens" },
  { name: "calls", label: "Calls", title: "Tool calls", order: "calls" },
  { name: "ending", label: "Ending" },
];
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

const withOrder = (query: URLSearchParams, order: string) =>
  changed(query, { order: order === "-at" ? "" : order });

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

function useNarrow(): boolean {
  const [narrow, set] = useState(() => matchMedia(NARROW_WIDTH).matches);
  useEffect(() => {
    const media = matchMedia(NARROW_WIDTH);
    const change = () => set(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return narrow;
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
      return <Progress what="Reading tapes:" done={indexed.done} of={indexed.of} />;
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

function Grid(props: { rows: Rows; query: URLSearchParams; listKey: string; total: number }) {
  const { rows, query, total, listKey } = props;
  const order = query.get("order") ?? "-at";
  const narrow = useNarrow();
  const { row: height, head } = narrow ? NARROW : WIDE;
  const grid = useRef<HTMLDivElement>(null);
  const back = left?.key === listKey ? left : null;
  const [active, putActive] = useState(back?.active ?? -1);
  /** The same at once: keys come faster than the page is drawn. */
  const chosen = useRef(active);
  const setActive = (index: number) => {
    chosen.current = index;
    putActive(index);
  };
  const moved = useRef(0);

  const virtual = useVirtualizer<HTMLDivElement, HTMLDivElement>({
    count: total,
    getScrollElement: () => grid.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    scrollMargin: head,
    scrollPaddingStart: head,
    initialOffset: back?.offset ?? 0,
    useFlushSync: false,
    rangeExtractor: (range) => {
      const shown = defaultRangeExtractor(range);
      const kept = active >= 0 && active < total && !shown.includes(active);
      return kept ? [...shown, active].sort((a, b) => a - b) : shown;
    },
  });
  useLayoutEffect(() => virtual.measure(), [height]);

  // Another list begins at its top.
  const shownKey = useRef(listKey);
  useEffect(() => {
    if (shownKey.current === listKey) return;
    shownKey.current = listKey;
    setActive(-1);
    virtual.scrollToOffset(0);
  }, [rows]);
  const place = useRef({ key: listKey, offset: 0, active });
  place.current = { key: listKey, offset: virtual.scrollOffset ?? 0, active };
  useEffect(
    () => () => {
      left = place.current;
    },
    [],
  );

  // Rows that come in front of those shown do not push them away, unless one is at the top.
  useEffect(() => {
    rows.moved = (by) => {
      moved.current += by;
      if (chosen.current >= 0) setActive(Math.max(0, chosen.current + by));
    };
    return () => {
      rows.moved = () => {};
    };
  }, [rows]);
  useLayoutEffect(() => {
    const by = moved.current;
    moved.current = 0;
    if (by && grid.current && grid.current.scrollTop > 0) grid.current.scrollTop += by * height;
  });

  const from = virtual.range?.startIndex ?? 0;
  const until = virtual.range?.endIndex ?? 0;
  useEffect(() => {
    rows.want(Math.max(0, from - AHEAD), until + AHEAD);
  }, [rows, from, until, total]);

  const byTime = order === "-at" || order === "at";
  const whole = filterOf(query).size === 0;
  const change = rows.changes.value;
  const middle = Math.floor((from + until) / 2);
  const drawing = useRef<Drawing | null>(null);
  const known = drawing.current;
  if (!known?.covers(rows, change, middle, order, whole)) {
    drawing.current = new Drawing(rows, change, middle, order, whole);
  }
  const drawn = drawing.current as Drawing;

  const to = (index: number) => {
    const next = Math.max(0, Math.min(total - 1, index));
    setActive(next);
    virtual.scrollToIndex(next, { align: "auto" });
  };
  const page = Math.max(1, until - from - 1);
  const step = (by: number) =>
    to(chosen.current < 0 ? (by > 0 ? from : until) : chosen.current + by);
  const open = () => {
    const row = rows.at(chosen.current);
    if (row) go(toExchange(row));
  };
  useKeys([
    { key: "j", does: "Go to the next exchange", run: () => step(1) },
    { key: "k", does: "Go to the exchange before", run: () => step(-1) },
    { key: "Enter", does: "Open the exchange", run: open },
    { key: "g", does: "Go to the first exchange", run: () => to(0) },
    { key: "G", does: "Go to the last exchange", run: () => to(total - 1) },
  ]);
  const onKeyDown = (event: KeyboardEvent) => {
    const moves: Record<string, () => void> = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      PageDown: () => step(page),
      PageUp: () => step(-page),
      Home: () => to(0),
      End: () => to(total - 1),
    };
    const move = event.ctrlKey || event.metaKey || event.altKey ? undefined : moves[event.key];
    if (!move || event.target !== grid.current) return;
    event.preventDefault();
    move();
  };
  const onClick = (event: MouseEvent) => {
    const target = event.target as Element;
    const index = Number(target.closest("[data-index]")?.getAttribute("data-index") ?? -1);
    if (index < 0) return;
    setActive(index);
    const row = rows.at(index);
    const acts = target.closest("a, button") || getSelection()?.isCollapsed === false;
    if (row && !acts) go(toExchange(row));
  };

  const activeRow = rows.at(active);
  const lit = activeRow ? `${activeRow.thread}#${activeRow.tape}` : null;
  const items = virtual.getVirtualItems();
  // Lines that leave at one end are used again at the other: that takes less than new ones.
  const pool = useRef(0);
  pool.current = Math.max(pool.current, items.length);
  const outside = (index: number) => index < from - OVERSCAN || index > until + OVERSCAN;
  const oneTape = query.has("tape");
  return (
    <>
      {rows.problem !== null && (
        <p class="severity-error" role="alert">
          {rows.problem}
        </p>
      )}
      {/* biome-ignore lint/a11y/useSemanticElements: a table cannot be virtualised so */}
      <div
        id="exchanges"
        class="exchanges"
        role="grid"
        aria-label="Exchanges; Enter opens one"
        aria-rowcount={total + 1}
        aria-colcount={COLUMNS.length}
        aria-activedescendant={activeRow && active >= 0 ? `row-${active}` : undefined}
        tabIndex={0}
        ref={grid}
        onKeyDown={onKeyDown}
        onClick={onClick}
        style={{ "--graph": `${byTime ? gutterWidth(drawn.width) : 0}px` }}
      >
        <Head query={query} order={order} />
        {/* biome-ignore lint/a11y/useSemanticElements: see above */}
        <div role="rowgroup" class="rows" style={{ height: `${virtual.getTotalSize()}px` }}>
          {items.map((item) => {
            const row = rows.at(item.index);
            return (
              <RowLine
                key={outside(item.index) ? "active" : item.index % pool.current}
                row={row}
                before={rows.at(item.index - 1)}
                place={(byTime && drawn.places[item.index - drawn.from]) || null}
                graph={drawn.width}
                down={order === "at"}
                index={item.index}
                top={item.start - head}
                height={height}
                active={item.index === active}
                lit={row !== undefined && lit === `${row.thread}#${row.tape}`}
                oneTape={oneTape}
              />
            );
          })}
        </div>
      </div>
      {byTime && (
        <details class="marks-help">
          <summary>What the marks mean</summary>
          <MarkLegend />
        </details>
      )}
    </>
  );
}

/** The lines of the conversations beside the rows that are held around one. */
class Drawing {
  readonly from: number;
  readonly places: Place[];
  readonly width: number;

  constructor(
    private readonly rows: Rows,
    private readonly change: number,
    middle: number,
    private readonly order: string,
    private readonly whole: boolean,
  ) {
    const around = rows.around(middle);
    const down = order === "at";
    const { places, width } = layOut(down ? around.rows.reverse() : around.rows, whole);
    this.from = around.from;
    this.places = down ? places.reverse() : places;
    this.width = width;
  }

  covers(rows: Rows, change: number, middle: number, order: string, whole: boolean): boolean {
    return (
      rows === this.rows &&
      change === this.change &&
      order === this.order &&
      whole === this.whole &&
      ((middle >= this.from && middle < this.from + this.places.length) ||
        (this.places.length === 0 && rows.at(middle) === undefined))
    );
  }
}

function Head({ query, order }: { query: URLSearchParams; order: string }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
    <div role="row" class="line head" aria-rowindex={1}>
      {COLUMNS.map((column, i) => {
        const by = column.order;
        const now =
          by === undefined
            ? ""
            : order === by
              ? "ascending"
              : order === `-${by}`
                ? "descending"
                : "";
        // The first press shows what one looks for: the worst, the longest, the latest.
        const first = by === "severity" ? by : `-${by}`;
        const next = order === first ? (by === "severity" ? `-${by}` : `${by}`) : first;
        return (
          // biome-ignore lint/a11y/useSemanticElements: see the grid
          // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
          <div
            key={column.name}
            role="columnheader"
            class={`cell c-${column.name}`}
            aria-colindex={i + 1}
            aria-sort={now === "" ? undefined : now}
            title={column.title}
          >
            {by === undefined ? (
              column.label
            ) : (
              <button type="button" onClick={() => go(toOverview(withOrder(query, next)))}>
                {column.label}
                <span aria-hidden="true">
                  {now === "ascending" ? " ▲" : now === "descending" ? " ▼" : ""}
                </span>
              </button>
            )}
            {column.name === "duration" && <Scale />}
          </div>
        );
      })}
    </div>
  );
}

// Durations on a logarithmic scale, the same for all rows: 10 ms to 10 minutes.
const SHORTEST_NS = 1e7;
const DECADES = Math.log10(6e11 / SHORTEST_NS);
const TICKS: [number, string][] = [
  [1e8, "0.1"],
  [1e9, "1"],
  [1e10, "10"],
  [1e11, "100 s"],
];

/** How far along the scale a duration is, in per cent. */
function along(ns: number): number {
  const part = Math.log10(Math.max(ns, SHORTEST_NS) / SHORTEST_NS) / DECADES;
  return Math.round(Math.min(part, 1) * 1000) / 10;
}

function Scale() {
  return (
    <span class="scale" aria-hidden="true">
      {TICKS.map(([ns, label]) => (
        <span key={ns} style={{ left: `${along(ns)}%` }}>
          {label}
        </span>
      ))}
    </span>
  );
}

interface LineProps {
  row: Row | undefined;
  /** The row above, whose day need not be said again. */
  before: Row | undefined;
  place: Place | null;
  graph: number;
  down: boolean;
  index: number;
  top: number;
  height: number;
  active: boolean;
  lit: boolean;
  oneTape: boolean;
}

/** Whether nothing has to be drawn anew: the lines of a row are new objects with each page. */
function sameLine(one: LineProps, other: LineProps): boolean {
  for (const name of Object.keys(other) as (keyof LineProps)[]) {
    if (name !== "place" && one[name] !== other[name]) return false;
  }
  return one.place?.drawn === other.place?.drawn;
}

const RowLine = memo(function RowLine(props: LineProps) {
  const { row, index, height } = props;
  const worst = row?.worst;
  const kind = `${worst ? `found-${worst.severity}` : ""}${row && isOdd(row) ? " odd" : ""}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
    <div
      role="row"
      id={`row-${index}`}
      class={`line ${kind}${props.active ? " active" : ""}${row ? "" : " awaited"}`}
      data-index={index}
      aria-rowindex={index + 2}
      aria-selected={props.active}
      style={{ transform: `translateY(${props.top}px)`, height: `${height}px` }}
    >
      {row ? <Cells {...props} row={row} /> : <Cell at={0}>...</Cell>}
    </div>
  );
}, sameLine);

function Cell(props: {
  at: number;
  title?: string | undefined;
  children: preact.ComponentChildren;
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: see the grid
    // biome-ignore lint/a11y/useFocusableInteractive: the grid has the focus
    <div
      role="gridcell"
      class={`cell c-${COLUMNS[props.at]?.name}`}
      aria-colindex={props.at + 1}
      title={props.title}
    >
      {props.children}
    </div>
  );
}

/** The name of a tape after its folders, which give way where there is no room. */
function TapeName({ tape }: { tape: string }) {
  const at = tape.lastIndexOf("/") + 1;
  return (
    <>
      {at > 0 && (
        <span class="folder">
          <SafeText text={tape.slice(0, at)} />
        </span>
      )}
      <span class="tape">
        <SafeText text={tape.slice(at).replace(/\.tape$/, "")} />
      </span>
    </>
  );
}

function Cells(props: LineProps & { row: Row }) {
  const { row } = props;
  const full = safe(`${row.tape}#${row.exchange}`);
  return (
    <>
      <Cell at={0} title={`${full}\n${safe(`${row.method} ${row.target}`)}`}>
        {props.place && (
          <Gutter
            row={row}
            place={props.place}
            height={props.height}
            width={props.graph}
            down={props.down}
            lit={props.lit}
          />
        )}
        <a class="name" href={toExchange(row)} tabIndex={-1}>
          {!props.oneTape && <TapeName tape={row.tape} />}
          <span>#{row.exchange}</span>
        </a>
        <Marks row={row} />
      </Cell>
      <Cell at={1} title={row.at ?? undefined}>
        <Time row={row} before={props.before} />
      </Cell>
      <Cell at={2} title={row.worst ? CODES[row.worst.code]?.says : undefined}>
        <Finding row={row} />
      </Cell>
      <Cell
        at={3}
        title={safe(`${row.provider ?? "unknown provider"}, ${row.model ?? "no model"}`)}
      >
        <SafeText text={row.model ?? "-"} />{" "}
        {row.provider && (
          <span class="provider">
            <SafeText text={row.provider} />
          </span>
        )}
      </Cell>
      <Cell at={4} title={row.dialect ?? undefined}>
        {row.dialect ?? "-"}
      </Cell>
      <Cell at={5}>{duration(row.first_event_ns)}</Cell>
      <Cell at={6} title={timesOf(row)}>
        <Duration row={row} />
      </Cell>
      <Cell at={7}>
        <Tokens tokens={row.tokens} />
      </Cell>
      <Cell at={8}>{row.calls || <span class="muted">0</span>}</Cell>
      <Cell at={9}>
        <Ending row={row} />
      </Cell>
    </>
  );
}

function timesOf(row: Row): string {
  const parts = [];
  if (row.first_event_ns !== null) parts.push(`first event after ${duration(row.first_event_ns)}`);
  if (row.duration_ns !== null) parts.push(`end after ${duration(row.duration_ns)}`);
  if (row.dead_zones) {
    parts.push(`${duration(row.dead_ns)} silent in ${plural(row.dead_zones, "dead zone")}`);
  }
  return parts.join(", ");
}

const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "2-digit" });
const dayOf = (at: string | null | undefined) => (at ? new Date(at).toDateString() : "");

/** The local time; the day where it is another one than above. */
function Time({ row, before }: { row: Row; before: Row | undefined }) {
  if (row.at === null) return <span class="muted">-</span>;
  const at = new Date(row.at);
  const today = new Date();
  const day = at.toDateString();
  const shown = before ? dayOf(before.at) !== day : today.toDateString() !== day;
  const format = at.getFullYear() === today.getFullYear() ? DAY : YEAR;
  return (
    <time dateTime={row.at}>
      {shown && <span class="day">{format.format(at)} </span>}
      {CLOCK.format(at)}
    </time>
  );
}

const SIGNS: Record<string, string> = { error: "✖", warning: "▲", info: "●" };

function Finding({ row }: { row: Row }) {
  const { worst } = row;
  if (!worst) {
    return <span class="muted">{row.open ? "none so far" : "none"}</span>;
  }
  return (
    <>
      <span class={`sign severity-${worst.severity}`}>
        <span aria-hidden="true">{SIGNS[worst.severity]}</span>
        <span class="unseen">{worst.severity}</span>
      </span>{" "}
      <code>{worst.code}</code> <span class="finding-name">{worst.name}</span>
      {worst.blame && <span class="blame">{worst.blame}</span>}
      {row.dead_ns > 0 && <span class="silent muted">{duration(row.dead_ns)} silent</span>}
      {row.findings > 1 && (
        <span class="muted" title={`${row.findings} findings: ${row.codes.join(", ")}`}>
          +{row.findings - 1}
        </span>
      )}
    </>
  );
}

function Duration({ row }: { row: Row }) {
  const first = row.first_event_ns;
  if (row.open && row.at !== null) return <Elapsed row={row} since={Date.parse(row.at)} />;
  return (
    <>
      <span class="number">{duration(row.duration_ns)}</span>
      <Bar first={first} end={row.duration_ns ?? first} running={false} />
    </>
  );
}

/** An exchange that runs: what has passed by the clock of the page. */
function Elapsed({ row, since }: { row: Row; since: number }) {
  const passed = Math.max(0, now.value - since) * 1e6;
  return (
    <>
      <span class="number">{duration(passed)}</span>
      <Bar first={row.first_event_ns} end={passed} running />
    </>
  );
}

/** Until the first event, and from it to the end. */
function Bar(props: { first: number | null; end: number | null; running: boolean }) {
  if (props.end === null) return <span class="timing" />;
  const end = along(props.end);
  const first = props.first === null ? end : Math.min(along(props.first), end);
  return (
    <span class={props.running ? "timing running" : "timing"} aria-hidden="true">
      <span class="waited" style={{ width: `${first}%` }} />
      <span class="streamed" style={{ left: `${first}%`, width: `${end - first}%` }} />
      {props.first !== null && <span class="first-event" style={{ left: `${first}%` }} />}
    </span>
  );
}

function Tokens({ tokens }: { tokens: Row["tokens"] }) {
  if (!tokens) return <span class="muted">-</span>;
  return (
    <>
      {short(tokens.input)}
      <span aria-hidden="true"> → </span>
      <span class="unseen"> in, </span>
      {short(tokens.output)}
      <span class="unseen"> out</span>
    </>
  );
}

function short(count: number | null): string {
  if (count === null) return "?";
  if (count < 1000) return String(count);
  return count < 1e6
    ? `${(count / 1000).toFixed(count < 1e4 ? 1 : 0)}k`
    : `${(count / 1e6).toFixed(1)}M`;
}

const refusal = (row: Row) => (row.status !== null && row.status >= 400 ? row.status : null);
/** Whether the ending is worth a look by itself. */
const isOdd = (row: Row) => row.open || row.ending !== "complete" || refusal(row) !== null;

function Ending({ row }: { row: Row }) {
  if (row.open) {
    return (
      <span class="recording">
        <span class="pulse" aria-hidden="true" /> running
      </span>
    );
  }
  const odd = isOdd(row);
  const ending = row.ending?.replaceAll("_", " ") ?? "unknown";
  const status = refusal(row);
  return (
    <span class={odd ? "severity-warning" : "muted"} title={status === null ? ending : undefined}>
      {status !== null ? `HTTP ${status}` : odd ? ending : <Complete finish={row.finish} />}
    </span>
  );
}

/** What the provider says about a complete reply tells more than that it is complete. */
function Complete({ finish }: { finish: string | null }) {
  if (finish === null) return <>complete</>;
  return (
    <>
      <span aria-hidden="true">✓</span>
      <span class="unseen">complete,</span> <SafeText text={finish} />
    </>
  );
}
