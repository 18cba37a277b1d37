// Dead letters: found, counted by their errors, handled again, dropped.

import { useState } from "preact/hooks";
import { get, inWords, save } from "./api";
import { useAsked } from "./asked";
import { drop, replay } from "./fate";
import { bytes, count, moment, words } from "./format";
import { Groups } from "./groups";
import { OneLetter } from "./letter";
import { at, go } from "./place";
import { Replays } from "./replays";
import type { Letter, LetterGroups, LetterPage, Sample } from "./types";
import { Act, Empty, Section, confirm, toast } from "./ui";

const PAGE = 25;

/** How old what a store said may be, in ms. Letters go by themselves; counting reads all. */
const REFRESH = 10_000;
const COUNTED = 30_000;

const FILTERS = ["reason", "handler", "group", "key", "share", "event"] as const;
type Filter = (typeof FILTERS)[number];

function filters(): Filter[] {
  return FILTERS.filter((name) => at(name) !== "");
}

function query(more: Record<string, string> = {}): URLSearchParams {
  return new URLSearchParams([...filters().map((name) => [name, at(name)]), ...Object.entries(more)]);
}

/** The filters in words. */
function which(): string {
  const named = filters().map((name) => (name === "reason" ? words(at(name)) : name === "group" ? "of one error" : `${name} ${at(name)}`));
  return named.length > 0 ? ` (${named.join(", ")})` : "";
}

/** Shows the letters of a key or a share, or those of the event with this id. */
export async function findLetters(text: string): Promise<void> {
  const nothing = { reason: "", handler: "", group: "", key: "", share: "", event: "" };
  if (text === "") return go(nothing);
  const has = async (name: Filter) =>
    (await get<LetterPage>(`/api/dead-letters?${new URLSearchParams({ [name]: text, order: "newest", limit: "1" })}`)).letters.length > 0;
  let found: Filter = "key";
  for (const name of ["key", "event", "share"] as const) {
    if (await has(name)) {
      found = name;
      break;
    }
  }
  go({ ...nothing, [found]: text });
  const section = document.getElementById("letters");
  section?.scrollIntoView({ block: "start" });
  section?.focus({ preventScroll: true });
}

/** The reasons that there are, where no store counts them. */
const REASONS = [
  "malformed", "too_large", "no_handler", "handler_rejected", "key_missing", "rejected",
  "retries_exhausted", "poisoned", "no_workers", "pool_full", "dropped", "output_rejected",
];

export function Letters({ sample }: { sample: Sample }) {
  const stored = sample.has_letter_store;
  const total = sample.run.dead_lettered;
  const first = `/api/dead-letters?${query({ order: "newest", limit: String(PAGE) })}`;
  const [turned, turn] = useState<{ first: string; pages: string[] }>({ first, pages: [] });
  const pages = turned.first === first ? turned.pages : [];
  // A file of dead letters is read for each list: not for each letter that is added to it.
  const list = useAsked<LetterPage>(pages.at(-1) ?? first, stored ? REFRESH : Infinity, total);
  // Where letters cannot be read, the list says why.
  const groups = useAsked<LetterGroups>(list.error === null ? `/api/dead-letters?${query({ by: "group" })}` : null, COUNTED);
  const reasons = useAsked<LetterGroups>(stored ? "/api/dead-letters?by=reason" : null, COUNTED);
  const changed = async () => void (await Promise.all([list.again(), groups.again(), reasons.again()]));
  const letters = list.found?.letters ?? [];
  const all = list.found?.totals?.letters;
  const searched = list.found?.searched_bytes;
  const shown = Number(at("letter"));
  return (
    <Section
      id="letters"
      title="Dead letters"
      note={all !== undefined ? count(all) : total > 0 ? `${count(total)} in this run` : undefined}
      side={<Filters handlers={sample.handlers.map(({ name }) => name)} reasons={reasons.found} />}
    >
      {list.error !== null && <p class="error">{list.error}</p>}
      {stored && <Replays changed={changed} />}
      {groups.found !== null && <Groups {...groups.found} />}
      {list.found !== null && letters.length === 0 && list.error === null && (
        <Empty>{searched ? `None in the ${bytes(searched)} that were read.` : filters().length > 0 ? "No dead letter matches." : "None: every event was handled."}</Empty>
      )}
      {letters.length > 0 && <Table letters={letters} />}
      {(pages.length > 0 || list.found?.next) && (
        <p class="paging">
          <button type="button" class="act" disabled={pages.length === 0} onClick={() => turn({ first, pages: pages.slice(0, -1) })}>Newer</button>
          <button type="button" class="act" disabled={!list.found?.next} onClick={() => list.found?.next && turn({ first, pages: [...pages, list.found.next] })}>Older</button>
          {searched && <span class="faint">The search has read {bytes(searched)} of the file: <i>Older</i> goes on.</span>}
        </p>
      )}
      {letters.length > 0 && stored && <All changed={changed} />}
      {letters.length > 0 && !stored && (
        <p class="faint">They are in a file. With <code>dead_letters: {"{ store: {} }"}</code> they can be replayed and dropped here.</p>
      )}
      {shown > 0 && <OneLetter number={shown} close={() => go({ letter: "" })} changed={changed} store={stored} />}
    </Section>
  );
}

