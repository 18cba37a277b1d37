// Dead letters: looked at, handled again, dropped. What they hold is shown as text
// and never as anything else.

import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, get, inWords, post } from "./api";
import { bytes, count, several, words } from "./format";
import { store } from "./store";
import type { Letter, LetterPage, Sample } from "./types";
import { Act, Dialog, Empty, Section, confirm, toast } from "./ui";

const PAGE = 25;

/** How old a list of a store may be, in ms. */
const REFRESH = 10_000;

/** `2026-01-31T12:00:00.123Z` as `2026-01-31 12:00:00`. */
function moment(written: string | null | undefined): string | null {
  return written?.slice(0, 19).replace("T", " ") ?? null;
}

interface Filters { reason: string; handler: string }

function query(filters: Filters): URLSearchParams {
  const query = new URLSearchParams();
  if (filters.reason) query.set("reason", filters.reason);
  if (filters.handler) query.set("handler", filters.handler);
  return query;
}

/** The reasons that there are, for the list to choose from. */
const REASONS = ["malformed", "no_handler", "ambiguous", "rejected", "retries_exhausted", "panicked", "poisoned", "timed_out", "dropped"];

export function Letters({ sample }: { sample: Sample }) {
  const [filters, filter] = useState<Filters>({ reason: "", handler: "" });
  const [pages, setPages] = useState<string[]>([]);
  const [page, setPage] = useState<LetterPage | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [shown, show] = useState<number | null>(null);
  const path = pages.at(-1) ?? `/api/dead-letters?${new URLSearchParams([...query(filters), ["limit", String(PAGE)]])}`;
  const asking = useRef("");
  const load = (): Promise<void> => {
    asking.current = path;
    return get<LetterPage>(path).then(
      (found) => {
        if (asking.current !== path) return;
        setPage(found);
        setError(null);
      },
      (why: unknown) => {
        if (asking.current === path) setError(inWords(why));
      },
    );
  };
  const total = sample.run.dead_lettered;
  const loaded = useRef({ path: "", total: -1, at: 0 });
  useEffect(() => {
    const { current } = loaded;
    // The file of dead letters is read for each list: not for each letter that is added to it. From
    // a store, letters also go by themselves.
    const age = Date.now() - current.at;
    const isStale = (current.total !== total && age > 5_000) || (sample.has_letter_store && age > REFRESH);
    if (!(current.path !== path || isStale) || store.link.is !== "live") return;
    loaded.current = { path, total, at: Date.now() };
    void load();
  });
  const changed = () => {
    // What is replayed is done within moments, but not at once.
    loaded.current = { ...loaded.current, total: -1, at: Date.now() - 4_000 };
    return load();
  };
  const letters = page?.letters ?? [];
  const all = page?.totals?.letters;
  return (
    <Section
      id="letters"
      title="Dead letters"
      note={all !== undefined ? count(all) : total > 0 ? `${count(total)} in this run` : undefined}
      side={<Filter filters={filters} handlers={sample.handlers.map(({ name }) => name)} set={(next) => (filter(next), setPages([]))} />}
    >
      {error !== null && <p class="error">{error}</p>}
      {page !== null && letters.length === 0 && error === null && (
        <Empty>{filters.reason || filters.handler ? "No dead letter is like that." : "None: every event was handled."}</Empty>
      )}
      {letters.length > 0 && (
        <div class="scroll">
          <table class="letters">
            <thead>
              <tr><th class="number">No.</th><th>When</th><th>Reason</th><th>Handler</th><th>Type and subject</th><th>Error</th></tr>
            </thead>
            <tbody>
              {letters.map((letter) => (
                <tr key={letter.number}>
                  <td class="number">
                    <button type="button" class="plain link" aria-label={`look at dead letter ${letter.number}`} onClick={() => show(letter.number)}>{letter.number}</button>
                  </td>
                  <td class="when">{moment(letter.last_at) ?? "–"}</td>
                  <td>{words(letter.reason)}<State letter={letter} /></td>
                  <td>{letter.handler ?? "–"}</td>
                  <td class="key">{[letter.type, letter.subject].filter(Boolean).join(" · ") || "no event"}</td>
                  <td class="error-text" title={letter.error}>{letter.error}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {(pages.length > 0 || page?.next) && (
        <p class="paging">
          <button type="button" class="act" disabled={pages.length === 0} onClick={() => setPages(pages.slice(0, -1))}>Earlier</button>
          <button type="button" class="act" disabled={!page?.next} onClick={() => page?.next && setPages([...pages, page.next])}>Later</button>
        </p>
      )}
      {letters.length > 0 && sample.has_letter_store && <All filters={filters} changed={changed} />}
      {letters.length > 0 && !sample.has_letter_store && (
        <p class="faint">They go to a file. With <code>dead_letters: {"{ store: {} }"}</code> they can be replayed and dropped here.</p>
      )}
      {shown !== null && <One number={shown} close={() => show(null)} changed={changed} store={sample.has_letter_store} />}
    </Section>
  );
}

function State({ letter }: { letter: Letter }) {
  if (letter.state === "marked" || letter.state === "in_replay") return <span class="faint"> · handled again</span>;
  return letter.replays ? <span class="faint"> · replayed {letter.replays}×</span> : null;
}

function Filter({ filters, handlers, set }: { filters: Filters; handlers: string[]; set: (next: Filters) => void }) {
  return (
    <span class="filters">
      <select aria-label="reason" value={filters.reason} onChange={(event) => set({ ...filters, reason: event.currentTarget.value })}>
        <option value="">every reason</option>
        {REASONS.map((reason) => <option key={reason} value={reason}>{words(reason)}</option>)}
      </select>
      <select aria-label="handler" value={filters.handler} onChange={(event) => set({ ...filters, handler: event.currentTarget.value })}>
        <option value="">every handler</option>
        {handlers.map((handler) => <option key={handler} value={handler}>{handler}</option>)}
      </select>
    </span>
  );
}

function which(filters: Filters): string {
  const named = [filters.reason && words(filters.reason), filters.handler && `for ${filters.handler}`].filter(Boolean);
  return named.length > 0 ? ` (${named.join(", ")})` : "";
}

async function replay(query: URLSearchParams): Promise<void> {
  const marked = await post<{ letters: number; without_event: number; marked_before: number }>(`/api/dead-letters/replay?${query}`);
  const left = marked.without_event > 0 ? `; ${count(marked.without_event)} have no event` : "";
  toast(marked.letters > 0 ? "well" : "care", `${several(marked.letters, "letter")} ${marked.letters === 1 ? "is" : "are"} handled again${left}`);
}

interface Totals { letters: number; newest: number }

/** Asks how many it would be, asks whether that is meant, and drops no more than these. */
async function drop(query: URLSearchParams, what: string, changed: () => Promise<void>): Promise<void> {
  const path = `/api/dead-letters/drop?${query}`;
  const totals = await post(path).then(
    () => ({ letters: 0, newest: 0 }),
    (error: unknown) => {
      if (error instanceof Refused && error.status === 409 && error.details) return error.details as Totals;
      throw error;
    },
  );
  if (totals.letters === 0) {
    toast("care", "there is no such letter any more");
    return changed();
  }
  confirm({
    title: `Drop ${several(totals.letters, "dead letter")}?`,
    text: <p>{what} gone for good: nothing brings {totals.letters === 1 ? "it" : "them"} back.</p>,
    yes: `Drop ${several(totals.letters, "letter")}`,
    run: async () => {
      const done = await post<{ letters: number; in_replay: number }>(`${path}&confirm=${totals.letters}&upto=${totals.newest}`);
      const left = done.in_replay > 0 ? `; ${count(done.in_replay)} are being replayed and stay` : "";
      toast("well", `${several(done.letters, "letter")} dropped${left}`);
      await changed();
    },
  });
}

function All({ filters, changed }: { filters: Filters; changed: () => Promise<void> }) {
  const named = () => {
    const named = query(filters);
    if (named.size === 0) named.set("all", "true");
    return named;
  };
  return (
    <p class="paging">
      <Act
        run={async () =>
          confirm({
            title: `Replay all dead letters${which(filters)}?`,
            text: <p>Each is handled again, in order per key. Those that fail again become dead letters anew.</p>,
            yes: "Replay all",
            run: async () => {
              await replay(named());
              await changed();
            },
          })
        }
      >
        Replay all{which(filters)}
      </Act>
      <Act tone="destroys" run={() => drop(named(), `All dead letters${which(filters)} are`, changed)}>Drop all{which(filters)}</Act>
    </p>
  );
}

/** More of a letter than this is not shown: a browser would be busy for long. */
const LONGEST = 200_000;

function One({ number, close, changed, store: stored }: { number: number; close: () => void; changed: () => Promise<void>; store: boolean }) {
  const [letter, setLetter] = useState<Record<string, unknown> | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    get<Record<string, unknown>>(`/api/dead-letters/${number}`).then(
      (found) => setLetter((found["letter"] ?? found) as Record<string, unknown>),
      (why: unknown) => setError(inWords(why)),
    );
  }, [number]);
  const gone = async () => {
    close();
    await changed();
  };
  const one = new URLSearchParams({ id: String(number) });
  const event = letter?.["event"];
  const raw = letter?.["raw_base64"];
  const text = event !== undefined ? JSON.stringify(event, null, 2) : typeof raw === "string" ? raw : "";
  const fact = (name: string) => {
    const value = letter?.[name];
    return value === undefined || value === null ? null : typeof value === "object" ? JSON.stringify(value) : String(value);
  };
  const facts: [string, string | null][] = [
    ["Reason", words(fact("reason"))],
    ["Handler", fact("handler")],
    ["Pool", fact("pool")],
    ["Input", fact("input")],
    ["Source", fact("source")],
    ["Position", fact("position")],
    ["Attempts", fact("attempts")],
    ["First", moment(fact("first_at"))],
    ["Last", moment(fact("last_at"))],
  ];
  return (
    <Dialog title={`Dead letter ${number}`} close={close} wide>
      <div class="text">
        {error !== null && <p class="error">{error}</p>}
        {letter === null && error === null && <p class="faint">Reading…</p>}
        {letter !== null && (
          <>
            <p class="why">{fact("error")}</p>
            <dl class="facts">
              {facts.filter(([, value]) => value).map(([name, value]) => (
                <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
              ))}
            </dl>
            <h3>{event !== undefined ? "Event" : "What was read, as Base64"}<span class="note">{bytes(text.length)}</span></h3>
            <pre tabIndex={0} aria-label="the event">{text.slice(0, LONGEST)}</pre>
            {text.length > LONGEST && <p class="faint">cut: <code>/api/dead-letters/{number}</code> has all of it</p>}
          </>
        )}
      </div>
      <footer>
        <button type="button" class="act" disabled={text === ""} onClick={() => navigator.clipboard?.writeText(text).then(() => toast("well", "copied"), () => toast("bad", "this browser does not let the page copy"))}>Copy</button>
        {stored && (
          <>
            <Act
              tone="main"
              run={async () => {
                await replay(one);
                await gone();
              }}
            >
              Replay
            </Act>
            <Act
              tone="destroys"
              run={async () => {
                close();
                await drop(one, "It is", changed);
              }}
            >
              Drop
            </Act>
          </>
        )}
      </footer>
    </Dialog>
  );
}
