// Workers as a map: a cell each, by how long the worker has handled its event.

import { useEffect, useRef, useState } from "preact/hooks";
import { colourOf } from "./chart";
import { time } from "./format";
import { store } from "./store";
import { onTheme } from "./theme";

/** An event that is handled for so many ms or longer has this colour. */
const STEPS: [number, string, string][] = [
  [60_000, "heat-4", "over 1 min"],
  [10_000, "heat-3", "over 10 s"],
  [1_000, "heat-2", "over 1 s"],
  [0, "heat-1", "under 1 s"],
];

function nameOfColour(slot: number | null): string {
  if (slot === null) return "heat-none";
  if (slot === -3) return "heat-off";
  if (slot < 0) return "heat-0";
  return STEPS.find(([from]) => slot >= from)?.[1] ?? "heat-1";
}

function describe(slot: number | null | undefined): string {
  if (slot === undefined || slot === null) return "is not there";
  if (slot === -1) return "is idle";
  if (slot === -2) return "is starting";
  if (slot === -3) return "is disabled";
  return "handles an event";
}

interface Props {
  pool: string;
  slots: (number | null)[];
  chosen: number | null;
  choose: (slot: number | null) => void;
}

export function Heat(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const layout = useRef({ columns: 1, cell: 12 });
  const [hovered, hover] = useState<number | null>(null);

  useEffect(() => {
    const draw = () => {
      const own = canvas.current;
      const parent = own?.parentElement;
      const pen = own?.getContext("2d");
      if (!own || !parent || !pen || document.hidden) return;
      const { slots, chosen } = latest.current;
      const width = parent.clientWidth;
      const cell = slots.length > 2_048 ? 8 : slots.length > 512 ? 10 : slots.length > 128 ? 14 : 20;
      const columns = Math.max(1, Math.floor(width / cell));
      const rows = Math.max(1, Math.ceil(slots.length / columns));
      layout.current = { columns, cell };
      const scale = devicePixelRatio;
      const [w, h] = [columns * cell, rows * cell];
      if (own.width !== w * scale || own.height !== h * scale) {
        [own.width, own.height] = [w * scale, h * scale];
        own.style.width = `${w}px`;
        own.style.height = `${h}px`;
      }
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, w, h);
      const colours = new Map<string, string>();
      const gap = cell > 10 ? 2 : 1;
      slots.forEach((slot, place) => {
        const name = nameOfColour(slot);
        if (!colours.has(name)) colours.set(name, colourOf(name));
        const [x, y] = [(place % columns) * cell, Math.floor(place / columns) * cell];
        pen.fillStyle = colours.get(name) ?? "";
        pen.fillRect(x, y, cell - gap, cell - gap);
        if (slot === -2 || slot === -3) {
          pen.strokeStyle = colourOf("faint");
          pen.lineWidth = 1;
          pen.beginPath();
          pen.moveTo(x + 1, y + cell - gap - 1);
          pen.lineTo(x + cell - gap - 1, y + 1);
          pen.stroke();
        }
      });
      if (chosen !== null && chosen < slots.length) {
        pen.strokeStyle = colourOf("text");
        pen.lineWidth = 2;
        pen.strokeRect((chosen % columns) * cell, Math.floor(chosen / columns) * cell, cell - gap, cell - gap);
      }
    };
    draw();
    const drawn = store.watch(draw);
    const themed = onTheme(draw);
    const sized = new ResizeObserver(draw);
    if (canvas.current?.parentElement) sized.observe(canvas.current.parentElement);
    return () => {
      drawn();
      themed();
      sized.disconnect();
    };
  }, [props.pool]);

  const slotAt = (event: MouseEvent): number | null => {
    const { columns, cell } = layout.current;
    const column = Math.floor(event.offsetX / cell);
    const slot = Math.floor(event.offsetY / cell) * columns + column;
    return column < columns && slot >= 0 && slot < props.slots.length ? slot : null;
  };
  const step = (event: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -layout.current.columns, ArrowDown: layout.current.columns };
    const move = by[event.key];
    if (move === undefined) return;
    event.preventDefault();
    const next = props.chosen === null ? 0 : props.chosen + move;
    if (next >= 0 && next < props.slots.length) props.choose(next);
  };
  const busy = props.slots.filter((slot) => (slot ?? -1) >= 0).length;
  const told = hovered ?? props.chosen;
  const slot = told === null ? null : props.slots[told];
  return (
    <div class="heat">
      <div class="cells">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription="map of workers"
          aria-label={`workers of ${props.pool}: ${busy} of ${props.slots.length} busy; arrow keys choose one`}
          onMouseMove={(event) => hover(slotAt(event))}
          onMouseLeave={() => hover(null)}
          onClick={(event) => props.choose(slotAt(event))}
          onKeyDown={step}
        />
      </div>
      <p class="legend">
        <span class="key"><span class="swatch heat-0" />idle</span>
        {[...STEPS].reverse().map(([, name, words]) => (
          <span key={name} class="key"><span class={`swatch ${name}`} />{words}</span>
        ))}
        <span class="told">
          {/* The time goes on each second: it is not read aloud. */}
          <span aria-live="polite">{told === null ? "" : `worker ${told} ${describe(slot)}`}</span>
          {(slot ?? -1) >= 0 && <span> for {time(slot)}</span>}
        </span>
      </p>
    </div>
  );
}
