// Pools: how fast, how deep, how late; and one of them in full.

import { useEffect, useRef, useState } from "preact/hooks";
import { conflict, get, inWords, post } from "./api";
import { Chart, Spark } from "./chart";
import { count, rate, several, time } from "./format";
import { Heat } from "./heat";
import { at, go } from "./place";
import { Shares } from "./shares";
import { store, type PoolHistory } from "./store";
import type { Pool, Worker } from "./types";
import { Act, Badge, Bar, Empty, Section, confirm, toast, type Tone } from "./ui";

const TONES: Record<Pool["state"], Tone> = { running: "well", full: "care", paused: "care", "without workers": "bad" };

/** Undefined while nobody has chosen: the only pool is open then. */
let opened: string | null | undefined;

export function showPool(name: string | null): void {
  opened = name;
  store.tell();
}

/** What pools are sorted by; the largest comes first. */
const ORDERS: [string, string, (pool: Pool) => number][] = [
  ["handled", "most handled", ({ name }) => store.pools.get(name)?.rate ?? 0],
  ["queue", "fullest queue", ({ queued, capacity }) => queued / Math.max(capacity, 1)],
  ["busy", "busiest workers", ({ busy, live }) => busy / Math.max(live, 1)],
  ["p99", "slowest (p99)", ({ name }) => store.pools.get(name)?.p99 || 0],
  ["oldest", "oldest event", ({ oldest_ms }) => oldest_ms ?? 0],
];

/** Rows that change places each second cannot be read or clicked. */
const SORTED_FOR = 5_000;

function useSorted(pools: Pool[]): Pool[] {
  const last = useRef<{ sort: string; at: number; names: string[] }>({ sort: "", at: 0, names: [] });
  const sort = at("sort");
  const order = ORDERS.find(([name]) => name === sort);
  if (!order) return pools;
  const [, , figure] = order;
  const isStale = last.current.sort !== sort || Date.now() - last.current.at > SORTED_FOR;
  if (isStale) last.current = { sort, at: Date.now(), names: [...pools].sort((one, other) => figure(other) - figure(one)).map(({ name }) => name) };
  const place = ({ name }: Pool) => last.current.names.indexOf(name);
  return [...pools].sort((one, other) => place(one) - place(other));
}

