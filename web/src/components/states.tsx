// What is shown while there is nothing to show.
import type { ComponentChildren } from "preact";
import type { Loaded } from "../load";

/** Nothing is there: what that means, and what to do next. */
export function Empty(props: { what: string; children?: ComponentChildren }) {
  return (
    <section class="empty">
      <h2>{props.what}</h2>
      <p>{props.children}</p>
    </section>
  );
}

/** How far something is; `part` of 1, where `done` of `of` says too little. */
export function Progress(props: { what: string; done?: number; of?: number; part?: number }) {
  const bar =
    props.part === undefined ? { value: props.done, max: props.of } : { value: props.part };
  return (
    <p class="progress" role="status">
      <progress {...bar} aria-label={props.what} /> {props.what}
      {props.of ? ` ${props.done} of ${props.of}` : ""}
    </p>
  );
}

/** Draws what is loaded; until then a progress, or the problem in words. */
export function Shown<T>(props: {
  of: Loaded<T>;
  what: string;
  children: (value: T) => ComponentChildren;
}) {
  const { of } = props;
  if (of.state === "failed") {
    return (
      <section class="empty" role="alert">
        <h2>Could not load {props.what}</h2>
        <p>{of.problem}</p>
        <p>
          <button type="button" onClick={() => location.reload()}>
            Try again
          </button>
        </p>
      </section>
    );
  }
  if (of.value === null) return <Progress what={`Loading ${props.what}`} />;
  return <>{props.children(of.value)}</>;
}