function Table({ letters }: { letters: Letter[] }) {
  return (
    <div class="scroll">
      <table class="letters">
        <thead>
          <tr><th class="number">No.</th><th>When</th><th>Reason</th><th>Handler</th><th>Type and subject</th><th>Error</th></tr>
        </thead>
        <tbody>
          {letters.map((letter) => (
            <tr key={letter.number}>
              <td class="number">
                <button type="button" class="plain link" aria-label={`look at dead letter ${letter.number}`} onClick={() => go({ letter: String(letter.number) })}>{letter.number}</button>
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
  );
}

function State({ letter }: { letter: Letter }) {
  if (letter.state === "marked" || letter.state === "in_replay") return <span class="faint"> · handled again</span>;
  return letter.replays ? <span class="faint"> · replayed {letter.replays}×</span> : null;
}

function Filters({ handlers, reasons }: { handlers: string[]; reasons: LetterGroups | null }) {
  const known: [string, string][] = reasons
    ? reasons.groups.map(({ name, letters }) => [name ?? "", `${words(name)} (${count(letters)})`])
    : REASONS.map((reason) => [reason, words(reason)]);
  // What the address asks for may be gone.
  const reason = at("reason");
  if (reason !== "" && !known.some(([name]) => name === reason)) known.push([reason, words(reason)]);
  return (
    <span class="filters">
      <Search of={at("key") || at("event") || at("share")} />
      <select aria-label="reason" value={reason} onChange={(event) => go({ reason: event.currentTarget.value })}>
        <option value="">every reason</option>
        {known.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
      </select>
      <select aria-label="handler" value={at("handler")} onChange={(event) => go({ handler: event.currentTarget.value })}>
        <option value="">every handler</option>
        {handlers.map((handler) => <option key={handler} value={handler}>{handler}</option>)}
      </select>
      {filters().length > 0 && <button type="button" class="plain" onClick={() => void findLetters("")}>Show all</button>}
    </span>
  );
}

function Search({ of }: { of: string }) {
  const [typed, type] = useState<string | null>(null);
  return (
    <form
      class="search"
      role="search"
      aria-label="dead letters"
      onSubmit={(event) => {
        event.preventDefault();
        findLetters((typed ?? of).trim()).then(() => type(null), (why: unknown) => toast("bad", inWords(why)));
      }}
    >
      <input aria-label="event id, key or share" placeholder="Event id, key or share" value={typed ?? of} autocomplete="off" spellcheck={false} onInput={(event) => type(event.currentTarget.value)} />
    </form>
  );
}

function All({ changed }: { changed: () => Promise<void> }) {
  const named = () => (filters().length === 0 ? new URLSearchParams({ all: "true" }) : query());
  return (
    <p class="paging">
      <Act
        run={async () =>
          confirm({
            title: `Replay all dead letters${which()}?`,
            text: <p>Each is handled again, in order per key. Those that fail again become dead letters anew.</p>,
            yes: "Replay all",
            run: async () => {
              await replay(named());
              await changed();
            },
          })
        }
      >
        Replay all{which()}
      </Act>
      <Act tone="destroys" run={() => drop(named(), `All dead letters${which()} are`, changed)}>Drop all{which()}</Act>
      <Act reads label={`export all dead letters${which()}`} run={() => save(`/api/dead-letters/export?${query()}`, "dead-letters.ndjson")}>Export</Act>
    </p>
  );
}
