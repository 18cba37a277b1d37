// What the page knows: the last sample, what was before, and whether greenroom answers.

import { Refused, get, inWords, listen, setToken, token } from "./api";
import { POINTS, RANGES, Rate, Series } from "./history";
import { at, go, onMove } from "./place";
import type { Hello, Mark, Past, PoolEvent, Sample } from "./types";

export type Link =
  | { is: "asking" }
  | { is: "live" }
  /** No figures come since then: nobody answers, or greenroom refuses them and says why. */
  | { is: "gone"; since: number; why: string; refused: boolean }
  /** A token is needed, or the one that was shown is wrong. */
  | { is: "locked"; wrong: boolean }
  /** The tab is hidden: nothing is asked. */
  | { is: "asleep" };

export interface PoolHistory {
  /** Events a second; handling and waiting times, in ms. */
  series: Series;
  handled: Rate;
  rate: number;
  p50: number;
  p99: number;
  wait99: number;
}

const EVENTS = 200;

/** The rows of a series, as the daemon calls them. */
const ALL = ["settled_per_s", "taken_per_s", "waiting", "in_hand"];
const OF_POOL = ["handled_per_s", "p50_ms", "p99_ms", "wait_p99_ms"];

class Store {
  link: Link = { is: "asking" };
  hello: Hello | null = null;
  sample: Sample | null = null;
  /** When the last sample came, by this machine's clock. */
  heard = 0;
  /** Finished and taken a second; waiting and being handled. */
  readonly all = { series: new Series(4), taken: new Rate(), settled: new Rate(), letters: new Rate(), takenRate: 0, settledRate: 0, lettersRate: 0 };
  readonly pools = new Map<string, PoolHistory>();
  /** Events a second of inputs, handlers and outputs, by `inputs.NAME`. */
  readonly flows = new Map<string, { counted: Rate; rate: number }>();
  events: PoolEvent[] = [];
  marks: Mark[] = [];
  /** What the daemon has kept of a longer range. */
  private long: { all: Series; pools: Map<string, Series> } | null = null;
  private recalled = 0;
  private recalledRange = POINTS;
  /** Since when greenroom has not been well, by its own clock; as far as this page has seen. */
  unwellSince: number | null = null;
  private watchers = new Set<() => void>();
  private stop: AbortController | null = null;
  private wake: (() => void) | null = null;

  constructor() {
    onMove(() => this.moved());
  }

  /** Of how many seconds charts tell. */
  get range(): number {
    return RANGES.find((range) => String(range) === at("range")) ?? POINTS;
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }

  tell(): void {
    for (const watcher of this.watchers) watcher();
  }

  setLink(link: Link): void {
    this.link = link;
    this.tell();
  }

  /** Asks for the live stream again and again, for as long as the page is open. */
  async run(): Promise<void> {
    document.addEventListener("visibilitychange", () => this.onVisibility());
    for (let pause = 500; ; pause = Math.min(pause * 2, 4_000)) {
      if (document.hidden && this.link.is === "asleep") await this.pause(null);
      this.stop = new AbortController();
      let why = "the connection was closed";
      let refused = false;
      const before = this.heard;
      try {
        await listen({ hello: (hello) => this.onHello(hello), sample: (sample) => this.onSample(sample) }, this.stop.signal);
      } catch (error) {
        if (error instanceof Refused && error.status === 401) {
          const wrong = token() !== null;
          setToken(null);
          this.setLink({ is: "locked", wrong });
          await this.pause(null);
          pause = 250;
          continue;
        }
        refused = error instanceof Refused;
        if (refused) why = inWords(error);
      }
      if (document.hidden && this.link.is === "asleep") continue;
      if (this.heard > before) pause = 500;
      const since = this.link.is === "gone" ? this.link.since : Date.now();
      this.setLink({ is: "gone", since, why, refused });
      await this.pause(pause);
    }
  }

  /** Shows another token, or none. */
  unlock(value: string | null): void {
    setToken(value);
    this.hello = null;
    this.setLink({ is: "asking" });
    this.stop?.abort();
    this.wake?.();
  }

  private pause(ms: number | null): Promise<void> {
    return new Promise((done) => {
      const timer = ms === null ? null : setTimeout(done, ms);
      this.wake = () => {
        if (timer !== null) clearTimeout(timer);
        done();
      };
    });
  }

  private sleeping: ReturnType<typeof setTimeout> | null = null;

  private onVisibility(): void {
    if (this.sleeping !== null) clearTimeout(this.sleeping);
    this.sleeping = null;
    if (document.hidden) {
      // Somebody who looks at another tab for a moment finds no gap.
      this.sleeping = setTimeout(() => {
        if (this.link.is === "locked") return;
        this.setLink({ is: "asleep" });
        this.stop?.abort();
      }, 5_000);
    } else if (this.link.is === "asleep") {
      this.setLink({ is: "asking" });
      this.wake?.();
    }
  }

  private onHello(hello: Hello): void {
    this.hello = hello;
    this.recalled = 0;
  }

  /** What a chart draws: of a pool, or of all of them. */
  series(pool: string | null): Series {
    const own = pool === null ? this.long?.all : this.long?.pools.get(pool);
    return own ?? (pool === null ? this.all.series : this.pools.get(pool)?.series) ?? new Series(0);
  }

  setRange(range: number): void {
    go({ range: range === POINTS ? "" : String(range) });
  }

  private moved(): void {
    if (this.range !== this.recalledRange) {
      this.long = null;
      void this.recall();
    }
    this.tell();
  }

