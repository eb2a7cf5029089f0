// The time axis: lanes of marks with the gaps between them to scale, phases, and zones without
// progress. All marks of one lane and colour are one path, at most one per pixel, so that 100,000
// events cost no more than 100; SVG, so that it follows the theme and prints.
import { scaleLinear } from "d3-scale";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "../format";

export interface Mark {
  /** Unique on the axis: `event:12`. */
  key: string;
  /** Nanoseconds since the tape began; without times, the number of the event. */
  at: number;
  /** The class that gives its colour: `call-0`. */
  hue: string;
  /** For the pointer and for screen readers. */
  says: () => string;
  /** Its height in the lane, from 0 to 1. */
  weight?: number;
  /** Of a flag: written beside it where there is room. */
  label?: string;
  /** Of a flag: shown where there is room for one of several. */
  leads?: boolean;
}

export interface Lane {
  id: string;
  name: string;
  shape: "tick" | "flag";
  /** Ascending by `at`. */
  marks: readonly Mark[];
}

export interface Zone {
  kind: "phase" | "dead";
  from: number;
  to: number;
  label: string;
  /** Of the finding that is about it. */
  code?: string | null;
}

export interface TimeRange {
  from: number;
  to: number;
}

export interface TimeAxisProps {
  label: string;
  lanes: readonly Lane[];
  zones: readonly Zone[];
  /** All that there is to see. */
  range: TimeRange;
  /** What is shown at first; all of it if absent. */
  first?: TimeRange | undefined;
  /** What is 0 on the axis. */
  origin: number;
  /** Without times, the order of events is drawn. */
  unit: "time" | "order";
  /** Keys of marks, the one that the keyboard goes on from first. */
  selected: readonly string[];
  onSelect: (mark: Mark) => void;
}

const TICKS = 20;
const PHASES = 18;
const LANE = 24;
const MAP = 12;
/** The advance of a character of the small labels, about. */
const LETTER = 6.4;
/** Nothing is told apart within less than this. */
const LEAST_NS = 1000;

