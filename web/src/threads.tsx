// Conversations beside a list of exchanges, drawn as version control draws branches.
import type { Row } from "./source";

/** The most lanes; conversations beyond them are dots without lines. */
export const LANES = 6;
const LANE_PX = 12;

export type Mark = Row["marks"][number];
export const MARKS: Record<Mark, { label: string; says: string; grave: boolean }> = {
  "lost-call": {
    label: "lost call",
    says: "A later request goes on from this reply without one of its calls.",
    grave: true,
  },
  "orphan-result": {
    label: "orphan result",
    says: "The request has the result of a call that it does not have.",
    grave: true,
  },
  loop: { label: "loop", says: "The conversation repeats calls that it has.", grave: true },
  unanswered: {
    label: "unanswered",
    says: "No later request answers the calls of this reply.",
    grave: true,
  },
  retry: { label: "retry", says: "It asks again what failed before.", grave: false },
};

/** A line that ends at a row. */
export interface End {
  lane: number;
  /** Whether exchanges between the two rows are not shown. */
  gap: boolean;
}

/** What is drawn beside a row. */
export interface Place {
  lane: number;
  /** Lanes whose lines pass the row. */
  passing: End[];
  /** Lines to later exchanges; more than one: the conversation branches. */
  later: End[];
  /** The line to the earlier exchange; null: it begins a conversation. */
  earlier: End | null;
  /** There is an earlier exchange, but nothing to draw a line to. */
  stub: boolean;
  /** The same for places that look the same. */
  drawn: string;
}

export const keyOf = (row: { tape: string; exchange: number }) => `${row.exchange}#${row.tape}`;
const threadOf = (row: Row) => `${row.thread}#${row.tape}`;

interface Waiting {
  /** The key of the row that the line leads to. */
  target: string;
  gap: boolean;
}

/** Lay out rows that follow each other, the latest first.
 *
 * `whole`: whether nothing is left out between them, so that a line whose end is not among the
 * rows leads below the last one.
 */
export function layOut(rows: readonly Row[], whole: boolean): { places: Place[]; width: number } {
  const there = new Set(rows.map(keyOf));
  const earlierOf: (Waiting | null)[] = new Array(rows.length).fill(null);
  const lastOf = new Map<string, string>();
  for (let i = rows.length - 1; i >= 0; i--) {
    const row = rows[i] as Row;
    const thread = threadOf(row);
    if (row.before !== null) {
      const target = keyOf({ tape: row.tape, exchange: row.before });
      const near = lastOf.get(thread);
      if (there.has(target) || whole) earlierOf[i] = { target, gap: false };
      else if (near !== undefined) earlierOf[i] = { target: near, gap: true };
    }
    lastOf.set(thread, keyOf(row));
  }

  const lanes: (Waiting | null)[] = [];
  let width = 1;
  const places = rows.map((row, i): Place => {
    const key = keyOf(row);
    const later: End[] = [];
    lanes.forEach((waiting, lane) => {
      if (waiting?.target === key) later.push({ lane, gap: waiting.gap });
    });
    for (const end of later) lanes[end.lane] = null;
    let lane = later[0]?.lane ?? lanes.indexOf(null);
    if (lane < 0) lane = Math.min(lanes.length, LANES);
    const passing: End[] = [];
    lanes.forEach((waiting, at) => {
      if (waiting) passing.push({ lane: at, gap: waiting.gap });
    });
    const waiting = earlierOf[i] ?? null;
    const drawn = waiting !== null && lane < LANES;
    if (drawn) {
      while (lanes.length <= lane) lanes.push(null);
      lanes[lane] = waiting;
    }
    width = Math.max(width, lane + 1, ...passing.map((end) => end.lane + 1));
    const place = {
      lane,
      passing,
      later,
      earlier: drawn ? { lane, gap: waiting.gap } : null,
      stub: row.before !== null && !drawn,
    };
    return { ...place, drawn: JSON.stringify(place) };
  });
  return { places, width };
}

const x = (lane: number) => 8 + lane * LANE_PX;
export const gutterWidth = (lanes: number) => 4 + Math.max(lanes, 1) * LANE_PX;

