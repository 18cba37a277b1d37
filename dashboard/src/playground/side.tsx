// One of the two pools: its figures, its workers and what each has in hand, and the longest lines.

import { count, several, time } from "../format";
import type { Side, Worker } from "./state";

const TEXTS: Record<Side["name"], { title: string; about: string }> = {
  lanes: { title: "Lanes", about: "any free worker takes the next event of any key" },
  hashing: { title: "Hashing", about: "the hash of its key chooses the worker of an event" },
};

/** Longer than any event but a slow one takes. */
const LONG_MS = 50;

export function SideCard({ side }: { side: Side }) {
  const { title, about } = TEXTS[side.name];
  const id = `side-${side.name}`;
  return (
    <section id={id} class="card side" aria-labelledby={`${id}-title`}>
      <header>
        <h2 id={`${id}-title`}>{title}</h2>
        <span class="note">{about}</span>
      </header>
      <dl class="numbers">
        <Figure name="p50, cold keys" value={time(side.p50_ms)} about="half take longer" />
        <Figure name="p99, cold keys" value={time(side.p99_ms)} about="1 in 100 takes longer" />
        <Figure name="handled" value={`${count(side.per_second)}/s`} about={`${count(side.out_of_order)} out of order`} />
        <Figure name="waiting" value={count(side.waiting)} about={`${count(side.turned_away)} turned away`} />
      </dl>
      <p class="verdict">{verdict(side)}</p>
      <ul class="boxes" aria-label="workers">
        {side.workers.map((worker) => <Box key={worker.slot} worker={worker} />)}
      </ul>
      <h3>Longest lines</h3>
      {side.lines.length === 0 && <p class="empty">No key has more than one event in line.</p>}
      <ol class="lines">
        {side.lines.map(({ key, slow, events }) => (
          <li key={key} class={slow ? "slow" : ""}>
            <span class="key">{key}{slow && <span class="tag">slow</span>}</span>
            <span class="track" aria-hidden="true"><span class="fill" style={{ width: `${Math.min(events, 100)}%` }} /></span>
            <span class="number">{count(events)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

function Figure({ name, value, about }: { name: string; value: string; about: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd class="value">{value}</dd>
      <dd class="note">{about}</dd>
    </div>
  );
}

/** Why events wait. */
function verdict({ held_up, free }: Side): string {
  if (held_up === 0) return "No key waits for another one.";
  const whom = `${several(held_up, "event")} of other keys ${held_up === 1 ? "waits" : "wait"}`;
  return free > 0 ? `${whom}, and ${several(free, "worker")} ${free === 1 ? "is" : "are"} free.` : `${whom}: no worker is free.`;
}

function Box({ worker }: { worker: Worker }) {
  const { slot, key, slow, retries, ms, behind } = worker;
  const state = key === null ? "free" : retries ? "retries" : slow ? "slow" : "busy";
  return (
    <li class={`box ${state}`}>
      <span class="slot"><span class="hidden">worker </span>{slot + 1}</span>
      <span class="key">{key ?? "free"}</span>
      <span class="about">{retries ? "waits to retry" : slow ? `slow, ${time(ms)}` : ms !== null && ms > LONG_MS ? time(ms) : ""}</span>
      {behind > 0 && <span class="behind">+{count(behind)}<span class="hidden"> behind it</span></span>}
    </li>
  );
}
