// Findings and dead zones by day: as plots, and as a table of the same numbers.
import { effect } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { Empty, Shown } from "../components/states";
import { SafeText, safe } from "../components/text";
import { changed, cleared, dayFilter, FilterBar, filterOf } from "../filters";
import { duration, plural } from "../format";
import { news, returns } from "../live";
import { useLoaded } from "../load";
import { go, toOverview, toTrends } from "../router";
import { CODES } from "../schema/codes";
import type { TrendsDocument } from "../schema/trends";
import { source } from "../source";
import { theme } from "../theme";
import { NothingYet } from "./overview";

type Line = TrendsDocument["trends"][number];
/** A line of exchanges of which it is known when they were. */
type Trend = Line & { day: string };
type By = "model" | "provider" | "code";
const BYS: Record<By, string> = { model: "By model", provider: "By provider", code: "By finding" };

/** Groups with a colour of their own; the rest is one more. */
const OWN_COLOURS = 7;
const REST = "all others";
/** A series that is not split into groups. */
const ALL = "all";
const EVERY_MS = 5000;
const MOST_LINES = 200;
const HEIGHT = 190;

export function TrendsView({ query }: { query: URLSearchParams }) {
  const filter = filterOf(query);
  const tick = useTick();
  const loaded = useLoaded(`${filter} ${tick}`, async () => {
    const facets = new URLSearchParams(filter);
    facets.set("limit", "1");
    const [trends, exchanges, tapes] = await Promise.all([
      source.trends(filter),
      source.exchanges(facets),
      source.tapes(),
    ]);
    return { trends: trends.trends, exchanges, tapes: tapes.tapes };
  });
  const value = loaded.value;
  return (
    <div class="trends">
      <h1>Trends</h1>
      <FilterBar
        query={query}
        to={toTrends}
        facets={value?.exchanges.facets ?? null}
        tapes={value?.tapes.map((tape) => tape.path) ?? []}
        into={() => document.getElementById("trends-table")?.focus()}
      >
        <Ways query={query} />
      </FilterBar>
      <Shown of={loaded} what="the trends">
        {({ trends, exchanges, tapes }) => {
          if (exchanges.all === 0) return <NothingYet tapes={tapes} />;
          if (trends.length === 0) return <NoMatch query={query} all={exchanges.all} />;
          return (
            <>
              <Plots lines={trends} query={query} />
              <Numbers lines={trends} query={query} />
            </>
          );
        }}
      </Shown>
    </div>
  );
}

function NoMatch({ query, all }: { query: URLSearchParams; all: number }) {
  return (
    <Empty what="No exchange matches.">
      All {plural(all, "exchange")} are left out by the filter.{" "}
      <a href={toTrends(cleared(query))}>Clear the filters</a> to see them.
    </Empty>
  );
}

