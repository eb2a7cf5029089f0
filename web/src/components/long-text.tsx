// A text of any length, of which only what is in view is in the page; its parts know their
// characters, so that a click finds the character, and a character is found by its number.
// biome-ignore-all lint/a11y/useSemanticElements: a textarea has no parts with colours
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isHidden, named } from "./text";

/** A part of a text that came together; in characters (Unicode code points). */
export interface TextPart {
  range: readonly [number, number];
  event: number | null;
  /** The class of its colour, where that is another one than that of the text. */
  hue?: string | undefined;
}

export interface LongTextProps {
  label: string;
  text: string;
  parts?: readonly TextPart[] | undefined;
  /** Lines break between words; else after any character, so that columns are kept. */
  prose?: boolean;
  /** The class of its colour. */
  hue?: string | undefined;
  /** The character that is selected, in code points. */
  at?: number | null | undefined;
  /** What is marked beside it: the characters that an event brought. */
  marked?: readonly [number, number] | null | undefined;
  /** A character was clicked, or reached by a key. */
  onAt?: ((at: number) => void) | undefined;
}

/** Between the code points that documents count and the units that strings have. */
class Points {
  private readonly units: Uint32Array | null = null;
  readonly length: number;

  constructor(text: string) {
    this.length = text.length;
    if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return;
    const units = new Uint32Array(text.length + 1);
    let count = 0;
    for (let unit = 0; unit < text.length; count++) {
      units[count] = unit;
      unit += (text.codePointAt(unit) as number) > 0xffff ? 2 : 1;
    }
    units[count] = text.length;
    this.units = units.subarray(0, count + 1);
    this.length = count;
  }

  unit(point: number): number {
    return this.units ? (this.units[Math.min(point, this.length)] ?? 0) : point;
  }

  point(unit: number): number {
    const units = this.units;
    if (!units) return unit;
    let low = 0;
    let high = units.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((units[middle] as number) <= unit) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Lines of a block: enough that few are drawn, few enough that one is cheap. */
const LINES = 8;
/** Below this, all of it is in the page: it can be searched and printed. */
const SMALL = 12_000;

/** Where blocks begin, in units: after whole lines if there are any, else after words or rows. */
function blockStarts(text: string, columns: number, prose: boolean): number[] {
  const size = columns * LINES;
  const starts = [];
  for (let at = 0; at < text.length; ) {
    starts.push(at);
    let end = at + size;
    if (end < text.length) {
      const line = text.lastIndexOf("\n", end - 1);
      const word = prose ? text.lastIndexOf(" ", end - 1) : -1;
      if (line >= at) end = line + 1;
      else if (word > at) end = word + 1;
      else if (/[\udc00-\udfff]/.test(text[end] ?? "")) end++;
    }
    at = end;
  }
  return starts;
}

const endOf = (starts: number[], index: number, text: string) => starts[index + 1] ?? text.length;

export function LongText(props: LongTextProps) {
  const { text, parts = [], at, marked, prose = false } = props;
  const box = useRef<HTMLDivElement>(null);
  const [columns, setColumns] = useState(80);
  const points = useMemo(() => new Points(text), [text]);
  const starts = useMemo(
    () => (text.length <= SMALL ? [0] : blockStarts(text, columns, prose)),
    [text, columns, prose],
  );

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const fit = () => {
      const probe = document.createElement("span");
      probe.textContent = "0".repeat(100);
      probe.className = "long-text-probe";
      element.append(probe);
      const letter = probe.getBoundingClientRect().width / 100;
      probe.remove();
      const inner = element.clientWidth - 18;
      if (letter > 0 && inner > 0) setColumns(Math.max(10, Math.floor(inner / letter)));
    };
    fit();
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);

  const virtual = useVirtualizer({
    count: starts.length,
    getScrollElement: () => box.current,
    estimateSize: () => LINES * 20,
    overscan: 4,
  });

  const selected = at === null || at === undefined ? null : points.unit(at);
  const target = selected ?? (marked ? points.unit(marked[0]) : null);
  useEffect(() => {
    if (target === null || target >= Math.max(1, text.length)) return;
    const block = firstAfter(starts, target) - 1;
    if (starts.length > 1) virtual.scrollToIndex(block, { align: "auto" });
    const frame = requestAnimationFrame(() =>
      box.current?.querySelector(".long-text-at, .long-text-marked")?.scrollIntoView({
        block: "nearest",
      }),
    );
    return () => cancelAnimationFrame(frame);
  }, [target, starts, text]);

  const partAt = (point: number) => {
    let low = 0;
    let high = parts.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const [from, to] = (parts[middle] as TextPart).range;
      if (point < from) high = middle - 1;
      else if (point >= to) low = middle + 1;
      else return middle;
    }
    return -1;
  };

  const click = (event: MouseEvent) => {
    if (!props.onAt || (getSelection()?.toString().length ?? 0) > 0) return;
    const unit = unitAt(event);
    if (unit !== null && unit < text.length) props.onAt(points.point(unit));
  };
  const press = (event: KeyboardEvent) => {
    if (!props.onAt || event.ctrlKey || event.metaKey || event.altKey) return;
    const now = at ?? -1;
    const part = partAt(Math.max(0, now));
    const keys: Record<string, number | undefined> = {
      ArrowLeft: now - 1,
      ArrowRight: now + 1,
      ArrowUp: parts[Math.max(0, part - 1)]?.range[0],
      ArrowDown: parts[Math.min(parts.length - 1, part + 1)]?.range[0],
      Home: 0,
      End: points.length - 1,
    };
    const next = keys[event.key];
    if (next === undefined) return;
    event.preventDefault();
    props.onAt(Math.min(points.length - 1, Math.max(0, next)));
  };

