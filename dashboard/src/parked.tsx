// Parked keys: each waits for a decision. Keys of one handler that failed of the same error stand
// together, and can be decided about together.

import { useEffect, useState } from "preact/hooks";
import { conflict, inWords, post } from "./api";
import { count, several, time, words } from "./format";
import type { ParkedKey, Sample } from "./types";
import { Act, Dialog, Empty, Section, toast } from "./ui";
import { askWhy, type Decision } from "./why";

const PAGE = 50;

/** So many keys of a group are shown before it is unfolded. */
const FEW = 3;

interface Group { name: string; handler: string; error: string; keys: ParkedKey[] }

type Row = { key: ParkedKey } | { group: Group };

function groups(parked: ParkedKey[]): Group[] {
  const all = new Map<string, Group>();
  for (const key of parked) {
    const group: Group = { name: key.group, handler: key.handler, error: key.last_error ?? "", keys: [] };
    const known = all.get(group.name) ?? group;
    known.keys.push(key);
    all.set(group.name, known);
  }
  return [...all.values()];
}

export function Parked({ sample }: { sample: Sample }) {
  const { parked, run } = sample;
  const [page, turnTo] = useState(0);
  const [open, setOpen] = useState<string | null>(null);
  const [deciding, decide] = useState<Group | null>(null);
  const rows = groups(parked).flatMap((group): Row[] => {
    const shown = open === group.name ? group.keys : group.keys.slice(0, FEW);
    return [...shown.map((key) => ({ key })), ...(group.keys.length > 1 ? [{ group }] : [])];
  });
  const last = Math.max(0, Math.ceil(rows.length / PAGE) - 1);
  const now = Math.min(page, last);
  const more = run.parked_keys - parked.length;
  return (
    <Section id="keys" title="Parked keys" note={run.parked_keys > 0 ? several(run.parked_keys, "key") : undefined}>
      {run.standstill && <p class="error">{run.standstill}</p>}
      {parked.length === 0 ? (
        <Empty>No key waits for a decision.</Empty>
      ) : (
        <ul class="list parked">
          {rows.slice(now * PAGE, (now + 1) * PAGE).map((row) =>
            "key" in row ? (
              <One key={`${row.key.key} ${row.key.handler} ${row.key.input}`} parked={row.key} />
            ) : (
              <Together
                key={row.group.name}
                group={row.group}
                open={open === row.group.name}
                toggle={() => setOpen(open === row.group.name ? null : row.group.name)}
                decide={() => decide(row.group)}
              />
            ),
          )}
        </ul>
      )}
      {last > 0 && (
        <p class="paging">
          <button type="button" class="act" disabled={now === 0} onClick={() => turnTo(now - 1)}>Earlier</button>
          <button type="button" class="act" disabled={now === last} onClick={() => turnTo(now + 1)}>Later</button>
          <span class="faint">page {now + 1} of {last + 1}</span>
        </p>
      )}
      {more > 0 && <p class="faint">{several(more, "more key")} {more === 1 ? "is" : "are"} parked. The first {count(parked.length)}, which have waited longest, are shown.</p>}
      {deciding !== null && <DecideAll group={deciding} close={() => decide(null)} />}
    </Section>
  );
}

function One({ parked }: { parked: ParkedKey }) {
  const { key, handler, event, waiting, reason, since_ms, last_error } = parked;
  return (
    <li>
      <div class="what">
        <strong class="key" title={key}>{key}</strong>
        <span class="faint">
          {handler} · {waiting === 0 ? "nothing" : several(waiting, "event")} behind it · {words(reason)} · for {time(since_ms)}
        </span>
        {event && <span class="faint">event {event.id} · {event.type} · {several(event.attempt, "attempt")}</span>}
        {last_error && <span class="why">{last_error}</span>}
      </div>
      <button type="button" class="act" aria-label={`decide about ${key}`} onClick={() => askWhy(key)}>Decide</button>
    </li>
  );
}

function Together({ group, open, toggle, decide }: { group: Group; open: boolean; toggle: () => void; decide: () => void }) {
  const rest = group.keys.length - FEW;
  return (
    <li>
      <div class="what faint">
        {rest > 0 && !open ? `and ${count(rest)} more with the same error` : `${several(group.keys.length, "key")} with the same error`}
      </div>
      <span class="acts">
        {rest > 0 && <button type="button" class="act" aria-expanded={open} onClick={toggle}>{open ? "Show few" : "Show all"}</button>}
        <button type="button" class="act" aria-label={`decide about all with this error of ${group.handler}`} onClick={decide}>Decide about all</button>
      </span>
    </li>
  );
}

/** Asks how many keys there are: a sample has the first ones alone. Decides about that many. */
function DecideAll({ group, close }: { group: Group; close: () => void }) {
  const { name, handler, error } = group;
  const [keys, setKeys] = useState<number | null>(null);
  const [refused, refuse] = useState<string | null>(null);
  const ask = (decision: Decision, confirmed?: number) => {
    const query = new URLSearchParams({ decision, group: name });
    if (confirmed !== undefined) query.set("confirm", String(confirmed));
    return post<{ keys: number; dead_letters: number }>(`/api/keys/decide-all?${query}`);
  };
  useEffect(() => {
    // Without a number, nothing is decided.
    ask("resume").catch(conflict<{ keys: number }>).then((found) => setKeys(found.keys), (why: unknown) => refuse(inWords(why)));
  }, []);
  const decide = (decision: Decision) => async () => {
    if (keys === null) return;
    try {
      const done = await ask(decision, keys);
      toast("well", `${several(done.keys, "key")} ${done.keys === 1 ? "goes" : "go"} on; ${several(done.dead_letters, "dead letter")}`);
      close();
    } catch (why) {
      setKeys(conflict<{ keys: number }>(why).keys);
      refuse("It is another number of keys by now. Nothing was decided.");
    }
  };
  const all = keys === null ? "" : ` ${several(keys, "key")}`;
  return (
    <Dialog title={`Decide about all keys of ${handler} with one error`} close={close} wide>
      <div class="text">
        {refused !== null && <p class="error" role="alert">{refused}</p>}
        <p>{keys === null ? "Counting…" : `${several(keys, "key")} ${keys === 1 ? "is" : "are"} parked with ${handler} because of an error like this:`}</p>
        <pre tabIndex={0} aria-label="the error">{error || "no error"}</pre>
        <p class="faint outcome">Resume attempts their events again. Skip makes each failed event a dead letter. Drop makes the events behind it dead letters, too.</p>
      </div>
      <footer>
        <button type="button" class="act" onClick={close}>Cancel</button>
        <Act tone="main" disabled={!keys} run={decide("resume")}>Resume{all}</Act>
        <Act disabled={!keys} run={decide("skip")}>Skip{all}</Act>
        <Act tone="destroys" disabled={!keys} run={decide("drop")}>Drop{all}</Act>
      </footer>
    </Dialog>
  );
}