/** Goes up when there is something new, but not all the time. */
function useTick(): number {
  const [tick, set] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let seen = news.value?.revision;
    const stop = effect(() => {
      returns.value;
      const revision = news.value?.revision;
      if (revision === undefined || revision === seen) return;
      const first = seen === undefined;
      seen = revision;
      if (first || timer !== undefined) return;
      timer = setTimeout(() => {
        timer = undefined;
        set((before) => before + 1);
      }, EVERY_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
  return tick;
}

const byOf = (query: URLSearchParams): By => {
  const by = query.get("by");
  return by === "provider" || by === "code" ? by : "model";
};
const isRate = (query: URLSearchParams) => query.get("per") === "100";

function Ways({ query }: { query: URLSearchParams }) {
  const set = (values: Record<string, string>) => go(toTrends(changed(query, values)));
  return (
    <>
      <select
        aria-label="Group"
        value={byOf(query)}
        onChange={(event) => {
          const by = event.currentTarget.value;
          set({ by: by === "model" ? "" : by });
        }}
      >
        {Object.entries(BYS).map(([by, label]) => (
          <option key={by} value={by}>
            {label}
          </option>
        ))}
      </select>
      <select
        aria-label="Unit"
        value={isRate(query) ? "100" : ""}
        onChange={(event) => set({ per: event.currentTarget.value })}
      >
        <option value="">How many</option>
        <option value="100">Per 100 exchanges</option>
      </select>
    </>
  );
}

interface Series {
  name: string;
  values: number[];
}

const DAY_S = 86_400;
const secondsOf = (day: string) => Date.parse(`${day}T00:00:00Z`) / 1000;
const dayOf = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 10);

/** All days from the first to the last: a day without exchanges is one, too. */
function daysOf(trends: readonly Trend[]): number[] {
  const seconds = trends.map((trend) => secondsOf(trend.day));
  const days: number[] = [];
  const last = seconds.reduce((a, b) => Math.max(a, b), 0);
  for (let day = seconds.reduce((a, b) => Math.min(a, b), last); day <= last; day += DAY_S) {
    days.push(day);
  }
  return days;
}

/** A number for each day and group: `numbers` says what a trend adds to which groups. */
function seriesOf(
  trends: readonly Trend[],
  days: readonly number[],
  groups: readonly string[],
  numbers: (trend: Trend) => Iterable<[string, number]>,
): Series[] {
  const names = new Map(groups.map((name, i) => [name, i]));
  const rest = names.get(REST);
  const series = groups.map((name) => ({ name, values: days.map(() => 0) }));
  const first = days[0] ?? 0;
  for (const trend of trends) {
    const at = Math.round((secondsOf(trend.day) - first) / DAY_S);
    for (const [name, number] of numbers(trend)) {
      const one = series[names.get(name) ?? rest ?? 0];
      if (one) one.values[at] = (one.values[at] ?? 0) + number;
    }
  }
  return series;
}

/** In how many exchanges each code was found. */
const counts = (line: Line) =>
  line.codes.map(({ code, exchanges }): [string, number] => [code, exchanges]);

const groupOf = (trend: Trend, by: By) =>
  (by === "provider" ? trend.provider : trend.model) ?? `no ${by}`;

/** The groups, those with the most findings first. */
function groupsOf(trends: readonly Trend[], by: By): string[] {
  const sizes = new Map<string, number>();
  const add = (name: string, number: number) => sizes.set(name, (sizes.get(name) ?? 0) + number);
  for (const trend of trends) {
    if (by === "code") for (const [code, number] of counts(trend)) add(code, number);
    // The exchanges decide between groups with as many findings.
    else add(groupOf(trend, by), trend.findings + trend.exchanges / 1e9);
  }
  const names = [...sizes].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  if (names.length <= OWN_COLOURS + 1) return names;
  return [...names.slice(0, OWN_COLOURS), REST];
}

function Plots({ lines, query }: { lines: readonly Line[]; query: URLSearchParams }) {
  const trends = useMemo(() => lines.filter((line): line is Trend => line.day !== null), [lines]);
  const by = byOf(query);
  const rate = isRate(query);
  const drawn = useMemo(() => {
    const days = daysOf(trends);
    const groups = groupsOf(trends, by);
    const exchanges = seriesOf(trends, days, [ALL], (trend) => [[ALL, trend.exchanges]]);
    const perDay = exchanges[0]?.values ?? [];
    const scaled = (series: Series[]) =>
      rate
        ? series.map(({ name, values }) => ({
            name,
            values: values.map((value, i) => (perDay[i] ? (100 * value) / perDay[i] : 0)),
          }))
        : series;
    const split = by !== "code";
    return {
      days,
      groups,
      findings: scaled(
        seriesOf(trends, days, groups, (trend) =>
          split ? [[groupOf(trend, by), trend.findings]] : counts(trend),
        ),
      ),
      deadZones: scaled(
        seriesOf(trends, days, split ? groups : [ALL], (trend) => [
          [split ? groupOf(trend, by) : ALL, trend.dead_zones],
        ]),
      ),
      exchanges: split
        ? seriesOf(trends, days, groups, (trend) => [[groupOf(trend, by), trend.exchanges]])
        : exchanges,
    };
  }, [trends, by, rate]);
  if (trends.length === 0) {
    return <p class="muted">The tapes do not say when these exchanges were: there is no plot.</p>;
  }
  const unit = rate ? " per 100 exchanges" : "";
  const open = (day: string, name: string | null) => {
    const one = name === null || name === REST || name === ALL || name.startsWith("no ");
    go(toOverview(changed(filterOf(query), { ...dayFilter(day), ...(one ? {} : { [by]: name }) })));
  };
  return (
    <>
      <Legend groups={drawn.groups} by={by} query={query} />
      <div class="plots">
        <Plot
          title={`${by === "code" ? "Exchanges with the finding" : "Findings"}${unit}`}
          days={drawn.days}
          series={drawn.findings}
          open={open}
        />
        <Plot title={`Dead zones${unit}`} days={drawn.days} series={drawn.deadZones} open={open} />
        <Plot title="Exchanges" days={drawn.days} series={drawn.exchanges} open={open} />
      </div>
    </>
  );
}

const labelOf = (name: string) => (CODES[name] ? `${name} ${CODES[name].name}` : name);

function Legend(props: { groups: string[]; by: By; query: URLSearchParams }) {
  return (
    <ul class="plot-legend" aria-label={BYS[props.by]}>
      {props.groups.map((name, i) => {
        const others = name === REST || name.startsWith("no ");
        const label = (
          <>
            <Swatch index={i} /> <SafeText text={labelOf(name)} />
          </>
        );
        return (
          <li key={name}>
            {others ? (
              <span>{label}</span>
            ) : (
              <a
                href={toTrends(changed(props.query, { [props.by]: name }))}
                title={CODES[name]?.says ?? `Only ${safe(name)}`}
              >
                {label}
              </a>
            )}
          </li>
        );
      })}
    </ul>
  );
}

function Swatch({ index }: { index: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const look = useLook();
  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context) return;
    context.fillStyle = fillOf(context, index, look);
    context.fillRect(0, 0, 32, 32);
  }, [index, look]);
  return <canvas ref={canvas} width="32" height="32" class="swatch" />;
}

