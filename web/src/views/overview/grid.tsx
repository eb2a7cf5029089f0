// The list: only the lines that one sees are there, and they stay in place while others come.
import { defaultRangeExtractor, useVirtualizer, type VirtualItem } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useReducer, useRef, useState } from "preact/hooks";
import { compared, toChosen } from "../../compare";
import { changed, filterOf } from "../../filters";
import { useKeys } from "../../keys";
import { away } from "../../live";
import { go, toExchange, toOverview } from "../../router";
import type { Rows } from "../../rows";
import type { Row } from "../../source";
import { gutterWidth, keyOf, layOut, MarkLegend, type Place } from "../../threads";
import { COLUMNS, RowLine, Scale } from "./line";

/** Heights of a row and of the head, as in overview.css. */
const WIDE = { row: 30, head: 44 };
const NARROW = { row: 58, head: 0 };
const NARROW_WIDTH = "(max-width: 56rem)";
/** How many rows beyond those shown are asked for, too. */
export const AHEAD = 30;
const OVERSCAN = 4;
/** How many lines are drawn anew in one frame: a screen of them at once stops a slow computer. */
const LINES_A_FRAME = 4;

/** Where one was in the list, for coming back to it. */
let left: { key: string; offset: number; active: number } | null = null;

export const withOrder = (query: URLSearchParams, order: string) =>
  changed(query, { order: order === "-at" ? "" : order });

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

export function Grid(props: {
  rows: Rows;
  query: URLSearchParams;
  listKey: string;
  total: number;
}) {
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
    if (row) go(toChosen(row));
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
    const plain = !(event.ctrlKey || event.metaKey || event.shiftKey);
    if (row && compared.value && plain) {
      event.preventDefault(); // the link leads to the exchange alone
      go(toChosen(row));
    } else if (row && !acts) go(toExchange(row));
  };

  const activeRow = rows.at(active);
  const lit = activeRow ? `${activeRow.thread}#${activeRow.tape}` : null;
  const items = virtual.getVirtualItems();
  // Lines that leave at one end are used again at the other: that takes less than new ones.
  const pool = useRef(0);
  pool.current = Math.max(pool.current, items.length);
  const outside = (index: number) => index < from - OVERSCAN || index > until + OVERSCAN;
  const lineOf = (index: number) => (outside(index) ? "active" : index % pool.current);
  const wanted = items.map((item) => ({
    item,
    line: lineOf(item.index),
    row: rows.at(item.index),
  }));
  const inFrame = useFrames(wanted);
  const isLate = inFrame.some(({ row }, i) => row !== wanted[i]?.row);
  const lines = useOrder(inFrame, virtual.isScrolling || isLate);
  const oneTape = query.has("tape");
  return (
    <>
      {rows.problem !== null && !away.value && (
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
          {lines.map(({ item, line, row }) => (
            <RowLine
              key={line}
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
          ))}
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

interface Line {
  item: VirtualItem;
  /** Which element shows it. */
  line: number | string;
  row: Row | undefined;
}

/** What the lines show in this frame: where too many are new, the rest follow in the next ones. */
function useFrames(wanted: Line[]): Line[] {
  const drawn = useRef(new Map<Line["line"], Row | undefined>());
  const [, draw] = useReducer((frames: number, _: null) => frames + 1, 0);
  /** How many lines this frame may still draw, and whether it left out some. */
  const frame = useRef({ left: LINES_A_FRAME, late: false, next: 0 }).current;
  frame.late = false;
  const shown = wanted.map((each) => {
    const before = drawn.current.get(each.line);
    if (each.row === undefined || each.row === before || frame.left-- > 0) return each;
    frame.late = true;
    return { ...each, row: before && keyOf(before) === keyOf(each.row) ? before : undefined };
  });
  useLayoutEffect(() => {
    drawn.current = new Map(shown.map(({ line, row }) => [line, row]));
    if (frame.left === LINES_A_FRAME || frame.next) return;
    frame.next = requestAnimationFrame(() => {
      frame.left = LINES_A_FRAME;
      frame.next = 0;
      if (frame.late) draw(null);
    });
  });
  useEffect(() => () => cancelAnimationFrame(frame.next), []);
  return shown;
}

/** The lines in the order of the list; while these change, in that of before.
 *
 * An element that moves among others is laid out anew with all that is in it.
 */
function useOrder(lines: Line[], change: boolean): Line[] {
  const before = useRef(new Map<Line["line"], number>());
  const rank = ({ line }: Line) => before.current.get(line) ?? before.current.size;
  const ordered = change ? lines.toSorted((one, other) => rank(one) - rank(other)) : lines;
  useLayoutEffect(() => {
    before.current = new Map(ordered.map(({ line }, i) => [line, i]));
  });
  return ordered;
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
