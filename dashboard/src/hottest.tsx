// The keys with the most events.

import { count } from "./format";
import type { HotKey } from "./types";
import { Bar, Empty, Section } from "./ui";
import { askWhy } from "./why";

/**
 * If all keys are about as hot, the estimates tell little: a key is shown if a good part of its
 * figure is sure.
 */
function standsOut({ events, at_most_too_many }: HotKey): boolean {
  return at_most_too_many <= events / 2;
}

export function Hottest({ keys: all }: { keys: HotKey[] }) {
  const keys = all.filter(standsOut);
  const most = keys[0]?.events ?? 0;
  return (
    <Section id="hottest" title="Hottest keys" note={keys.length > 0 ? "events handled, about" : undefined}>
      {keys.length === 0 ? (
        <Empty>{all.length > 0 ? "No key stands out: all have about as many events." : "No pool keeps order per key, or nothing was handled yet."}</Empty>
      ) : (
        <ul class="list hot">
          {keys.map((one) => (
            <li key={`${one.key} ${one.handler}`}>
              <button type="button" class="plain key" title={`why: ${one.key}`} onClick={() => askWhy(one.key)}>{one.key}</button>
              <span class="faint handler">{one.handler}</span>
              <Bar value={one.events} of={most} label={`${count(one.events)} events`} />
              <span class="number">{count(one.events)}</span>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