/** The colours of the theme as canvas wants them. */
interface Look {
  ground: string;
  text: string;
  line: string;
  calls: string[];
}

function lookNow(): Look {
  const probe = document.createElement("span");
  document.body.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    ground: colour("ground"),
    text: colour("muted"),
    line: colour("line"),
    calls: Array.from({ length: 8 }, (_, i) => colour(`call-${i}`)),
  };
  probe.remove();
  return look;
}

function useLook(): Look {
  const [look, set] = useState(lookNow);
  useEffect(() => {
    const media = matchMedia("(prefers-color-scheme: dark)");
    const change = () => set(lookNow());
    media.addEventListener("change", change);
    const stop = theme.subscribe(change);
    return () => {
      media.removeEventListener("change", change);
      stop();
    };
  }, []);
  return look;
}

/** Each group has a pattern besides its colour: none is told by the colour alone. */
const PATTERNS: ((draw: CanvasRenderingContext2D) => void)[] = [
  () => {},
  (draw) => lines(draw, [0, 8, 8, 0], [-2, 2, 2, -2], [6, 10, 10, 6]),
  (draw) => draw.fillRect(2, 2, 3, 3),
  (draw) => lines(draw, [0, 0, 8, 8], [-2, 6, 2, 10], [6, -2, 10, 2]),
  (draw) => draw.fillRect(0, 3, 8, 2),
  (draw) => draw.fillRect(3, 0, 2, 8),
  (draw) => lines(draw, [0, 0, 8, 8], [0, 8, 8, 0]),
  (draw) => {
    draw.fillRect(0, 0, 4, 4);
    draw.fillRect(4, 4, 4, 4);
  },
];

function lines(draw: CanvasRenderingContext2D, ...all: [number, number, number, number][]): void {
  draw.beginPath();
  for (const [x, y, toX, toY] of all) {
    draw.moveTo(x, y);
    draw.lineTo(toX, toY);
  }
  draw.stroke();
}