  /** Asks what was before this page was opened, or in a longer time. */
  private async recall(): Promise<void> {
    const { range } = this;
    this.recalled = Date.now();
    this.recalledRange = range;
    const past = await get<Past>(`/api/history?seconds=${range}&points=${POINTS}`).catch(() => null);
    if (past === null || range !== this.range) return;
    this.marks = past.marks;
    const times = past.times_ms.map((ms) => ms / 1_000);
    const rows = (names: string[], of: Record<string, (number | null)[]>) => names.map((name) => of[name] ?? []);
    const pools = Object.entries(past.pools);
    if (range <= POINTS) {
      this.all.series.prepend(times, rows(ALL, past.all));
      for (const [name, of] of pools) this.pools.get(name)?.series.prepend(times, rows(OF_POOL, of));
    } else {
      const loaded = (names: string[], of: Record<string, (number | null)[]>) => {
        const series = new Series(names.length);
        series.prepend(times, rows(names, of));
        return series;
      };
      this.long = { all: loaded(ALL, past.all), pools: new Map(pools.map(([name, of]) => [name, loaded(OF_POOL, of)])) };
    }
    this.tell();
  }

  private onSample(sample: Sample): void {
    const last = this.sample;
    if (last && sample.up_ms < last.up_ms) this.forget();
    const time = sample.at_ms / 1_000;
    const passed = last && sample.up_ms > last.up_ms ? (sample.up_ms - last.up_ms) / 1_000 : null;
    // After a gap, what was counted meanwhile says nothing of a second.
    const seconds = passed !== null && passed < 30 ? passed : null;
    const gap = passed !== null && passed > 5 ? time - 1 : null;
    this.sample = sample;
    this.heard = Date.now();
    if (gap !== null) this.all.series.push(gap, []);
    this.addAll(sample, time, seconds);
    const names = new Set(sample.pools.map((pool) => pool.name));
    for (const name of this.pools.keys()) if (!names.has(name)) this.pools.delete(name);
    for (const pool of sample.pools) this.addPool(pool, time, seconds, gap);
    this.addFlows(sample, seconds);
    this.addEvents(sample);
    if (sample.health.health === "green") this.unwellSince = null;
    else this.unwellSince ??= sample.at_ms;
    this.link = { is: "live" };
    // Marks come with what is recalled, and a longer range has a point every few seconds.
    if (Date.now() - this.recalled > Math.max(10_000, (this.range / POINTS) * 1_000)) void this.recall();
    this.tell();
  }

  /** Another greenroom answers, or this one was started anew. */
  private forget(): void {
    this.sample = null;
    this.events = [];
    this.unwellSince = null;
    this.pools.clear();
    this.flows.clear();
    Object.assign(this.all, { taken: new Rate(), settled: new Rate(), letters: new Rate() });
    this.all.series.push(Date.now() / 1_000, []);
  }

  private addAll(sample: Sample, time: number, seconds: number | null): void {
    const { all } = this;
    const { run } = sample;
    all.takenRate = all.taken.add(run.taken, seconds);
    all.settledRate = all.settled.add(run.settled, seconds);
    all.lettersRate = all.letters.add(run.dead_lettered, seconds);
    const inHand = sample.pools.reduce((sum, pool) => sum + pool.in_hand, 0);
    all.series.push(time, [all.settled.raw, all.taken.raw, waiting(sample), inHand]);
  }

  private addPool(pool: Sample["pools"][number], time: number, seconds: number | null, gap: number | null): void {
    let known = this.pools.get(pool.name);
    if (!known) {
      known = { series: new Series(4), handled: new Rate(), rate: 0, p50: NaN, p99: NaN, wait99: NaN };
      this.pools.set(pool.name, known);
    }
    if (gap !== null) known.series.push(gap, []);
    known.rate = known.handled.add(pool.handled, seconds);
    const { handling_ms, queueing_ms, measured } = pool.recent;
    const any = measured > 0;
    // Percentiles of nothing are none; the last ones stay in the table, where
    // they tell more than a dash.
    if (any) Object.assign(known, { p50: handling_ms.p50, p99: handling_ms.p99, wait99: queueing_ms.p99 });
    known.series.push(time, [known.handled.raw, any ? handling_ms.p50 : NaN, any ? handling_ms.p99 : NaN, any ? queueing_ms.p99 : NaN]);
  }

  private addFlows({ run, handlers, outputs }: Sample, seconds: number | null): void {
    const counters: [string, number | undefined][] = [
      ...run.inputs.map(({ name, taken }): [string, number | undefined] => [`inputs.${name}`, taken]),
      ...handlers.map(({ name, handled }): [string, number | undefined] => [`handlers.${name}`, handled]),
      ...outputs.map(({ name, events }): [string, number | undefined] => [`outputs.${name}`, events]),
    ];
    const names = new Set(counters.map(([name]) => name));
    for (const name of this.flows.keys()) if (!names.has(name)) this.flows.delete(name);
    for (const [name, counter] of counters) {
      if (counter === undefined) continue;
      const flow = this.flows.get(name) ?? { counted: new Rate(), rate: 0 };
      flow.rate = flow.counted.add(counter, seconds);
      this.flows.set(name, flow);
    }
  }

  private addEvents(sample: Sample): void {
    const newest = new Map(this.events.map((event) => [event.number, event]));
    for (const event of sample.events) newest.set(event.number, event);
    this.events = [...newest.values()].sort((one, other) => other.number - one.number).slice(0, EVENTS);
  }
}

/** What was taken and waits: in queues, beside them, and for another attempt. */
export function waiting(sample: Sample): number {
  const heldBack = sample.run.inputs.reduce((sum, input) => sum + input.held_back, 0);
  const inPools = sample.pools.reduce((sum, pool) => sum + pool.queued + pool.retrying_or_parked, 0);
  return inPools + heldBack;
}

export const store = new Store();
