import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A modal window: the browser keeps the focus inside, and closes it with Escape. */
export function Dialog(props: { title: string; close: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} aria-label={props.title} onClose={props.close}>
      <header>
        <h2>{props.title}</h2>
        <button type="button" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </header>
      {props.children}
    </dialog>
  );
}