function fillOf(context: CanvasRenderingContext2D, index: number, look: Look) {
  if (index < 0) return look.text;
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const draw = tile.getContext("2d");
  if (!draw) return look.calls[index % 8] ?? look.text;
  draw.fillStyle = look.calls[index % 8] ?? look.text;
  draw.fillRect(0, 0, 8, 8);
  draw.fillStyle = draw.strokeStyle = look.ground;
  draw.lineWidth = 1.5;
  PATTERNS[index % PATTERNS.length]?.(draw);
  return context.createPattern(tile, "repeat") ?? look.text;
}

interface Hovered {
  at: number;
  left: number;
}

function Plot(props: {
  title: string;
  days: number[];
  series: Series[];
  open: (day: string, name: string | null) => void;
}) {
  const { title, days, series } = props;
  const root = useRef<HTMLDivElement>(null);
  const look = useLook();
  const [hovered, hover] = useState<Hovered | null>(null);
  const open = useRef(props.open);
  open.current = props.open;
  useEffect(() => {
    const element = root.current;
    if (!element) return;
    // Each on top of those before it; drawn from the highest to the lowest.
    const sums: number[][] = [];
    for (const { values } of series) {
      const below = sums.at(-1);
      sums.push(values.map((value, i) => value + (below?.[i] ?? 0)));
    }
    const plot = new uPlot(
      optionsOf(series, look, element.clientWidth, {
        hover,
        open: (at, height) => {
          const day = days[at];
          if (day === undefined) return;
          const part = sums.findIndex((sum) => height <= (sum[at] ?? 0));
          open.current(dayOf(day), series[part]?.name ?? null);
        },
      }),
      [days, ...sums.reverse()],
      element,
    );
    const sized = new ResizeObserver(() => {
      plot.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    sized.observe(element);
    return () => {
      sized.disconnect();
      plot.destroy();
    };
  }, [days, series, look]);
  const total = series.flatMap(({ values }) => values).reduce((sum, value) => sum + value, 0);
  const at = hovered?.at;
  return (
    <figure class="plot">
      <figcaption>
        <h2>{title}</h2>
        {total === 0 && <p class="muted">None in these days.</p>}
      </figcaption>
      <div
        ref={root}
        role="img"
        aria-label={`${title} by day, ${days.length === 1 ? "one day" : `${days.length} days`}${
          title.includes("per") ? "" : `, ${total} in all`
        }; the table below has the numbers`}
      />
      {hovered && at !== undefined && (
        <div class={hovered.left > 0.5 ? "readout at-left" : "readout"} aria-hidden="true">
          <strong>{dayOf(days[at] ?? 0)}</strong>
          {series.map(({ name, values }, i) =>
            values[at] ? (
              <div key={name}>
                <Swatch index={name === ALL ? -1 : i} /> <SafeText text={labelOf(name)} />:{" "}
                {number(values[at] ?? 0)}
              </div>
            ) : null,
          )}
          {series.every(({ values }) => !values[at]) && <div>none</div>}
        </div>
      )}
    </figure>
  );
}

const number = (value: number) => (Number.isInteger(value) ? String(value) : value.toFixed(1));

function optionsOf(
  series: readonly Series[],
  look: Look,
  width: number,
  acts: { hover: (at: Hovered | null) => void; open: (at: number, height: number) => void },
): uPlot.Options {
  const bars = uPlot.paths.bars?.({ size: [0.8, 48] });
  const axis = {
    stroke: look.text,
    grid: { stroke: look.line, width: 1 },
    ticks: { stroke: look.line, width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: false, y: false, setScale: false },
      sync: { key: "trends", setSeries: false },
    },
    scales: {
      x: { time: false, range: (_, first, last) => [(first ?? 0) - DAY_S, (last ?? 0) + DAY_S] },
      y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1) * 1.05] },
    },
    axes: [
      {
        ...axis,
        size: 30,
        grid: { show: false },
        splits: (plot) => labelled(plot.data[0] as number[], plot.width),
        values: (_, splits) => splits.map(dayLabel),
      },
      {
        ...axis,
        size: 48,
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 1e6],
      },
    ],
    series: [
      {},
      ...series
        .map((_, i): uPlot.Series => {
          const fill = (plot: uPlot) => fillOf(plot.ctx, series[i]?.name === ALL ? -1 : i, look);
          return { fill, width: 0, points: { show: false }, ...(bars ? { paths: bars } : {}) };
        })
        .reverse(),
    ],
    hooks: {
      setCursor: [
        (plot) => {
          const at = plot.cursor.idx;
          const left = plot.cursor.left ?? -1;
          const shown = left >= 0 && at !== null && at !== undefined;
          acts.hover(shown ? { at, left: left / plot.over.clientWidth } : null);
        },
      ],
      ready: [
        (plot) => {
          plot.over.addEventListener("click", () => {
            const at = plot.cursor.idx;
            const top = plot.cursor.top ?? -1;
            if (at !== null && at !== undefined) acts.open(at, plot.posToVal(top, "y"));
          });
        },
      ],
    },
  };
}

