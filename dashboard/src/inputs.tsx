// Inputs and their partitions: what each has under way, how far it lags, and whether it is read.

import { useState } from "preact/hooks";
import { bytes, count, rate, several, time } from "./format";
import { store } from "./store";
import type { HeldByShare, Input, Partition } from "./types";
import { Badge, Bar, Empty, Section, type Tone } from "./ui";

function lagOf(input: Input): number | null {
  const known = input.partitions.filter((partition) => partition.lag !== null);
  return known.length === 0 ? null : known.reduce((sum, partition) => sum + (partition.lag ?? 0), 0);
}

export function Inputs({ inputs }: { inputs: Input[] }) {
  return (
    <Section id="inputs" title="Inputs" note={several(inputs.length, "input")}>
      {inputs.length === 0 ? <Empty>Nothing is read.</Empty> : inputs.map((input) => <One key={input.name} input={input} />)}
    </Section>
  );
}

/** Of one that is not connected: whether an operator has to correct something. */
function toneOf({ state }: Input): Tone {
  if (state === "running") return "well";
  return state === "refused" ? "bad" : "care";
}

function One({ input }: { input: Input }) {
  const [open, setOpen] = useState(false);
  const several_ = input.partitions.length > 1;
  const paused = input.partitions.filter((partition) => partition.state === "paused").length;
  const lag = lagOf(input);
  const only = input.partitions[0];
  const flow = store.flows.get(`inputs.${input.name}`);
  return (
    <div class="input" id={`inputs.${input.name}`} tabIndex={-1}>
      <div class="line">
        <span class="name">
          {several_ ? (
            <button type="button" class="plain toggle" aria-expanded={open} onClick={() => setOpen(!open)}>
              <span class="turn" aria-hidden="true" />
              {input.name}
            </button>
          ) : (
            <strong>{input.name}</strong>
          )}
          <Badge tone={toneOf(input)}>{input.state}</Badge>
        </span>
        <span class="faint source" title={input.source}>{input.source}</span>
      </div>
      {input.state === input.connection && <p class="why">{input.connection} for {time(input.connection_since_ms)}: {input.connection_detail}</p>}
      <div class="line gauge">
        <Bar value={input.in_flight_bytes} of={input.in_flight} label={`${bytes(input.in_flight_bytes)} of ${bytes(input.in_flight)} in flight`} />
        <span class="amount">{bytes(input.in_flight_bytes)}<span class="of"> / {bytes(input.in_flight)}</span></span>
      </div>
      <p class="faint">
        {flow !== undefined && <>{rate(flow.rate)}/s taken · </>}
        {lag !== null && <>lag {count(lag)} · </>}
        {input.held_back > 0 && <>{count(input.held_back)} waiting for room · </>}
        {input.parked > 0 && <>{count(input.parked)} behind parked keys · </>}
        {paused > 0 && several_ && <>{paused} of {input.partitions.length} partitions paused · </>}
        {input.last_settled_ms === null ? "nothing finished yet" : `last finished ${time(input.last_settled_ms)} ago`}
        {!several_ && only && only.next !== null && <> · {position(only)}</>}
      </p>
      {input.held_by_share && <p class="why">{heldBy(input.held_by_share, input)}</p>}
      {input.refuses_parked && <p class="why">Further events of parked keys are refused: those that wait fill half of the room of this input.</p>}
      {input.answers && <p class="faint">answered: {Object.entries(input.answers).map(([status, times]) => `${status} × ${count(times)}`).join(", ") || "nothing yet"}</p>}
      {several_ && open && <Partitions all={input.partitions} />}
    </div>
  );
}

function heldBy({ pool, share, events }: HeldByShare, { run_ahead }: Input): string {
  const of = share === null ? "of the common share" : `of the share ${share}`;
  return `It stands still because of a share: ${several(events, "event")} ${of} ${events === 1 ? "waits" : "wait"} for room in the pool ${pool}, of a run-ahead of ${count(run_ahead)}.`;
}

function position({ oldest_open, next }: Partition): string {
  return oldest_open === next ? `all finished up to ${count(next)}` : `oldest open ${count(oldest_open)}, next ${count(next)}`;
}

function Partitions({ all }: { all: Partition[] }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr><th>Partition</th><th>State</th><th class="number">Lag</th><th class="number">Oldest open</th><th class="number">Next</th><th class="number">In flight</th><th class="number">Last finished</th></tr>
        </thead>
        <tbody>
          {all.slice(0, 256).map((one) => (
            <tr key={one.partition}>
              <td>{one.partition}</td>
              <td><Badge tone={one.state === "paused" ? "care" : "well"}>{one.state}</Badge></td>
              <td class="number">{count(one.lag)}</td>
              <td class="number">{count(one.oldest_open)}</td>
              <td class="number">{count(one.next)}</td>
              <td class="number">{bytes(one.in_flight_bytes)}</td>
              <td class="number">{one.last_settled_ms === null ? "–" : `${time(one.last_settled_ms)} ago`}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