function Order() {
  return (
    <select aria-label="order of the pools" value={at("sort")} onChange={(event) => go({ sort: event.currentTarget.value })}>
      <option value="">as configured</option>
      {ORDERS.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
    </select>
  );
}

export function Pools({ pools }: { pools: Pool[] }) {
  const sorted = useSorted(pools);
  const open = opened === undefined && pools.length === 1 ? pools[0]?.name : opened;
  return (
    <Section id="pools" title="Pools" note={several(pools.length, "pool")} side={pools.length > 1 ? <Order /> : undefined}>
      <div class="rows pools" role="table" aria-label="pools">
        <div class="row head" role="row">
          <span role="columnheader">Pool</span>
          <span role="columnheader" class="number">Handled</span>
          <span role="columnheader" class="wide-only">Last minute</span>
          <span role="columnheader">Queue</span>
          <span role="columnheader">Busy workers</span>
          <span role="columnheader" class="number">p50</span>
          <span role="columnheader" class="number">p99</span>
          <span role="columnheader" class="number">Oldest</span>
        </div>
        {sorted.map((pool) => (
          <Row key={pool.name} pool={pool} open={open === pool.name} toggle={() => showPool(open === pool.name ? null : pool.name)} />
        ))}
      </div>
    </Section>
  );
}

function Row({ pool, open, toggle }: { pool: Pool; open: boolean; toggle: () => void }) {
  const known = store.pools.get(pool.name);
  if (!known) return null;
  const full = pool.capacity > 0 ? pool.queued / pool.capacity : 0;
  return (
    <div class={`item ${open ? "open" : ""}`} id={`pools.${pool.name}`} role="rowgroup" tabIndex={-1}>
      <div class="row" role="row">
        <span role="cell" class="name">
          <button type="button" class="plain toggle" aria-expanded={open} aria-controls={`pool-${pool.name}`} onClick={toggle}>
            <span class="turn" aria-hidden="true" />
            {pool.name}
          </button>
          <Badge tone={TONES[pool.state]}>{pool.state}</Badge>
        </span>
        <span role="cell" class="number strong" data-name="handled">{rate(known.rate)}<span class="unit">/s</span></span>
        <span role="cell" class="wide-only"><Spark series={known.series} row={0} /></span>
        <span role="cell" class="gauge" data-name="queue">
          <Bar value={pool.queued} of={pool.capacity} label={`queue ${(full * 100).toFixed(0)} % full`} tone={full >= 0.8 ? "care" : "idle"} />
          <span class="amount">{count(pool.queued)}<span class="of"> / {count(pool.capacity)}</span></span>
        </span>
        <span role="cell" class="gauge" data-name="busy">
          <Bar value={pool.busy} of={pool.live} label={`${pool.busy} of ${pool.live} workers busy`} />
          <span class="amount">{count(pool.busy)}<span class="of"> / {count(pool.live)}</span></span>
        </span>
        <span role="cell" class="number" data-name="p50">{time(known.p50)}</span>
        <span role="cell" class="number" data-name="p99">{time(known.p99)}</span>
        <span role="cell" class="number" data-name="oldest">{time(pool.oldest_ms)}</span>
      </div>
      {open && <Detail pool={pool} known={known} />}
    </div>
  );
}

function Detail({ pool, known }: { pool: Pool; known: PoolHistory }) {
  return (
    <div class="detail" id={`pool-${pool.name}`} role="row">
      <div class="split" role="cell" aria-colspan={8}>
        <div>
          <Chart
            title="Handling and waiting times"
            series={store.series(pool.name)}
            rows={[1, 2, 3]}
            figures={[
              { name: "p50 handling", colour: "data-2" },
              { name: "p99 handling", colour: "data" },
              { name: "p99 waiting", colour: "data-3" },
            ]}
            show={time}
            height={190}
            now={`p99 handling ${time(known.p99)}, p99 waiting ${time(known.wait99)}`}
          />
          <Facts pool={pool} known={known} />
          <Controls pool={pool} />
        </div>
        <Workers pool={pool} />
      </div>
      {pool.has_shares && <div role="cell" aria-colspan={8}><Shares pool={pool.name} /></div>}
    </div>
  );
}

function Facts({ pool, known }: { pool: Pool; known: PoolHistory }) {
  const facts: [string, string][] = [
    ["Handled in all", count(pool.handled)],
    ["Waiting time, p99", time(known.wait99)],
    ["Waiting for a retry", count(pool.retrying_or_parked)],
    ["Failed attempts", count(pool.failed_attempts)],
    ["Dead letters", count(pool.dead_lettered)],
    ["Restarts", count(pool.restarts)],
    ["Was full", several(pool.full_episodes, "time")],
    ["Order", pool.keys ? `${several(pool.keys.running, "key")} being handled` : pool.settings.engine],
  ];
  if (pool.rate_per_s !== null) facts.push(["Rate limit", `${rate(pool.rate_per_s)}/s`]);
  if (pool.limit !== null) facts.push(["Handled at once, at most", count(pool.limit)]);
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Controls({ pool }: { pool: Pool }) {
  const [wanted, want] = useState<number | null>(null);
  const workers = wanted ?? pool.workers;
  const path = `/api/pools/${encodeURIComponent(pool.name)}`;
  const paused = pool.state === "paused";
  const resize = async (confirmed = "") => {
    const done = await post<{ from: number; workers: number }>(`${path}/workers?count=${workers}${confirmed}`);
    toast("well", `${pool.name}: ${several(done.workers, "worker")} in place of ${count(done.from)}`);
    want(null);
  };
  const ask = async () => {
    // Few more or less is nothing; to take most of a pool away is.
    if (workers * 2 > pool.workers) return resize().catch(grow);
    confirm({
      title: `Leave ${pool.name} ${several(workers, "worker")}?`,
      text: <p>It has {count(pool.workers)} now. A worker that leaves finishes its event first.</p>,
      yes: "Resize",
      run: () => resize(),
    });
    return undefined;
  };
  /** Several times as many may be a slip: greenroom wants it said twice. */
  const grow = (error: unknown) => {
    const found = conflict<{ workers: number; asked: number }>(error);
    confirm({
      title: `A pool of ${count(found.workers)} becomes ${several(found.asked, "worker")}?`,
      text: <p>Each worker of {pool.name} takes memory, and its handlers call their targets that many times at once.</p>,
      yes: "Resize",
      run: () => resize(`&confirm=${found.asked}`),
    });
  };
  return (
    <div class="controls">
      <Act
        {...(paused ? { tone: "main" as const } : {})}
        run={async () => {
          await post(`${path}/${paused ? "resume" : "pause"}`);
          toast("well", paused ? `${pool.name} goes on` : `${pool.name} is paused: it starts no further attempt`);
        }}
      >
        {paused ? "Resume" : "Pause"}
      </Act>
      <form
        class="stepper"
        onSubmit={(event) => {
          event.preventDefault();
        }}
      >
        <label for={`workers-${pool.name}`}>Workers</label>
        <button type="button" class="act" aria-label="one worker less" disabled={workers <= 1} onClick={() => want(workers - 1)}>−</button>
        <input
          id={`workers-${pool.name}`}
          inputMode="numeric"
          autocomplete="off"
          value={String(workers)}
          onInput={(event) => {
            const typed = Number.parseInt(event.currentTarget.value.replace(/\D/g, ""), 10);
            want(Number.isNaN(typed) ? null : Math.min(typed, 65_536));
          }}
        />
        <button type="button" class="act" aria-label="one worker more" onClick={() => want(workers + 1)}>+</button>
        <Act label={`set the workers of ${pool.name}`} disabled={wanted === null || wanted === pool.workers || wanted < 1} run={ask}>Set</Act>
      </form>
    </div>
  );
}

/** Rows of the table of workers. */
const SHOWN = 6;

function Workers({ pool }: { pool: Pool }) {
  const [chosen, choose] = useState<number | null>(null);
  const [found, setFound] = useState<Worker[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    let here = true;
    const ask = () => {
      if (document.hidden || store.link.is !== "live") return;
      get<{ workers: Worker[] }>(`/api/pools/${encodeURIComponent(pool.name)}/workers`).then(
        ({ workers }) => here && (setFound(workers), setError(null)),
        (why: unknown) => here && setError(inWords(why)),
      );
    };
    ask();
    const timer = setInterval(ask, 2_000);
    return () => {
      here = false;
      clearInterval(timer);
    };
  }, [pool.name]);
  const slots = pool.slots;
  const busy = (found ?? []).filter((worker) => worker.busy_ms !== null);
  const longest = busy.sort((one, other) => (other.busy_ms ?? 0) - (one.busy_ms ?? 0)).slice(0, SHOWN);
  const one = chosen === null ? undefined : found?.find((worker) => worker.slot === chosen);
  const shown = one ? [one, ...longest.filter((worker) => worker !== one)].slice(0, SHOWN) : longest;
  return (
    <div class="workers">
      <h3>Workers{slots && <span class="note">{count(pool.busy)} of {count(pool.live)} busy</span>}</h3>
      {slots && <Heat pool={pool.name} slots={slots} chosen={chosen} choose={choose} />}
      {error !== null && <p class="error">{error}</p>}
      {found !== null && shown.length === 0 && <Empty>No worker handles an event.</Empty>}
      {shown.length > 0 && (
        <div class="scroll">
          <table class="longest">
            <caption>{one ? `Worker ${one.slot}, and the events handled for longest` : "The events handled for longest"}</caption>
            <thead>
              <tr><th>Worker</th><th>Key</th><th>Handler</th><th class="number">Attempt</th><th class="number">For</th></tr>
            </thead>
            <tbody>
              {shown.map((worker) => (
                <tr key={worker.slot} class={worker.slot === chosen ? "chosen" : ""}>
                  <td>{worker.name}{worker.status !== "live" && ` (${worker.status})`}</td>
                  <td class="key" title={worker.key ?? undefined}>{worker.key ?? <span class="faint">{worker.busy_ms === null ? "idle" : "not known"}</span>}</td>
                  <td>{worker.handler ?? "–"}</td>
                  <td class="number">{worker.attempt ?? "–"}</td>
                  <td class="number">{time(worker.busy_ms)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
