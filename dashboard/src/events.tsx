// What happens to pools, as it happens.

import { timeOfDay } from "./format";
import type { PoolEvent } from "./types";
import { Empty, Mark, Section, type Tone } from "./ui";

const TONES: Record<string, Tone> = {
  worker_restarted: "care",
  start_failed: "bad",
  budget_exceeded: "bad",
  worker_disabled: "bad",
  worker_wedged: "care",
  escalated: "bad",
  dead_letter: "care",
  mailbox_full: "care",
  mailbox_drained: "well",
  dropped_by_overflow: "care",
  key_parked: "care",
  key_released: "well",
  worker_enabled: "well",
  memory_above_ceiling: "care",
  missed: "care",
};

export function Events({ events }: { events: PoolEvent[] }) {
  return (
    <Section id="events" title="Events" note="since this page was opened">
      {events.length === 0 ? (
        <Empty>Nothing has happened: no restart, no parked key, no full queue.</Empty>
      ) : (
        <ol class="events" tabIndex={0} aria-label="events, the newest first">
          {events.map((event) => (
            <li key={event.number}>
              <time>{timeOfDay(event.at_ms)}</time>
              <Mark tone={TONES[event.kind] ?? "idle"} />
              <span><span class="faint">{event.pool}</span> {event.text}{event.times > 1 && <span class="times"> ×{event.times}</span>}</span>
            </li>
          ))}
        </ol>
      )}
    </Section>
  );
}
