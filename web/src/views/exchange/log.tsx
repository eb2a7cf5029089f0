// What the recorded program printed around this exchange.
import { SafeText } from "../../components/text";
import { duration, plural } from "../../format";
import type { TabProps } from "./events";
import { type Column, Grid } from "./grid";

type Line = TabProps["docs"]["show"]["log"][number];

export function LogTab({ docs, at }: TabProps) {
  const { log, axis } = docs.show;
  const origin = axis.request_ns;
  const columns: Column<Line>[] = [
    {
      title: "time",
      width: "6rem",
      class: "number",
      cell: (each) => (origin === null ? "-" : duration(each.t_ns - origin)),
    },
    { title: "stream", width: "4.5rem", from: 480, cell: (each) => each.stream },
    {
      title: "line",
      width: "minmax(8rem, 1fr)",
      cell: (each) => (
        <span class={`mono ${each.stream === "stderr" ? "severity-error" : ""}`}>
          <SafeText text={(each.line ?? each.hex ?? "").slice(0, 1000)} />
        </span>
      ),
    },
  ];
  const selected = at.line.value ?? -1;
  const shown = log[selected];
  return (
    <div class="split-list">
      <p class="muted">
        {plural(log.length, "line")} that the app printed; times are since the request
      </p>
      <Grid
        label="Lines of the app's log"
        rows={log}
        columns={columns}
        selected={selected}
        none="The app printed nothing around this exchange. deltatape record -- COMMAND tapes what it prints."
        onSelect={(index) => at.selectLine(index)}
      />
      {shown && (
        <pre class="log-line">
          <SafeText text={(shown.line ?? shown.hex ?? "").slice(0, 100_000)} />
        </pre>
      )}
    </div>
  );
}
