// Charts of what was lately: uPlot for the large ones, a line on a canvas for the small ones.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { Series } from "./history";
import { store } from "./store";
import { onTheme } from "./theme";
import { timeOfDay } from "./format";

export interface Figure {
  name: string;
  /** The name of a colour of the style sheet. */
  colour: string;
  /** Filled below the line. */
  fill?: boolean;
}

export function colourOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

interface Props {
  title: string;
  series: Series;
  /** Which rows of the series are drawn. */
  rows: number[];
  figures: Figure[];
  show: (value: number | null | undefined) => string;
  height?: number;
  /** What all of it comes to now, for those who do not see it. */
  now: string;
}

export function Chart(props: Props) {
  const place = useRef<HTMLDivElement>(null);
  const pointed = useRef<HTMLSpanElement>(null);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const own = place.current;
    if (!own) return;
    let plot: uPlot | null = null;
    const data = (): uPlot.AlignedData => {
      const { series, rows } = latest.current;
      const [times, ...all] = series.data();
      // Rows that are NaN are gaps; uPlot wants null for these.
      const cut = rows.map((row) => Array.from(all[row] ?? [], (value) => (Number.isNaN(value) ? null : value)));
      return [times, ...cut] as uPlot.AlignedData;
    };
    const make = () => {
      plot?.destroy();
      plot = new uPlot(options(latest.current, own.clientWidth, pointed.current), data(), own);
      plot.setScale("x", range(latest.current.series));
    };
    make();
    const drawn = store.watch(() => {
      if (document.hidden || !plot) return;
      plot.setData(data(), false);
      plot.setScale("x", range(latest.current.series));
    });
    const themed = onTheme(make);
    const sized = new ResizeObserver(() => plot?.setSize({ width: own.clientWidth, height: latest.current.height ?? 132 }));
    sized.observe(own);
    return () => {
      drawn();
      themed();
      sized.disconnect();
      plot?.destroy();
    };
  }, [props.series]);
  return (
    <figure class="chart">
      <figcaption>
        <span class="name">{props.title}</span>
        {props.figures.map((figure) => (
          <span key={figure.name} class="key">
            <span class={`swatch ${figure.colour}`} />
            {figure.name}
          </span>
        ))}
        <span ref={pointed} class="pointed" aria-hidden="true" />
      </figcaption>
      <div ref={place} role="img" aria-label={`${props.title}: ${props.now}`} />
    </figure>
  );
}

/** As long as was chosen; of less, what there is, and never less than a minute. */
function range({ times, length }: Series): { min: number; max: number } {
  const max = times[length - 1] ?? Date.now() / 1_000;
  return { min: Math.max(max - store.range, Math.min(times[0] ?? max, max - 60)), max };
}

/** A mark is pointed at within so many pixels. */
const NEAR = 6;

/** What stands below the cursor: when that was, each figure, and what happened then. */
function below(plot: uPlot, { figures, show }: Props): string {
  const place = plot.cursor.idx;
  if (place == null || (plot.cursor.left ?? -1) < 0) return "";
  const [times = [], ...rows] = plot.data;
  const at = times[place] ?? 0;
  const told = figures.map(({ name }, row) => `${name} ${show(rows[row]?.[place] ?? null)}`);
  const near = store.marks.filter(({ at_ms }) => Math.abs(plot.valToPos(at_ms / 1_000, "x") - (plot.cursor.left ?? 0)) < NEAR);
  return [timeOfDay(at * 1_000), ...told, ...near.slice(-2).map(({ text }) => text)].join(" · ");
}

/** Lines where something was done, began or ended. */
function drawMarks(plot: uPlot): void {
  const { left, top, width, height } = plot.bbox;
  const pen = plot.ctx;
  pen.save();
  pen.lineWidth = devicePixelRatio;
  pen.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
  for (const { at_ms, kind } of store.marks) {
    const x = plot.valToPos(at_ms / 1_000, "x", true);
    if (x < left || x > left + width) continue;
    pen.strokeStyle = colourOf(kind === "trouble" || kind === "restart" ? "care" : kind === "over" ? "well" : "faint");
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, top + height);
    pen.stroke();
  }
  pen.restore();
}

function options(props: Props, width: number, pointed: HTMLElement | null): uPlot.Options {
  const axis = colourOf("faint");
  const grid = { stroke: colourOf("line"), width: 1 };
  const font = '11px system-ui, "Segoe UI", sans-serif';
  const lines = props.figures.map((figure): uPlot.Series => {
    const stroke = colourOf(figure.colour);
    return {
      label: figure.name,
      stroke,
      width: 1.6,
      points: { show: false },
      spanGaps: false,
      ...(figure.fill ? { fill: `${stroke}26` } : {}),
    };
  });
  return {
    width,
    height: props.height ?? 132,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 5 } },
    hooks: {
      drawClear: [drawMarks],
      setCursor: [(plot) => pointed && (pointed.textContent = below(plot, props))],
    },
    padding: [8, 16, 0, 0],
    scales: {
      x: { time: true },
      // From nothing, so that a flat line is not blown up to mountains.
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.15 : 1] },
    },
    axes: [
      { stroke: axis, grid: { show: false }, ticks: { show: false }, font, size: 22, space: 90, values: (_, times, __, ___, step) => times.map((time) => (step < 60 ? timeOfDay(time * 1_000) : timeOfDay(time * 1_000).slice(0, 5))) },
      { stroke: axis, grid, ticks: { show: false }, font, size: 58, space: 34, values: (_, values) => values.map((value) => props.show(value)) },
    ],
    series: [{}, ...lines],
  };
}

/** The last minute of one row. */
export function Spark({ series, row }: { series: Series; row: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = () => {
      const own = canvas.current;
      const pen = own?.getContext("2d");
      if (!own || !pen || document.hidden) return;
      const scale = devicePixelRatio;
      const [width, height] = [92, 24];
      if (own.width !== width * scale) [own.width, own.height] = [width * scale, height * scale];
      pen.setTransform(scale, 0, 0, scale, 0, 0);
      pen.clearRect(0, 0, width, height);
      const all = (series.rows[row] ?? new Float64Array()).subarray(Math.max(0, series.length - 60), series.length);
      const most = all.reduce((most, value) => (value > most ? value : most), 1);
      pen.strokeStyle = colourOf("data");
      pen.lineWidth = 1.4;
      pen.beginPath();
      let down = false;
      all.forEach((value, place) => {
        if (Number.isNaN(value)) {
          down = false;
          return;
        }
        const x = width - ((all.length - 1 - place) * width) / 59;
        const y = height - 2 - (value / most) * (height - 4);
        if (down) pen.lineTo(x, y);
        else pen.moveTo(x, y);
        down = true;
      });
      pen.stroke();
    };
    draw();
    const drawn = store.watch(draw);
    const themed = onTheme(draw);
    return () => {
      drawn();
      themed();
    };
  }, [series, row]);
  return <canvas ref={canvas} class="spark" aria-hidden="true" />;
}
