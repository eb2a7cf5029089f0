// The bytes of the response as they came, fetched as far as they are in view.
// biome-ignore-all lint/a11y/useSemanticElements: a textarea has no parts with colours
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { LongText } from "../../components/long-text";
import { Progress } from "../../components/states";
import { bytes } from "../../format";
import { useLoaded } from "../../load";
import type { Ref } from "../../router";
import { type RawBytes, source } from "../../source";
import type { Documents, Event } from "./documents";
import type { TabProps } from "./events";
import { hex, printable } from "./json-text";

const PIECE = 65_536;
/** Bytes of one page: the rows of more would be higher than a browser can scroll. */
const PAGE = 4 << 20;
const ROW = 22;

/** The last of them that begins at or before `byte`, if it has it. */
function holding<T extends { span?: readonly [number, number] }>(
  all: readonly T[],
  byte: number,
): number {
  let low = 0;
  let high = all.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const [from, to] = all[middle]?.span ?? [0, 0];
    if (byte < from) high = middle - 1;
    else if (byte >= to) low = middle + 1;
    else return middle;
  }
  return -1;
}

class Pieces {
  private readonly loaded = new Map<number, Uint8Array | null>();
  constructor(
    private readonly ref: Ref,
    private readonly changed: (problem: string | null) => void,
  ) {}

  byte(at: number): number | undefined {
    const piece = Math.floor(at / PIECE);
    const known = this.loaded.get(piece);
    if (known) return known[at - piece * PIECE];
    if (known === undefined) {
      this.loaded.set(piece, null);
      source.raw(this.ref, "response", piece * PIECE, PIECE).then(
        (raw) => {
          this.loaded.set(piece, raw.bytes);
          this.changed(null);
        },
        (error: unknown) => this.changed(String(error instanceof Error ? error.message : error)),
      );
    }
    return undefined;
  }
}

export function RawTab(props: TabProps & { of: Ref }) {
  const { docs, at } = props;
  const [as, setAs] = useState<"hex" | "text">("hex");
  const [page, setPage] = useState(0);
  const coded = docs.show.events.length > 0 && docs.show.events[0]?.first_read === null;
  const total = docs.show.response?.bytes ?? 0;
  const event = docs.event(at.event.value);
  const read = docs.show.reads[at.read.value ?? -1];
  const marked = coded ? null : (event?.span ?? read?.span ?? null);
  const start = marked?.[0];
  const size = as === "hex" ? PAGE : PIECE;
  useEffect(() => {
    if (start !== undefined) setPage(Math.floor(start / size));
  }, [start, size]);
  const from = page * size;
  if (!total) return <p>The response has no body.</p>;
  return (
    <div class="raw">
      <div class="toolbar">
        <fieldset class="choice" aria-label="Show the bytes as">
          <button type="button" aria-pressed={as === "hex"} onClick={() => setAs("hex")}>
            hex and ASCII
          </button>
          <button type="button" aria-pressed={as === "text"} onClick={() => setAs("text")}>
            text
          </button>
        </fieldset>
        <span class="muted">
          {bytes(total)} in {docs.show.reads.length.toLocaleString("en")} reads
        </span>
        {total > size && (
          <>
            <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
              Earlier bytes
            </button>
            <span>
              {from.toLocaleString("en")} to {Math.min(total, from + size).toLocaleString("en")}
            </span>
            <button type="button" disabled={from + size >= total} onClick={() => setPage(page + 1)}>
              Later bytes
            </button>
          </>
        )}
      </div>
      {coded && (
        <p class="muted">
          The body is compressed: bytes of events cannot be told in it. Events shows them decoded.
        </p>
      )}
      <Where docs={docs} event={event} read={at.read.value} />
      {as === "hex" ? (
        <Hex
          key={page}
          of={props.of}
          from={from}
          to={Math.min(total, from + PAGE)}
          marked={marked}
          onByte={(byte) => {
            const number = holding(docs.show.reads, byte);
            const found = coded ? -1 : holding(docs.show.events, byte);
            const event = docs.show.events[found];
            if (event) at.selectEvent(event.event, number >= 0 ? number : event.read);
            else if (number >= 0) at.selectRead(number, null);
          }}
          says={(byte) => saysOf(docs, byte, coded)}
        />
      ) : (
        <Text of={props.of} from={from} limit={PIECE} marked={marked} />
      )}
    </div>
  );
}

function saysOf(docs: Documents, byte: number, coded: boolean): string {
  const read = holding(docs.show.reads, byte);
  const event = coded ? -1 : holding(docs.show.events, byte);
  const number = docs.show.events[event]?.event;
  return `byte ${byte}${read < 0 ? "" : `, read ${read}`}${number === undefined ? "" : `, event ${number}`}`;
}

function Where(props: { docs: Documents; event: Event | undefined; read: number | null }) {
  const { docs, event, read } = props;
  const span = docs.show.reads[read ?? -1]?.span;
  return (
    <p class="origin" role="status">
      {event ? (
        <>
          <strong>Event {event.event}</strong>: bytes {event.span[0].toLocaleString("en")} to{" "}
          {event.span[1].toLocaleString("en")}
          {span && read !== null
            ? `; read ${read}: bytes ${span[0].toLocaleString("en")} to ${span[1].toLocaleString("en")}`
            : ""}
        </>
      ) : span && read !== null ? (
        <>
          <strong>Read {read}</strong>: bytes {span[0].toLocaleString("en")} to{" "}
          {span[1].toLocaleString("en")}
        </>
      ) : (
        <span class="muted">Click a byte to select its event and read.</span>
      )}
    </p>
  );
}

