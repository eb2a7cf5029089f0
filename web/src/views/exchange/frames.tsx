// What was read of the frames of both sides of a WebSocket.
import { LongText } from "../../components/long-text";
import { SafeText } from "../../components/text";
import { bytes, duration, plural } from "../../format";
import type { Reading } from "./documents";
import type { TabProps } from "./events";
import { type Column, Grid } from "./grid";
import { indented } from "./json-text";

const ARROWS = { client: "app →", server: "← provider" };

export function FramesTab({ docs, at }: TabProps) {
  const { frames, axis } = docs.show;
  const origin = axis.request_ns;
  const selected = at.read.value ?? -1;
  const shown = frames[selected];
  const completed = selected >= 0 ? docs.completedBy(selected) : [];
  const columns: Column<Reading>[] = [
    { title: "frame", width: "3.5rem", class: "number", cell: (_, index) => index },
    {
      title: "time",
      width: "5.5rem",
      class: "number",
      cell: (each) => (each.t_ns === null || origin === null ? "-" : duration(each.t_ns - origin)),
    },
    { title: "from", width: "6rem", cell: (each) => ARROWS[each.side ?? "server"] },
    { title: "kind", width: "7rem", from: 480, cell: (each) => each.frame },
    { title: "bytes", width: "5rem", from: 560, class: "number", cell: (each) => each.bytes },
    {
      title: "data",
      width: "minmax(6rem, 1fr)",
      cell: (each) => (
        <span class="mono">
          <SafeText text={(each.data ?? each.hex ?? "").slice(0, 300)} />
        </span>
      ),
    },
  ];
  return (
    <div class="split">
      <div class="split-list">
        <p class="muted">{plural(frames.length, "piece")} of frames, as they were read</p>
        <Grid
          label="Frames of the WebSocket"
          rows={frames}
          columns={columns}
          selected={selected}
          none="No frames came over the WebSocket."
          rowClass={(each) => (each.side === "client" ? "from-client" : "")}
          onSelect={(index) => at.selectRead(index, docs.completedBy(index).at(-1)?.event ?? null)}
        />
      </div>
      <section class="split-detail" aria-label="The selected frame" aria-live="polite">
        {shown ? (
          <>
            <h2>
              Frame {selected}: {shown.frame}, {ARROWS[shown.side ?? "server"]}
            </h2>
            <p class="muted">
              {bytes(shown.bytes)}
              {shown.line === null ? "" : `, tape line ${shown.line}`}
              {completed.length
                ? `, completes event ${completed.map((e) => e.event).join(", ")}`
                : ""}
            </p>
            <LongText
              label={`Data of frame ${selected}`}
              text={shown.data === undefined ? (shown.hex ?? "") : indented(shown.data)}
            />
          </>
        ) : (
          <p class="muted">
            Select a frame: click it, or press <kbd>j</kbd>.
          </p>
        )}
      </section>
    </div>
  );
}