/** The first index whose mark is at or after `at`. */
function firstFrom(marks: readonly Mark[], at: number): number {
  let low = 0;
  let high = marks.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((marks[middle] as Mark).at < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nearest(marks: readonly Mark[], at: number): Mark | undefined {
  const after = firstFrom(marks, at);
  const right = marks[after];
  const left = marks[after - 1];
  if (!left || !right) return left ?? right;
  return at - left.at < right.at - at ? left : right;
}

interface Drawn {
  hue: string;
  path: string;
}

/** One path per colour, each pixel drawn once, as high as its highest mark. */
function ticks(
  lane: Lane,
  view: TimeRange,
  x: (at: number) => number,
  bottom: number,
  height: number,
): Drawn[] {
  const columns = new Map<string, Map<number, number>>();
  for (let index = firstFrom(lane.marks, view.from); index < lane.marks.length; index++) {
    const mark = lane.marks[index] as Mark;
    if (mark.at > view.to) break;
    let column = columns.get(mark.hue);
    if (!column) {
      column = new Map();
      columns.set(mark.hue, column);
    }
    const place = Math.round(x(mark.at));
    column.set(place, Math.max(column.get(place) ?? 0, mark.weight ?? 1));
  }
  return [...columns].map(([hue, column]) => ({
    hue,
    path: [...column]
      .map(([place, weight]) => `M${place} ${bottom}v${-Math.max(3, Math.round(weight * height))}`)
      .join(""),
  }));
}

interface Flag {
  mark: Mark;
  x: number;
  label: string;
  /** The label stands before it, since there is no room after it. */
  before: boolean;
  /** How many are hidden behind it, and the label of the last of them. */
  covers: number;
  other: string;
}

const FLAG = 9;
const labelWidth = (label: string) => FLAG + label.length * LETTER;

/** Flags with their labels: one that would run into another flag is left away.
 *
 * A flag stands for all that it would cover, under the label of the one that leads. */
function flags(
  lane: Lane,
  view: TimeRange,
  x: (at: number) => number,
  left: number,
  right: number,
): Flag[] {
  const shown: Flag[] = [];
  for (const mark of lane.marks) {
    if (mark.at < view.from || mark.at > view.to) continue;
    const place = Math.round(x(mark.at));
    const last = shown.at(-1);
    if (last && place - last.x < FLAG) {
      last.covers++;
      last.other = mark.label ?? "";
      if (mark.leads && !last.mark.leads) {
        last.mark = mark;
        [last.label, last.other] = [last.other, last.label];
      }
      continue;
    }
    shown.push({ mark, x: place, label: mark.label ?? "", before: false, covers: 0, other: "" });
  }
  let taken = left;
  shown.forEach((flag, index) => {
    if (flag.covers === 1 && flag.other) flag.label += `, ${flag.other}`;
    else if (flag.covers && flag.label) flag.label += ` +${flag.covers}`;
    const width = labelWidth(flag.label);
    const free = (shown[index + 1]?.x ?? right) - 4;
    if (flag.x + width <= free) {
      taken = flag.x + width;
    } else if (flag.x - width - 4 >= taken) {
      flag.before = true;
      taken = flag.x + FLAG;
    } else {
      flag.label = "";
      taken = flag.x + FLAG;
    }
  });
  return shown;
}

/** The widest of the texts that fits. */
const fitting = (room: number, ...texts: string[]) =>
  texts.find((text) => text.length * LETTER + 6 <= room) ?? "";

export function time(at: number, unit: "time" | "order", origin: number): string {
  return unit === "time" ? duration(at - origin) : `event ${Math.round(at)}`;
}

function tickLabel(value: number, step: number, unit: "time" | "order"): string {
  if (unit === "order") return Number.isInteger(value) ? String(value) : "";
  const [factor, name] = step >= 1 ? [1, "s"] : step >= 1e-4 ? [1e3, "ms"] : [1e6, "µs"];
  const number = (value * factor).toLocaleString("en", { maximumFractionDigits: 2 });
  return `${number} ${name}`;
}

export function TimeAxis(props: TimeAxisProps) {
  const { lanes, zones, range, origin, unit, selected } = props;
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [zoomed, setZoomed] = useState<TimeRange | null>(props.first ?? null);
  const [pointer, setPointer] = useState<{ x: number; y: number } | null>(null);
  const [dragged, setDragged] = useState<{ from: number; to: number } | null>(null);
  const hatch = useId();

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(Math.max(200, element.clientWidth)));
    watch.observe(element);
    setWidth(Math.max(200, element.clientWidth));
    return () => watch.disconnect();
  }, []);
  useEffect(() => setZoomed(props.first ?? null), [range.from, range.to]);

  const whole = Math.max(range.to - range.from, unit === "time" ? LEAST_NS : 1);
  const view = zoomed ?? { from: range.from, to: range.from + whole };
  const gutter = width < 560 ? 62 : 84;
  const right = width - 10;
  const scale = scaleLinear([view.from, view.to], [gutter, right]);
  const x = (at: number) => scale(at);
  const zonesTop = TICKS;
  const lanesTop = TICKS + PHASES + 4;
  const lanesBottom = lanesTop + lanes.length * LANE;
  const height = lanesBottom + 6 + (zoomed ? MAP : 0);

  const placed = useMemo(() => {
    const all = new Map<string, { mark: Mark; lane: number }>();
    lanes.forEach((lane, index) => {
      for (const mark of lane.marks) all.set(mark.key, { mark, lane: index });
    });
    return all;
  }, [lanes]);
  const current = selected.map((key) => placed.get(key)).find((each) => each !== undefined);

  const show = (from: number, span: number) => {
    const least = unit === "time" ? Math.min(LEAST_NS, whole) : Math.min(4, whole);
    const kept = Math.min(whole, Math.max(least, span));
    if (kept >= whole) return setZoomed(null);
    const start = Math.min(Math.max(from, range.from), range.from + whole - kept);
    setZoomed({ from: start, to: start + kept });
  };
  const zoom = (factor: number, around: number) => {
    const span = (view.to - view.from) * factor;
    show(around - ((around - view.from) / (view.to - view.from)) * span, span);
  };
  const pan = (share: number) => {
    const span = view.to - view.from;
    show(view.from + share * span, span);
  };
  const middle = () =>
    current && current.mark.at >= view.from && current.mark.at <= view.to
      ? current.mark.at
      : (view.from + view.to) / 2;

  // What is selected elsewhere comes into view here.
  const currentAt = current?.mark.at;
  useEffect(() => {
    if (currentAt === undefined || !zoomed) return;
    if (currentAt < zoomed.from || currentAt > zoomed.to) {
      const span = zoomed.to - zoomed.from;
      show(currentAt - span / 2, span);
    }
  }, [currentAt]);

  // The page scrolls with the wheel; with Ctrl, or Shift for the sides, the axis takes it.
  const wheel = useRef<(event: WheelEvent) => void>(() => {});
  wheel.current = (event) => {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!event.ctrlKey && !event.metaKey && !(sideways && zoomed)) return;
    event.preventDefault();
    if (sideways) pan((event.deltaX || event.deltaY) / 800);
    else zoom(1.0015 ** event.deltaY, scale.invert(event.offsetX));
  };
  useEffect(() => {
    const element = box.current;
    const act = (event: WheelEvent) => wheel.current(event);
    element?.addEventListener("wheel", act, { passive: false });
    return () => element?.removeEventListener("wheel", act);
  }, []);

  const markAt = (px: number, py: number, reach: number): Mark | undefined => {
    const lane = lanes[Math.floor((py - lanesTop) / LANE)];
    const within = (each: Lane | undefined) => {
      const mark = each && nearest(each.marks, scale.invert(px));
      return mark && Math.abs(x(mark.at) - px) <= reach ? mark : undefined;
    };
    return within(lane);
  };

  const step = (by: number) => {
    const lane = lanes[current?.lane ?? firstLane(lanes)];
    if (!lane?.marks.length) return;
    const now = current ? lane.marks.indexOf(current.mark) : by > 0 ? -1 : lane.marks.length;
    const mark = lane.marks[Math.min(lane.marks.length - 1, Math.max(0, now + by))];
    if (mark) props.onSelect(mark);
  };
  const change = (by: number) => {
    for (let lane = (current?.lane ?? 0) + by; lanes[lane]; lane += by) {
      const mark = nearest(lanes[lane]?.marks ?? [], current?.mark.at ?? view.from);
      if (mark) return props.onSelect(mark);
    }
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    PageUp: () => step(-10),
    PageDown: () => step(10),
    Home: () => step(Number.NEGATIVE_INFINITY),
    End: () => step(Number.POSITIVE_INFINITY),
    ArrowUp: () => change(-1),
    ArrowDown: () => change(1),
    "+": () => zoom(0.5, middle()),
    "=": () => zoom(0.5, middle()),
    "-": () => zoom(2, middle()),
    "0": () => setZoomed(null),
  };
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const run =
      event.shiftKey && event.key === "ArrowLeft"
        ? () => pan(-0.25)
        : event.shiftKey && event.key === "ArrowRight"
          ? () => pan(0.25)
          : keys[event.key];
    if (!run) return;
    event.preventDefault();
    run();
  };

  const place = (event: PointerEvent) => {
    const at = (event.currentTarget as HTMLElement).getBoundingClientRect();
    return { x: event.clientX - at.left, y: event.clientY - at.top };
  };
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    const { x: from } = place(event);
    setDragged({ from, to: from });
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent) => {
    const at = place(event);
    setPointer(at);
    if (dragged) setDragged({ from: dragged.from, to: at.x });
  };
  const up = (event: PointerEvent) => {
    const at = place(event);
    setDragged(null);
    if (!dragged) return;
    const [low, high] = [Math.min(dragged.from, at.x), Math.max(dragged.from, at.x)];
    if (high - low > 6) {
      const from = scale.invert(Math.max(low, gutter));
      show(from, scale.invert(Math.min(high, right)) - from);
    } else if (zoomed && at.y > lanesBottom + 2) {
      const share = (at.x - gutter) / (right - gutter);
      show(range.from + share * whole - (view.to - view.from) / 2, view.to - view.from);
    } else {
      const mark = markAt(at.x, at.y, 24);
      if (mark) props.onSelect(mark);
    }
  };

  const toSeconds = unit === "time" ? 1e9 : 1;
  const zero = unit === "time" ? origin : 0;
  const shownScale = scaleLinear(
    [(view.from - zero) / toSeconds, (view.to - zero) / toSeconds],
    [gutter, right],
  );
  const values = shownScale.ticks(Math.max(2, Math.floor((right - gutter) / 90)));
  const between = (values[1] ?? 1) - (values[0] ?? 0);
  const paths = useMemo(
    () =>
      lanes.map((lane, index) =>
        lane.shape === "tick"
          ? ticks(lane, view, x, lanesTop + (index + 1) * LANE - 3, LANE - 7)
          : [],
      ),
    [lanes, view.from, view.to, width],
  );
  const silences = zones.filter((each) => each.kind === "dead");
  const hovered = pointer && !dragged ? markAt(pointer.x, pointer.y, 6) : undefined;
  const marks = lanes[current?.lane ?? firstLane(lanes)]?.marks ?? [];

  return (
    <section class="axis" aria-label={props.label}>
      <div
        ref={box}
        class="axis-plot"
        role="slider"
        tabIndex={0}
        aria-label={`${props.label}: Left and Right select the next mark, Up and Down the lane, plus and minus zoom`}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, marks.length - 1)}
        aria-valuenow={current ? marks.indexOf(current.mark) : 0}
        aria-valuetext={current ? current.mark.says() : "nothing is selected"}
        onKeyDown={press}
        onPointerDown={down}
        onPointerMove={move}
        onPointerUp={up}
        onPointerCancel={() => setDragged(null)}
        onPointerLeave={() => setPointer(null)}
        onDblClick={() => setZoomed(null)}
      >
        <svg width={width} height={height} aria-hidden="true" focusable="false">
          <title>{props.label}</title>
          <defs>
            <pattern
              id={hatch}
              width="7"
              height="7"
              patternUnits="userSpaceOnUse"
              patternTransform="rotate(45)"
            >
              <rect class="axis-hatch" width="2.5" height="7" />
            </pattern>
            <clipPath id={`${hatch}-in`}>
              <rect x={gutter} y="0" width={Math.max(0, right - gutter + 10)} height={height} />
            </clipPath>
          </defs>
          {lanes.map((lane, index) => (
            <g key={lane.id}>
              <line
                class="axis-line"
                x1={0}
                x2={width}
                y1={lanesTop + (index + 1) * LANE}
                y2={lanesTop + (index + 1) * LANE}
              />
              <text class="axis-name" x={2} y={lanesTop + (index + 1) * LANE - 7}>
                {lane.name}
              </text>
            </g>
          ))}
          <g clip-path={`url(#${hatch}-in)`}>
            {values.map((value) => {
              const label = tickLabel(value, between, unit);
              return (
                <g key={value}>
                  <line
                    class="axis-grid"
                    x1={shownScale(value)}
                    x2={shownScale(value)}
                    y1={TICKS - 4}
                    y2={lanesBottom}
                  />
                  <text class="axis-tick" x={shownScale(value) + 3} y={TICKS - 7}>
                    {shownScale(value) + label.length * LETTER < right ? label : ""}
                  </text>
                </g>
              );
            })}
            {zones.map((zone) => {
              if (zone.to < view.from || zone.from > view.to) return null;
              const left = Math.max(gutter, x(zone.from));
              const end = Math.min(right, x(zone.to));
              const room = end - left;
              if (zone.kind === "phase" && room < 1) return null;
              const long = unit === "time" ? duration(zone.to - zone.from) : "";
              const dead = zone.kind === "dead";
              return (
                <g key={`${zone.kind}:${zone.from}:${zone.label}`} class={`axis-${zone.kind}`}>
                  <title>{`${zone.label}: ${long}${zone.code ? `, ${zone.code}` : ""}`}</title>
                  <rect
                    x={left}
                    y={zonesTop}
                    width={Math.max(1, room)}
                    height={dead ? lanesBottom - zonesTop : PHASES}
                    fill={dead ? `url(#${hatch})` : undefined}
                  />
                  <text x={left + room / 2} y={zonesTop + 13} text-anchor="middle">
                    {dead
                      ? fitting(
                          room,
                          `${long} without progress, ${zone.label}${zone.code ? ` (${zone.code})` : ""}`,
                          `${long} ${zone.label}`,
                          long,
                        )
                      : silences.some((other) => other.from < zone.to && other.to > zone.from)
                        ? ""
                        : fitting(room, zone.label)}
                  </text>
                </g>
              );
            })}
            {paths.map((drawn, index) =>
              drawn.map(({ hue, path }) => (
                <path key={`${lanes[index]?.id}:${hue}`} class={`axis-mark ${hue}`} d={path} />
              )),
            )}
            {lanes.map((lane, index) =>
              lane.shape === "flag"
                ? flags(lane, view, x, gutter, right).map(({ mark, x: at, label, before }) => (
                    <g key={mark.key} class={`axis-flag ${mark.hue}`}>
                      <path
                        d={`M${at} ${lanesTop + (index + 1) * LANE - 2}v${-(LANE - 6)}l7 4.5l-7 4.5`}
                      />
                      <text
                        x={before ? at - 4 : at + FLAG}
                        y={lanesTop + (index + 1) * LANE - 8}
                        text-anchor={before ? "end" : "start"}
                      >
                        {label}
                      </text>
                    </g>
                  ))
                : null,
            )}
            {selected.map((key) => {
              const each = placed.get(key);
              if (!each || each.mark.at < view.from || each.mark.at > view.to) return null;
              const at = Math.round(x(each.mark.at));
              const top = lanesTop + each.lane * LANE;
              return (
                <g key={key} class="axis-selected">
                  {each === current && <line x1={at} x2={at} y1={zonesTop} y2={lanesBottom} />}
                  <rect x={at - 4} y={top + 1} width={8} height={LANE - 2} rx={3} />
                </g>
              );
            })}
            {pointer && pointer.x > gutter && (
              <line
                class="axis-pointer"
                x1={pointer.x}
                x2={pointer.x}
                y1={zonesTop}
                y2={lanesBottom}
              />
            )}
            {dragged && Math.abs(dragged.to - dragged.from) > 6 && (
              <rect
                class="axis-drag"
                x={Math.min(dragged.from, dragged.to)}
                y={zonesTop}
                width={Math.abs(dragged.to - dragged.from)}
                height={lanesBottom - zonesTop}
              />
            )}
          </g>
          {zoomed && (
            <g class="axis-map">
              <rect x={gutter} y={lanesBottom + 6} width={right - gutter} height={MAP - 4} />
              <rect
                class="axis-map-view"
                x={gutter + ((view.from - range.from) / whole) * (right - gutter)}
                y={lanesBottom + 5}
                width={Math.max(4, ((view.to - view.from) / whole) * (right - gutter))}
                height={MAP - 2}
              />
            </g>
          )}
        </svg>
        {pointer && pointer.x > gutter && (
          <div
            class="axis-says"
            style={{
              top: `${height + 2}px`,
              ...(pointer.x < width / 2
                ? { left: `${pointer.x}px` }
                : { right: `${width - pointer.x}px` }),
            }}
          >
            {hovered ? hovered.says() : time(scale.invert(pointer.x), unit, origin)}
          </div>
        )}
      </div>
      <div class="axis-controls">
        <button type="button" aria-label="Zoom in" onClick={() => zoom(0.5, middle())}>
          +
        </button>
        <button
          type="button"
          aria-label="Zoom out"
          disabled={!zoomed}
          onClick={() => zoom(2, middle())}
        >
          −
        </button>
        <button type="button" disabled={!zoomed} onClick={() => pan(-0.5)} aria-label="Earlier">
          ←
        </button>
        <button type="button" disabled={!zoomed} onClick={() => pan(0.5)} aria-label="Later">
          →
        </button>
        <button type="button" disabled={!zoomed} onClick={() => setZoomed(null)}>
          All
        </button>
        <span class="muted">
          {unit === "time"
            ? `${duration(view.to - view.from)}${zoomed ? ` of ${duration(whole)}` : ""} shown; gaps to scale. Drag to zoom, Ctrl and wheel too.`
            : "No times were recorded: events stand in their order."}
        </span>
      </div>
    </section>
  );
}

/** Where the keyboard begins: the lane of events, else the first with marks. */
function firstLane(lanes: readonly Lane[]): number {
  const events = lanes.findIndex((lane) => lane.id === "events");
  return events >= 0
    ? events
    : Math.max(
        0,
        lanes.findIndex((lane) => lane.marks.length),
      );
}
