// Handlers and outputs: where events go, and whether they get there.

import { post } from "./api";
import { count, rate, several, time } from "./format";
import { store } from "./store";
import type { Handler, Output, Trouble } from "./types";
import { Act, Badge, Empty, Section, toast, type Tone } from "./ui";

const HANDLERS: Record<Handler["state"], Tone> = { up: "well", paused: "care", outage: "care", refused: "bad", broken: "bad" };
const OUTPUTS: Record<Output["state"], Tone> = { up: "well", failing: "care", paused: "bad", failed: "bad" };

export function Targets({ handlers, outputs }: { handlers: Handler[]; outputs: Output[] }) {
  return (
    <Section id="targets" title="Handlers and outputs">
      <ul class="list targets">
        {handlers.map((handler) => (
          <li key={handler.name} id={`handlers.${handler.name}`} tabIndex={-1}>
            <div class="what">
              <span><strong>{handler.name}</strong> <Badge tone={HANDLERS[handler.state]}>{handler.state}</Badge></span>
              <span class="faint">{handler.kind ?? "handler"} · {handler.on.join(", ")} · pool {handler.pool}{handler.order_by !== null && ` · by ${handler.order_by}`}</span>
              <Attempts handler={handler} />
              <Why trouble={handler.outage} />
            </div>
            <PauseHandler handler={handler} />
          </li>
        ))}
      </ul>
      <h3>Outputs</h3>
      {outputs.length === 0 ? (
        <Empty>There are none: what handlers produce goes nowhere.</Empty>
      ) : (
        <ul class="list targets">
          {outputs.map((output) => (
            <li key={output.name} id={`outputs.${output.name}`} tabIndex={-1}>
              <div class="what">
                <span><strong>{output.name}</strong> <Badge tone={OUTPUTS[output.state]}>{output.state}</Badge>{output.removed && <> <Badge tone="idle">removed</Badge></>}</span>
                <span class="faint">{output.target} · {count(output.events)} events{output.rejected > 0 && ` · ${count(output.rejected)} rejected`}</span>
                {output.waiting?.map(({ pool, workers }) => workers > 0 && (
                  <span key={pool} class="why">{several(workers, "worker")} of the pool {pool} {workers === 1 ? "waits" : "wait"} for it</span>
                ))}
                <Why trouble={output.trouble} />
                {output.failure !== null && <span class="why">{output.failure}</span>}
              </div>
              {output.state === "paused" && (
                <Act
                  tone="main"
                  label={`resume the output ${output.name}`}
                  run={async () => {
                    await post(`/api/outputs/${encodeURIComponent(output.name)}/resume`);
                    toast("well", `${output.name} tries again now`);
                  }}
                >
                  Try now
                </Act>
              )}
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}

/** An older greenroom does not count them. */
function Attempts({ handler: { name, handled, failed, recent } }: { handler: Handler }) {
  if (handled === undefined) return null;
  const parts = [
    `${rate(store.flows.get(`handlers.${name}`)?.rate)}/s handled`,
    recent?.p50_ms != null && `p50 ${time(recent.p50_ms)}, p99 ${time(recent.p99_ms)}`,
    (failed ?? 0) > 0 && several(failed ?? 0, "failed attempt"),
  ];
  return <span class="faint">{parts.filter(Boolean).join(" · ")}</span>;
}

function Why({ trouble }: { trouble: Trouble | null }) {
  return trouble && <span class="why">for {time(trouble.lasted_ms)}: {trouble.last_error}</span>;
}

function PauseHandler({ handler }: { handler: Handler }) {
  const paused = handler.state === "paused";
  return (
    <Act
      label={`${paused ? "resume" : "pause"} the handler ${handler.name}`}
      run={async () => {
        await post(`/api/handlers/${encodeURIComponent(handler.name)}/${paused ? "resume" : "pause"}`);
        toast("well", paused ? `${handler.name} goes on` : `${handler.name} is paused: it starts no further attempt`);
      }}
    >
      {paused ? "Resume" : "Pause"}
    </Act>
  );
}
