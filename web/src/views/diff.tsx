// Two exchanges, or both sides of a hop: which calls it damaged, and what it did to each event.
import type { ComponentChildren } from "preact";
import { type Piece, Pieces, points } from "../components/pieces";
import { Shown } from "../components/states";
import { SafeText } from "../components/text";
import { plural } from "../format";
import { useLoaded } from "../load";
import { type Ref, toExchange } from "../router";
import type { CallChange, Change, DiffDocument, Difference, Hop, Side } from "../schema/diff";
import { source } from "../source";

export function DiffView({ one, other }: { one: Ref; other: Ref }) {
  const key = `${one.tape}#${one.exchange} ${other.tape}#${other.exchange}`;
  const loaded = useLoaded(key, () => source.diff(one, other));
  return (
    <Shown of={loaded} what="the difference">
      {(diff) => <TheDiff diff={diff} one={one} other={other} />}
    </Shown>
  );
}

interface Sides {
  left: Ref;
  right: Ref;
}

function TheDiff({ diff, one, other }: { diff: DiffDocument; one: Ref; other: Ref }) {
  const sides = { left: one, right: other };
  return (
    <article class="diff">
      {diff.hops.map((hop) => (
        <HopShown key={`${hop.left.name}${hop.right.name}`} hop={hop} sides={sides} />
      ))}
    </article>
  );
}

const DAMAGE = {
  lost: "is only on the left",
  added: "is only on the right",
  arguments: "has other arguments",
  identity: "has another id or name",
};

/** What a hop did, in a line. */
function inWords(hop: Hop): string {
  // A call may differ in several ways.
  const damaged = new Set(
    hop.calls
      .filter((each) => each.damage !== "added")
      .map(({ choice, left }) => `${choice} ${left?.index} ${left?.id}`),
  );
  if (damaged.size > 0) return plural(damaged.size, "call differs", "calls differ");
  if (hop.reply.length > 0) return "The replies differ; the calls do not";
  if (!hop.equal) return "The same reply, in other events";
  return "No difference but fields that are not compared";
}

function HopShown({ hop, sides }: { hop: Hop; sides: Sides }) {
  const damaged = hop.calls.some((each) => each.damage !== "added");
  return (
    <>
      <header class={`verdict-line ${damaged ? "wrong" : hop.equal ? "right" : ""}`}>
        <h1>{inWords(hop)}</h1>
        <p class="sides">
          <SideName side={hop.left} at={sides.left} word="left" />
          <SideName side={hop.right} at={sides.right} word="right" />
        </p>
        {hop.compared === "content" && (
          <p class="muted">The dialects differ, so what the events bring is compared.</p>
        )}
      </header>
      {hop.calls.length > 0 && (
        <Section title="Calls">
          {hop.calls.map((each, at) => (
            <CallShown key={at} change={each} sides={sides} />
          ))}
        </Section>
      )}
      {hop.reply.length > 0 && (
        <Section title="The reply">
          <Differences of={hop.reply} />
        </Section>
      )}
      <Section title="Event by event">
        <Changes changes={hop.changes} sides={sides} />
      </Section>
      {hop.framing.length > 0 && (
        <Section title="How events are framed">
          <Table
            label="Framing"
            heads={["what", "events", "left", "right"]}
            rows={hop.framing.map((each) => [
              each.what,
              each.events === null ? "the body" : String(each.events),
              <Text key="left" text={each.left} />,
              <Text key="right" text={each.right} />,
            ])}
          />
        </Section>
      )}
      {(hop.context ?? []).length > 0 && (
        <Section title="Around the answers">
          <Table
            label="Around the answers"
            heads={["part", "place", "left", "right"]}
            rows={(hop.context ?? []).map((each) => [
              each.part,
              <Text key="path" text={each.path} />,
              <Text key="left" text={each.left} />,
              <Text key="right" text={each.right} />,
            ])}
          />
        </Section>
      )}
      {hop.ignored.length > 0 && (
        <p class="muted">
          Not compared:{" "}
          {hop.ignored.map((each) => `${each.path} (${plural(each.events, "event")})`).join(", ")}
        </p>
      )}
    </>
  );
}

function SideName({ side, at, word }: { side: Side; at: Ref; word: string }) {
  return (
    <span>
      {word}:{" "}
      <a href={toExchange(at)}>
        <SafeText text={side.name} />
      </a>{" "}
      <span class="muted">
        {side.dialect}, {plural(side.events, "event")}
      </span>
    </span>
  );
}

function Section(props: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h2>{props.title}</h2>
      {props.children}
    </section>
  );
}

const Text = ({ text }: { text: string }) => <Pieces pieces={[{ text }]} none="(nothing)" />;