  const block = (index: number) => (
    <Block
      text={text}
      from={starts[index] ?? 0}
      to={endOf(starts, index, text)}
      points={points}
      parts={parts}
      first={parts.length ? firstPart(parts, points.point(starts[index] ?? 0)) : 0}
      selected={selected}
      marked={marked ? [points.unit(marked[0]), points.unit(marked[1])] : null}
    />
  );
  return (
    <div
      ref={box}
      class={`long-text mono ${prose ? "prose" : ""} ${props.hue ?? ""}`}
      role="textbox"
      aria-readonly="true"
      aria-multiline="true"
      tabIndex={0}
      aria-label={props.label}
      data-clicks={props.onAt ? "" : undefined}
      onClick={click}
      onKeyDown={press}
    >
      {starts.length > 1 ? (
        <div class="long-text-whole" style={{ height: `${virtual.getTotalSize()}px` }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              class="long-text-block"
              style={{ transform: `translateY(${item.start}px)` }}
            >
              {block(item.index)}
            </div>
          ))}
        </div>
      ) : (
        block(0)
      )}
    </div>
  );
}

/** The first index whose start is after `unit`. */
function firstAfter(starts: number[], unit: number): number {
  let low = 0;
  let high = starts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((starts[middle] as number) <= unit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The first part that ends after `point`. */
function firstPart(parts: readonly TextPart[], point: number): number {
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((parts[middle] as TextPart).range[1] <= point) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface BlockProps {
  text: string;
  from: number;
  to: number;
  points: Points;
  parts: readonly TextPart[];
  first: number;
  selected: number | null;
  marked: readonly [number, number] | null;
}

function Block({ text, from, to, points, parts, first, selected, marked }: BlockProps) {
  // Cut where a part, what is marked, or what is selected begins or ends.
  const cuts = new Set([from, to]);
  const cut = (unit: number) => unit > from && unit < to && cuts.add(unit);
  if (selected !== null) {
    cut(selected);
    cut(selected + ((text.codePointAt(selected) ?? 0) > 0xffff ? 2 : 1));
  }
  if (marked) for (const unit of marked) cut(unit);
  const partOf: [number, number][] = [];
  for (let index = first; index < parts.length; index++) {
    const [start, end] = (parts[index] as TextPart).range;
    const unit = points.unit(start);
    if (unit >= to) break;
    cut(unit);
    cut(points.unit(end));
    partOf.push([unit, index]);
  }
  const edges = [...cuts].sort((one, other) => one - other);
  let part = 0;
  return (
    <>
      {edges.slice(0, -1).map((start, index) => {
        const end = edges[index + 1] as number;
        while (part + 1 < partOf.length && (partOf[part + 1]?.[0] ?? to) <= start) part++;
        const number = partOf[part]?.[1];
        const classes = [
          number === undefined ? "" : number % 2 ? "part-odd" : "part-even",
          (number !== undefined && parts[number]?.hue) || "",
          marked && start >= marked[0] && start < marked[1] ? "long-text-marked" : "",
          start === selected ? "long-text-at" : "",
        ]
          .filter(Boolean)
          .join(" ");
        return <Run key={start} text={text} from={start} to={end} classes={classes} />;
      })}
    </>
  );
}

/** Characters without a boundary between them; hidden ones are made visible. */
function Run({
  text,
  from,
  to,
  classes,
}: {
  text: string;
  from: number;
  to: number;
  classes: string;
}) {
  const runs = [];
  let start = from;
  for (let unit = from; unit < to; ) {
    const wide = (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1;
    const character = text.slice(unit, unit + wide);
    if (isHidden(character)) {
      if (start < unit) {
        runs.push(
          <span key={start} data-unit={start} class={classes}>
            {text.slice(start, unit)}
          </span>,
        );
      }
      runs.push(
        <span key={unit} data-unit={unit} data-one="" class={`hidden-character ${classes}`}>
          {named(character)}
        </span>,
      );
      start = unit + wide;
    }
    unit += wide;
  }
  if (start < to) {
    runs.push(
      <span key={start} data-unit={start} class={classes}>
        {text.slice(start, to)}
      </span>,
    );
  }
  return <>{runs}</>;
}

/** The unit of the text under the pointer. */
function unitAt(event: MouseEvent): number | null {
  let node: Node | null = null;
  let offset = 0;
  if ("caretPositionFromPoint" in document) {
    const caret = document.caretPositionFromPoint(event.clientX, event.clientY);
    node = caret?.offsetNode ?? null;
    offset = caret?.offset ?? 0;
  } else {
    const range = (
      document as unknown as {
        caretRangeFromPoint(x: number, y: number): Range | null;
      }
    ).caretRangeFromPoint(event.clientX, event.clientY);
    node = range?.startContainer ?? null;
    offset = range?.startOffset ?? 0;
  }
  const run = (node instanceof Element ? node : node?.parentElement)?.closest<HTMLElement>(
    "[data-unit]",
  );
  if (!run || !node) return null;
  const start = Number(run.dataset.unit);
  if ("one" in run.dataset || !(node instanceof Text)) return start;
  // The caret is at the nearer edge of the character: after it, where its right half was clicked.
  if (offset > 0) {
    const range = document.createRange();
    range.setStart(node, offset - 1);
    range.setEnd(node, offset);
    const box = range.getBoundingClientRect();
    const within = event.clientX >= box.left && event.clientX < box.right;
    if (within && event.clientY >= box.top && event.clientY < box.bottom) offset--;
  }
  return start + Math.min(offset, node.length - 1);
}