/** The lines and the dot of a row; what they say is beside them in words. */
export function Gutter(props: {
  row: Row;
  place: Place;
  height: number;
  width: number;
  /** Whether later exchanges are below. */
  down: boolean;
  lit: boolean;
}) {
  const { row, place, height } = props;
  const middle = height / 2;
  const [late, early] = props.down ? [height, 0] : [0, height];
  const at = x(place.lane);
  return (
    <svg
      class={props.lit ? "gutter lit" : "gutter"}
      width={gutterWidth(props.width)}
      height={height}
      aria-hidden="true"
      focusable="false"
    >
      {place.passing.map((end) => (
        <path key={end.lane} class={lineClass(end)} d={`M${x(end.lane)} 0V${height}`} />
      ))}
      {place.later.map((end) => (
        <path
          key={`later-${end.lane}`}
          class={lineClass(end)}
          d={bend(x(end.lane), late, at, middle)}
        />
      ))}
      {place.earlier && <path class={lineClass(place.earlier)} d={`M${at} ${middle}V${early}`} />}
      {place.stub && (
        <path class="edge gap" d={`M${at} ${middle}V${middle + (early - middle) * 0.8}`} />
      )}
      <Dot x={at} y={middle} row={row} />
    </svg>
  );
}

const lineClass = (end: End) => `edge ${end.gap ? "gap " : ""}lane-${end.lane % LANES}`;

function bend(fromX: number, fromY: number, toX: number, toY: number): string {
  if (fromX === toX) return `M${fromX} ${fromY}V${toY}`;
  return `M${fromX} ${fromY}C${fromX} ${toY} ${fromX} ${toY} ${toX} ${toY}`;
}

/** One shape for each mark: none is told by its colour alone. */
function Dot({ x, y, row }: { x: number; y: number; row: Row }) {
  const mark = (Object.keys(MARKS) as Mark[]).find((each) => row.marks.includes(each));
  const shape = SHAPES[mark ?? (row.open ? "running" : "plain")];
  return (
    <g transform={`translate(${x} ${y})`} class={`dot ${mark ?? ""} ${row.open ? "running" : ""}`}>
      {shape}
    </g>
  );
}

const SHAPES = {
  plain: <circle r="3.5" class="full" />,
  running: <circle r="4" class="hollow" />,
  "lost-call": (
    <>
      <circle r="5.5" class="back" />
      <path d="M-4 -4L4 4M4 -4L-4 4" class="stroke" />
    </>
  ),
  "orphan-result": <path d="M0 -5L5 0L0 5L-5 0Z" class="hollow" />,
  loop: (
    <>
      <circle r="5.5" class="back" />
      <path d="M3.6 -2.6A4.4 4.4 0 1 0 4.4 0.6M4.6 -5V-2H1.6" class="stroke" />
    </>
  ),
  unanswered: (
    <>
      <circle r="5" class="hollow" />
      <path d="M0 -2.6V0.6M0 2.2V2.9" class="stroke" />
    </>
  ),
  retry: <path d="M-4 -4L1 0L-4 4ZM1 -4V4H3V-4Z" class="full" />,
};

/** The marks of an exchange in words. */
export function Marks({ row }: { row: Row }) {
  if (!row.marks.length) return null;
  return (
    <span class="marks">
      {row.marks.map((mark) => (
        <span key={mark} class={MARKS[mark].grave ? "mark grave" : "mark"} title={MARKS[mark].says}>
          {MARKS[mark].label}
        </span>
      ))}
    </span>
  );
}

/** What the shapes mean. */
export function MarkLegend() {
  return (
    <ul class="mark-legend">
      {(Object.keys(MARKS) as Mark[]).map((mark) => (
        <li key={mark}>
          <svg width="16" height="16" aria-hidden="true" focusable="false">
            <g transform="translate(8 8)" class={`dot ${mark}`}>
              {SHAPES[mark]}
            </g>
          </svg>
          <span>
            <strong>{MARKS[mark].label}</strong> {MARKS[mark].says}
          </span>
        </li>
      ))}
    </ul>
  );
}