interface HexProps {
  of: Ref;
  from: number;
  to: number;
  marked: readonly [number, number] | null;
  onByte: (byte: number) => void;
  says: (byte: number) => string;
}

function Hex({ of, from, to, marked, onByte, says }: HexProps) {
  const box = useRef<HTMLDivElement>(null);
  const [columns, setColumns] = useState(16);
  const [, drawAgain] = useState(0);
  const [problem, setProblem] = useState<string | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const pieces = useMemo(
    () =>
      new Pieces(of, (told) => {
        setProblem(told);
        drawAgain((count) => count + 1);
      }),
    [of.tape, of.exchange],
  );
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const fit = () =>
      setColumns(element.clientWidth < 620 ? 8 : element.clientWidth < 1150 ? 16 : 32);
    fit();
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const virtual = useVirtualizer({
    count: Math.ceil((to - from) / columns),
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 4,
  });
  const target = cursor ?? marked?.[0];
  useEffect(() => {
    if (target !== undefined && target >= from && target < to) {
      virtual.scrollToIndex(Math.floor((target - from) / columns), { align: "auto" });
    }
  }, [target, columns, from]);
  useEffect(() => setCursor(null), [marked?.[0]]);

  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = cursor ?? marked?.[0] ?? from;
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns,
      PageUp: -columns * 16,
      PageDown: columns * 16,
    };
    const step = steps[event.key];
    if (event.key === "Enter") onByte(now);
    else if (step === undefined) return;
    else setCursor(Math.min(to - 1, Math.max(from, now + step)));
    event.preventDefault();
  };
  const click = (event: MouseEvent) => {
    const byte = (event.target as Element).closest<HTMLElement>("[data-byte]")?.dataset.byte;
    if (byte === undefined || (getSelection()?.toString().length ?? 0) > 0) return;
    onByte(Number(byte));
  };
  const look = (at: number) => {
    const inside = marked && at >= marked[0] && at < marked[1] ? "byte-marked" : "";
    return `${inside} ${at === cursor ? "byte-cursor" : ""}`.trim() || undefined;
  };
  return (
    <>
      {problem && <p role="alert">{problem}</p>}
      <div
        ref={box}
        class="hex mono"
        role="textbox"
        aria-readonly="true"
        aria-multiline="true"
        aria-label="Bytes of the response: arrow keys move, Enter selects the event"
        tabIndex={0}
        onKeyDown={press}
        onClick={click}
      >
        <div class="hex-rows" style={{ height: `${virtual.getTotalSize()}px` }}>
          {virtual.getVirtualItems().map((item) => {
            const first = from + item.index * columns;
            const places = Array.from(
              { length: Math.min(columns, to - first) },
              (_, index) => first + index,
            );
            return (
              <div
                key={item.key}
                class="hex-row"
                style={{ transform: `translateY(${item.start}px)` }}
              >
                <span class="muted hex-at">{first.toString(16).padStart(7, "0")}</span>
                <span class="hex-bytes">
                  {places.map((at) => {
                    const byte = pieces.byte(at);
                    return (
                      <span key={at} data-byte={at} class={look(at)}>
                        {byte === undefined ? ".." : hex(byte)}
                      </span>
                    );
                  })}
                </span>
                <span class="hex-text">
                  {places.map((at) => {
                    const byte = pieces.byte(at);
                    return (
                      <span key={at} data-byte={at} class={look(at)}>
                        {byte === undefined ? " " : printable(byte)}
                      </span>
                    );
                  })}
                </span>
              </div>
            );
          })}
        </div>
      </div>
      <p class="muted" role="status">
        {cursor === null ? "" : says(cursor)}
      </p>
    </>
  );
}

function Text(props: {
  of: Ref;
  from: number;
  limit: number;
  marked: readonly [number, number] | null;
}) {
  const { of, from, limit, marked } = props;
  const loaded = useLoaded<RawBytes>(`${of.tape}#${of.exchange}:${from}`, () =>
    source.raw(of, "response", from, limit),
  );
  const shown = useMemo(() => {
    if (loaded.value === null) return null;
    const decoder = new TextDecoder();
    const text = decoder.decode(loaded.value.bytes);
    // Bytes are not characters: what stands before the mark is decoded to count them.
    const point = (byte: number) =>
      [
        ...decoder.decode(
          (loaded.value as RawBytes).bytes.subarray(0, Math.min(limit, Math.max(0, byte - from))),
        ),
      ].length;
    const range: [number, number] | null =
      marked && marked[0] < from + limit && marked[1] > from
        ? [point(marked[0]), point(marked[1])]
        : null;
    return { text, range };
  }, [loaded.value, marked?.[0], marked?.[1], from]);
  if (loaded.state === "failed") return <p role="alert">{loaded.problem}</p>;
  if (!shown) return <Progress what="Loading the bytes" />;
  return <LongText label="The response as text" text={shown.text} marked={shown.range} />;
}
