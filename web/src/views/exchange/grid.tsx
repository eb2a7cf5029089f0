// A list of rows of which only those in view are in the page, with one of them selected.
// biome-ignore-all lint/a11y/useSemanticElements: rows of a table cannot be placed one by one
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, see aria-activedescendant
// biome-ignore-all lint/a11y/useKeyWithClickEvents: the grid has the keys
import { useVirtualizer } from "@tanstack/react-virtual";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  title: string;
  /** As in grid-template-columns. */
  width: string;
  /** Left away where the list is narrower than this, in pixels. */
  from?: number;
  class?: string;
  cell: (row: T, index: number) => ComponentChildren;
}

export interface GridProps<T> {
  label: string;
  rows: readonly T[];
  columns: readonly Column<T>[];
  /** The index of the selected row; -1: none. */
  selected: number;
  onSelect: (index: number) => void;
  rowClass?: (row: T) => string;
  /** What is shown in the place of no rows. */
  none: string;
}

const ROW = 26;

export function Grid<T>(props: GridProps<T>) {
  const { rows, selected } = props;
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const [width, setWidth] = useState(600);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const watch = new ResizeObserver(() => setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => ROW,
    overscan: 12,
    scrollPaddingStart: ROW,
  });
  useEffect(() => {
    if (selected >= 0 && selected < rows.length) virtual.scrollToIndex(selected, { align: "auto" });
  }, [selected, rows.length]);

  const columns = props.columns.filter((each) => !each.from || width >= each.from);
  const template = { gridTemplateColumns: columns.map((each) => each.width).join(" ") };
  const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 260) / ROW) - 2);
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !rows.length) return;
    const keys: Record<string, number> = {
      ArrowUp: selected - 1,
      ArrowDown: selected + 1,
      PageUp: selected - page,
      PageDown: selected + page,
      Home: 0,
      End: rows.length - 1,
    };
    const next = keys[event.key];
    if (next === undefined) return;
    event.preventDefault();
    props.onSelect(Math.min(rows.length - 1, Math.max(0, next)));
  };
  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      tabIndex={0}
      style={{ height: `min(${(Math.max(2, rows.length) + 1) * ROW + 4}px, 58vh)` }}
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-activedescendant={
        selected >= 0 && virtual.getVirtualItems().some((each) => each.index === selected)
          ? `${id}-${selected}`
          : undefined
      }
      onKeyDown={press}
    >
      <div class="grid-row grid-head" role="row" aria-rowindex={1} style={template}>
        {columns.map((each) => (
          <span key={each.title} role="columnheader" class={each.class}>
            {each.title}
          </span>
        ))}
      </div>
      {rows.length === 0 && (
        <div role="row">
          <span role="gridcell" class="muted grid-none">
            {props.none}
          </span>
        </div>
      )}
      <div class="grid-rows" role="rowgroup" style={{ height: `${virtual.getTotalSize()}px` }}>
        {virtual.getVirtualItems().map((item) => {
          const row = rows[item.index] as T;
          return (
            <div
              key={item.key}
              id={`${id}-${item.index}`}
              role="row"
              aria-rowindex={item.index + 2}
              aria-selected={item.index === selected}
              class={`grid-row ${props.rowClass?.(row) ?? ""}`}
              style={{ ...template, transform: `translateY(${item.start}px)` }}
              onClick={() => props.onSelect(item.index)}
            >
              {columns.map((each) => (
                <span key={each.title} role="gridcell" class={each.class}>
                  {each.cell(row, item.index)}
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}