function CallShown({ change, sides }: { change: CallChange; sides: Sides }) {
  const { left, right, damage, cause } = change;
  const call = left ?? right;
  return (
    <div class="call-change">
      <h3>
        call {call?.index} <SafeText text={call?.name ?? "no name"} />{" "}
        <span class={damage === "added" ? "" : "wrong-word"}>{DAMAGE[damage]}</span>
      </h3>
      <div class="two">
        <SideOfCall call={left} word="left" pieces={sidePieces(change, "left")} />
        <SideOfCall call={right} word="right" pieces={sidePieces(change, "right")} />
      </div>
      {change.differences.length > 0 && <Differences of={change.differences} />}
      {cause && (
        <p>
          Because: {cause.kind}
          {cause.part && ` (${cause.part})`}, <Events of={cause} sides={sides} />
        </p>
      )}
    </div>
  );
}

/** A side's arguments; what the other side has not is marked. */
function sidePieces(change: CallChange, side: "left" | "right"): Piece[] {
  const text = change[side]?.arguments ?? "";
  if (!change.edits) return [{ text }];
  const all = points(text);
  const own = side === "left" ? "delete" : "insert";
  return change.edits
    .filter((each) => each.op === "equal" || each.op === own)
    .map((each) => ({
      text: all.slice(...each[side]).join(""),
      as: each.op === "equal" ? undefined : side === "left" ? "del" : "ins",
    }));
}

function SideOfCall(props: { call: CallChange["left"]; word: string; pieces: Piece[] }) {
  const { call, word, pieces } = props;
  if (!call) return <div class="call-card missing">not on the {word}</div>;
  return (
    <div class="call-card">
      <p>
        <span class="muted">{word}</span> <SafeText text={call.name ?? "no name"} />{" "}
        <span class="muted">
          <SafeText text={call.id ?? "no id"} />
        </span>{" "}
        {call.status.replaceAll("_", " ")}
      </p>
      <Pieces pieces={pieces} none="(no arguments)" />
    </div>
  );
}

function Differences({ of }: { of: Difference[] }) {
  return (
    <Table
      label="Differences"
      heads={["place", "left", "right"]}
      rows={of.map((each) => [
        <Text key="path" text={each.path} />,
        <del key="left">
          <SafeText text={each.left} />
        </del>,
        <ins key="right">
          <SafeText text={each.right} />
        </ins>,
      ])}
    />
  );
}

function Table(props: { label: string; heads: string[]; rows: ComponentChildren[][] }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="scrolls" tabIndex={0} aria-label={props.label}>
      <table>
        <thead>
          <tr>
            {props.heads.map((each) => (
              <th key={each} scope="col">
                {each}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {props.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, place) => (
                <td key={place}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

// Event by event.

const SIGNS: Record<Change["kind"], string> = {
  equal: "=",
  dropped: "−",
  inserted: "+",
  altered: "≠",
  "re-indexed": "#",
  merged: ">",
  split: "<",
  "re-cut": "|",
  moved: "↕",
};

const run = (events: readonly number[]) => {
  const [first] = events;
  const last = events.at(-1);
  if (first === undefined || last === undefined) return "-";
  return first === last ? String(first) : `${first}-${last}`;
};

function EventLinks({ events, at }: { events: readonly number[]; at: Ref }) {
  const [first] = events;
  if (first === undefined) return <span class="muted">-</span>;
  return <a href={toExchange(at, { event: String(first) })}>{run(events)}</a>;
}

function Events({ of, sides }: { of: Change; sides: Sides }) {
  return (
    <>
      events left <EventLinks events={of.left} at={sides.left} />, right{" "}
      <EventLinks events={of.right} at={sides.right} />
    </>
  );
}

/** Changes; neighbours that are equal are one row. */
function grouped(changes: readonly Change[]): Change[] {
  const rows: Change[] = [];
  for (const each of changes) {
    const last = rows.at(-1);
    if (last?.kind === "equal" && each.kind === "equal" && last.part === each.part) {
      rows[rows.length - 1] = {
        ...last,
        left: [...last.left, ...each.left],
        right: [...last.right, ...each.right],
      };
    } else rows.push(each);
  }
  return rows;
}

const MOST = 500; // rows that are drawn

function Changes({ changes, sides }: { changes: readonly Change[]; sides: Sides }) {
  const rows = grouped(changes);
  return (
    <>
      <Table
        label="Events"
        heads={["what became of it", "left", "right", "of", "difference"]}
        rows={rows.slice(0, MOST).map((each) => [
          <span key="kind" class={`kind is-${each.kind}`}>
            <span aria-hidden="true">{SIGNS[each.kind]}</span> {each.kind}
          </span>,
          <EventLinks key="left" events={each.left} at={sides.left} />,
          <EventLinks key="right" events={each.right} at={sides.right} />,
          each.part ?? "",
          each.differences.map((one) => (
            <p key={one.path}>
              <SafeText text={one.path} />:{" "}
              <del>
                <SafeText text={one.left} />
              </del>{" "}
              <ins>
                <SafeText text={one.right} />
              </ins>
            </p>
          )),
        ])}
      />
      {rows.length > MOST && (
        <p class="muted">
          {plural(rows.length - MOST, "more row")}: <code>deltatape diff</code> prints all.
        </p>
      )}
    </>
  );
}
