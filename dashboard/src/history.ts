// What was, for charts: a fixed number of points, so that a page that is left open does not grow.

/** Five minutes, at one sample a second; or longer, at fewer. */
export const POINTS = 300;

/** Of how many seconds charts tell, as one may choose. */
export const RANGES = [300, 900, 3_600];

/** Several figures over time. A new point takes the place of the oldest. */
export class Series {
  readonly times = new Float64Array(POINTS).fill(NaN);
  readonly rows: Float64Array[];
  length = 0;

  constructor(figures: number) {
    this.rows = Array.from({ length: figures }, () => new Float64Array(POINTS).fill(NaN));
  }

  push(time: number, figures: number[]): void {
    if (this.length === POINTS) {
      this.times.copyWithin(0, 1);
      for (const row of this.rows) row.copyWithin(0, 1);
    } else {
      this.length += 1;
    }
    this.times[this.length - 1] = time;
    this.rows.forEach((row, place) => (row[this.length - 1] = figures[place] ?? NaN));
  }

  /** Puts what was before all of it, as far as there is room. */
  prepend(times: number[], rows: (number | null)[][]): void {
    const first = this.times[0] ?? NaN;
    const older = this.length === 0 ? times.length : times.findIndex((time) => time >= first - 0.5);
    const count = Math.min(older < 0 ? times.length : older, POINTS - this.length);
    const from = (older < 0 ? times.length : older) - count;
    if (count <= 0) return;
    const shift = (into: Float64Array, values: (number | null)[]) => {
      into.copyWithin(count, 0, this.length);
      for (let place = 0; place < count; place += 1) into[place] = values[from + place] ?? NaN;
    };
    shift(this.times, times);
    this.rows.forEach((row, place) => shift(row, rows[place] ?? []));
    this.length += count;
  }

  /** What a chart takes: seconds, then each figure; NaN is a gap. */
  data(): [Float64Array, ...Float64Array[]] {
    const cut = (all: Float64Array) => all.subarray(0, this.length);
    return [cut(this.times), ...this.rows.map(cut)];
  }
}

/** A rate that follows a counter without jumping at each sample. */
export class Rate {
  private last: number | null = null;
  private smooth: number | null = null;
  /** As it was counted since the last sample. */
  raw = NaN;

  /** The weight of what is new: three samples make most of the figure. */
  static readonly WEIGHT = 0.45;

  add(counter: number, seconds: number | null): number {
    const last = this.last;
    this.last = counter;
    if (last === null || seconds === null || counter < last) {
      this.raw = NaN;
      return this.smooth ?? 0;
    }
    this.raw = (counter - last) / seconds;
    this.smooth = this.smooth === null ? this.raw : this.smooth + Rate.WEIGHT * (this.raw - this.smooth);
    // What has come to rest is 0, and not a thousandth of an event.
    if (this.raw === 0 && this.smooth < 0.05) this.smooth = 0;
    return this.smooth;
  }
}
