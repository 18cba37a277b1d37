// Keys: those that wait for somebody, the hottest ones, and why one waits.

import { useState } from "preact/hooks";
import { get, inWords, post } from "./api";
import { count, several, time, words } from "./format";
import type { HotKey, KeyLine, ParkedKey, Sample } from "./types";
import { Act, Bar, Dialog, Empty, Section, confirm, toast } from "./ui";
import { store } from "./store";

let asked: string | null = null;

/** Shows where a key stands and why. */
export function askWhy(key: string): void {
  asked = key;
  store.tell();
}

interface Decided { decided: { handler: string; dead_letters: number }[] }

function decide(word: "resume" | "skip" | "drop", parked: { key: string; handler: string }): Promise<Decided> {
  const query = new URLSearchParams({ key: parked.key, handler: parked.handler });
  return post<Decided>(`/api/keys/${word}?${query}`);
}

function letters({ decided }: Decided): string {
  return several(decided.reduce((sum, one) => sum + one.dead_letters, 0), "dead letter");
}

function Decisions({ parked }: { parked: ParkedKey }) {
  return (
    <span class="acts">
      <button type="button" class="act" aria-label={`why does ${parked.key} wait`} onClick={() => askWhy(parked.key)}>Why</button>
      <Act
        label={`resume ${parked.key}`}
        tone="main"
        run={async () => {
          await decide("resume", parked);
          toast("well", `${parked.key} goes on: its event is attempted anew`);
        }}
      >
        Resume
      </Act>
      <Act
        label={`skip the event of ${parked.key}`}
        run={async () =>
          confirm({
            title: `Skip the event that parked ${parked.key}?`,
            text: <p>That event becomes a dead letter of {parked.handler}{parked.waiting > 0 && <>, and the key goes on with the {several(parked.waiting, "event")} behind it</>}.</p>,
            yes: "Skip it",
            run: async () => {
              const done = await decide("skip", parked);
              toast("well", `${parked.key} goes on; ${letters(done)}`);
            },
          })
        }
      >
        Skip
      </Act>
      <Act
        label={`drop all of ${parked.key}`}
        tone="destroys"
        run={async () =>
          confirm({
            title: `Drop all that waits of ${parked.key}?`,
            text: (
              <p>
                {parked.waiting === 0 ? "The event that failed becomes a dead letter" : `The event that failed and the ${several(parked.waiting, "event")} behind it become dead letters`} with the reason <code>dropped</code>. What comes later of the key is handled.
              </p>
            ),
            yes: `Drop ${several(parked.waiting + 1, "event")}`,
            run: async () => {
              const done = await decide("drop", parked);
              toast("well", `${parked.key}: ${letters(done)}`);
            },
          })
        }
      >
        Drop
      </Act>
    </span>
  );
}

export function Parked({ sample }: { sample: Sample }) {
  const { parked, run } = sample;
  const more = run.parked_keys - parked.length;
  return (
    <Section id="keys" title="Parked keys" note={run.parked_keys > 0 ? several(run.parked_keys, "key") : undefined} side={<WhyBox />}>
      {run.standstill && <p class="error">{run.standstill}</p>}
      {parked.length === 0 ? (
        <Empty>No key waits for a decision.</Empty>
      ) : (
        <ul class="list parked">
          {parked.map((one) => (
            <li key={`${one.key} ${one.handler} ${one.input}`}>
              <div class="what">
                <strong class="key" title={one.key}>{one.key}</strong>
                <span class="faint">
                  {one.handler} · {one.waiting === 0 ? "nothing" : several(one.waiting, "event")} behind it · {words(one.reason)} · for {time(one.since_ms)}
                </span>
                {one.last_error && <span class="why">{one.last_error}</span>}
              </div>
              <Decisions parked={one} />
            </li>
          ))}
          {more > 0 && <li class="faint">and {count(more)} more, which wait less long</li>}
        </ul>
      )}
    </Section>
  );
}

function WhyBox() {
  const [key, setKey] = useState("");
  return (
    <form
      class="whybox"
      onSubmit={(event) => {
        event.preventDefault();
        if (key !== "") askWhy(key);
      }}
    >
      <label for="why-key" class="hidden">a key</label>
      <input id="why-key" placeholder="Why does this key wait?" value={key} autocomplete="off" spellcheck={false} onInput={(event) => setKey(event.currentTarget.value)} />
      <button type="submit" class="act" disabled={key === ""}>Why</button>
    </form>
  );
}

export function Why() {
  return asked === null ? null : <WhyDialog key={asked} of={asked} />;
}

function WhyDialog({ of }: { of: string }) {
  const [lines, setLines] = useState<KeyLine[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [begun, begin] = useState(false);
  const ask = () =>
    get<{ lines: KeyLine[] }>(`/api/keys?${new URLSearchParams({ key: of })}`).then(
      (found) => (setLines(found.lines), setError(null)),
      (why: unknown) => setError(inWords(why)),
    );
  if (!begun) {
    begin(true);
    void ask();
  }
  const close = () => {
    asked = null;
    store.tell();
  };
  const parked = store.sample?.parked.filter((one) => one.key === of) ?? [];
  return (
    <Dialog title={`Why does ${of} wait?`} close={close}>
      <div class="text" aria-live="polite">
        {error !== null && <p class="error">{error}</p>}
        {lines === null && error === null && <p class="faint">Asking…</p>}
        {lines?.length === 0 && <p>Nothing of this key waits or is in hand: it is done, or an output has it.</p>}
        {lines?.map((line) => (
          <div key={`${line.handler} ${line.input}`} class="line">
            <p class="faint">{line.handler} · pool {line.pool} · from {line.input}</p>
            <p>{line.text}</p>
          </div>
        ))}
      </div>
      <footer>
        <button type="button" class="act" onClick={() => void ask()}>Ask again</button>
        {parked.map((one) => <Decisions key={one.handler} parked={one} />)}
      </footer>
    </Dialog>
  );
}

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
