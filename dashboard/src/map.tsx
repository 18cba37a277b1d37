// The flow as a map: inputs, the handlers of each pool, outputs. Which input feeds which handler
// depends on the types of events, so lines lead from all inputs to all pools.

import type { ComponentChildren } from "preact";
import "./map.css";
import { count, rate, several } from "./format";
import { chains, troubles } from "./problems";
import { store } from "./store";
import type { Handler, Input, Output, Pool, Sample } from "./types";
import { Badge, Mark, Section, type Tone } from "./ui";

/** Of each kind, so many are shown: those in trouble, and the busiest. */
const MOST = 12;

interface Troubles { tones: Map<string, Tone>; bottleneck: string | null }

/** Chosen by what was counted in all, so that the choice seldom changes; in the file's order. */
function chosen<T extends { name: string }>(all: T[], path: string, counted: (one: T) => number, { tones }: Troubles): T[] {
  if (all.length <= MOST) return all;
  const troubled = (one: T) => Number(tones.has(`${path}.${one.name}`));
  const best = new Set([...all].sort((one, other) => troubled(other) - troubled(one) || counted(other) - counted(one)).slice(0, MOST));
  return all.filter((one) => best.has(one));
}

function perSecond(about: string): string {
  return `${rate(store.flows.get(about)?.rate)}/s`;
}

export function Flow({ sample }: { sample: Sample }) {
  const { health, run, pools, handlers, outputs } = sample;
  const found: Troubles = { tones: troubles(health), bottleneck: chains(health)[0]?.cause.about ?? null };
  const inputs = chosen(run.inputs, "inputs", ({ taken }) => taken, found);
  const shownPools = chosen(pools, "pools", ({ handled }) => handled, found);
  const shownHandlers = new Set(chosen(handlers, "handlers", ({ handled }) => handled, found));
  const shownOutputs = chosen(outputs, "outputs", ({ events }) => events, found);
  return (
    <Section id="map" title="Flow" note={`${rate(store.all.takenRate)}/s taken, ${rate(store.all.settledRate)}/s finished`}>
      <div class="map">
        <Stage name="Inputs" more={run.inputs.length - inputs.length}>
          {inputs.map((input) => <InputNode key={input.name} input={input} found={found} />)}
        </Stage>
        <Stage name="Pools and their handlers" more={pools.length - shownPools.length}>
          {shownPools.map((pool) => {
            const own = handlers.filter((handler) => handler.pool === pool.name);
            return <PoolNode key={pool.name} pool={pool} handlers={own.filter((one) => shownHandlers.has(one))} all={own.length} found={found} />;
          })}
        </Stage>
        <Stage name="Outputs" more={outputs.length - shownOutputs.length}>
          {shownOutputs.map((output) => <OutputNode key={output.name} output={output} found={found} />)}
        </Stage>
      </div>
    </Section>
  );
}

function Stage({ name, more, children }: { name: string; more: number; children: ComponentChildren[] }) {
  return (
    <div class="stage">
      <p class="faint" aria-hidden="true">{name}</p>
      <ul aria-label={name}>
        {children}
        {children.length === 0 && <li class="faint">none</li>}
        {more > 0 && <li class="faint">and {count(more)} more</li>}
      </ul>
    </div>
  );
}

interface Part { about: string; name: string; figure: string; note: string | null; found: Troubles; children?: ComponentChildren }

/** A part of the flow. What is wrong with it is told by its colour, its mark and a word. */
function Node({ about, name, figure, note, found, children }: Part) {
  const tone = found.tones.get(about);
  return (
    <li class={`node ${tone ?? ""}`}>
      <span class="line">
        {tone && <Mark tone={tone} />}
        <a href={`#${about}`}>{name}</a>
        {tone && <span class="hidden">{tone === "bad" ? "broken" : "in trouble"}</span>}
        <span class="rate">{figure}</span>
      </span>
      {found.bottleneck === about && <Badge tone={tone ?? "care"}>bottleneck</Badge>}
      {note !== null && <span class="faint">{note}</span>}
      {children}
    </li>
  );
}

function InputNode({ input, found }: { input: Input; found: Troubles }) {
  const about = `inputs.${input.name}`;
  const notes = [input.state !== "running" && input.state, input.held_back > 0 && `${count(input.held_back)} waiting for room`];
  return <Node about={about} name={input.name} figure={perSecond(about)} note={joined(notes)} found={found} />;
}

function PoolNode({ pool, handlers, all, found }: { pool: Pool; handlers: Handler[]; all: number; found: Troubles }) {
  const notes = [
    pool.state !== "running" && pool.state,
    `${count(pool.busy)} of ${several(pool.live, "worker")} busy`,
    pool.queued > 0 && `${count(pool.queued)} waiting`,
  ];
  const figure = `${rate(store.pools.get(pool.name)?.rate)}/s`;
  return (
    <Node about={`pools.${pool.name}`} name={pool.name} figure={figure} note={joined(notes)} found={found}>
      <ul aria-label={`handlers of ${pool.name}`}>
        {handlers.map(({ name, state }) => (
          <Node key={name} about={`handlers.${name}`} name={name} figure={perSecond(`handlers.${name}`)} note={state === "up" ? null : state} found={found} />
        ))}
        {all > handlers.length && <li class="faint">{handlers.length > 0 ? `and ${count(all - handlers.length)} more` : several(all, "handler")}</li>}
      </ul>
    </Node>
  );
}

function OutputNode({ output, found }: { output: Output; found: Troubles }) {
  const about = `outputs.${output.name}`;
  const notes = [
    output.state !== "up" && output.state,
    ...output.waiting.map(({ pool, workers }) => workers > 0 && `${several(workers, "worker")} of ${pool} ${workers === 1 ? "waits" : "wait"}`),
  ];
  return <Node about={about} name={output.name} figure={perSecond(about)} note={joined(notes)} found={found} />;
}

function joined(notes: (string | false)[]): string | null {
  return notes.filter(Boolean).join(" · ") || null;
}