/** The days that have room for a label. */
function labelled(days: readonly number[], width: number): number[] {
  const every = Math.max(1, Math.ceil(days.length / Math.max(1, Math.floor(width / 80))));
  return days.filter((_, i) => (days.length - 1 - i) % every === 0);
}

const LABEL = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
const dayLabel = (seconds: number) => LABEL.format(new Date(seconds * 1000));

function Numbers({ lines, query }: { lines: readonly Line[]; query: URLSearchParams }) {
  const [all, showAll] = useState(false);
  const sorted = useMemo(
    () =>
      [...lines].sort(
        (a, b) => (b.day ?? "").localeCompare(a.day ?? "") || b.findings - a.findings,
      ),
    [lines],
  );
  return (
    <section class="numbers" id="trends-table" tabIndex={-1} aria-labelledby="trends-numbers">
      <h2 id="trends-numbers">The same in numbers</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
      <div class="numbers-table" tabIndex={0}>
        <table>
          <caption class="unseen">Findings and dead zones by day, provider and model</caption>
          <thead>
            <tr>
              <th scope="col">Day (UTC)</th>
              <th scope="col">Provider</th>
              <th scope="col">Model</th>
              <th scope="col">Exchanges</th>
              <th scope="col">With findings</th>
              <th scope="col">Findings</th>
              <th scope="col">Dead zones</th>
              <th scope="col">Silent for</th>
              <th scope="col">Exchanges by finding</th>
            </tr>
          </thead>
          <tbody>
            {(all ? sorted : sorted.slice(0, MOST_LINES)).map((line) => (
              <NumbersRow
                key={`${line.day} ${line.provider} ${line.model}`}
                line={line}
                query={query}
              />
            ))}
          </tbody>
        </table>
      </div>
      {!all && sorted.length > MOST_LINES && (
        <button type="button" onClick={() => showAll(true)}>
          Show all {sorted.length} lines
        </button>
      )}
    </section>
  );
}

function NumbersRow({ line, query }: { line: Line; query: URLSearchParams }) {
  const own = changed(filterOf(query), {
    ...(line.day ? dayFilter(line.day) : {}),
    ...(line.provider ? { provider: line.provider } : {}),
    ...(line.model ? { model: line.model } : {}),
  });
  return (
    <tr>
      <th scope="row">
        <a href={toOverview(own)}>{line.day ?? "no time"}</a>
      </th>
      <td>
        <SafeText text={line.provider ?? "-"} />
      </td>
      <td>
        <SafeText text={line.model ?? "-"} />
      </td>
      <td class="number">{line.exchanges}</td>
      <td class="number">{line.affected}</td>
      <td class="number">{line.findings}</td>
      <td class="number">{line.dead_zones}</td>
      <td class="number">{line.dead_zones ? duration(line.dead_ns) : "-"}</td>
      <td>
        {counts(line).map(([code, count]) => (
          <span key={code} class="code-count">
            <a href={toOverview(changed(own, { code }))} title={CODES[code]?.says}>
              <code>{code}</code> {CODES[code]?.name}
            </a>
            {count > 1 ? ` ×${count}` : ""}
          </span>
        ))}
      </td>
    </tr>
  );
}
