// Where a key stands and why. If it is parked: the event that parks it, and the decision about
// that event. Nobody decides about an event that was not shown: the decision names it, and is
// refused if another one is there by now.

import { useEffect, useState } from "preact/hooks";
import { Refused, get, inWords, post } from "./api";
import { bytes, count, moment, several } from "./format";
import { findLetters } from "./letters";
import { at, go } from "./place";
import type { KeyLine, ParkedEvent } from "./types";
import { Act, Dialog, toast } from "./ui";

export type Decision = "resume" | "skip" | "drop";

export function askWhy(key: string): void {
  go({ why: key });
}

export function Why() {
  const key = at("why");
  return key === "" ? null : <WhyDialog key={key} of={key} />;
}

function WhyDialog({ of }: { of: string }) {
  const [lines, setLines] = useState<KeyLine[] | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [refused, refuse] = useState<string | null>(null);
  const ask = () =>
    get<{ lines: KeyLine[] }>(`/api/keys?${new URLSearchParams({ key: of })}`).then(
      (found) => (setLines(found.lines), setError(null)),
      (why: unknown) => setError(inWords(why)),
    );
  useEffect(() => void ask(), []);
  const close = () => go({ why: "" });
  const decide = async (line: KeyLine, event: ParkedEvent, decision: Decision) => {
    refuse(null);
    try {
      toast("well", await decided(of, line, event, decision));
    } catch (why) {
      // Another event is there by now, or none.
      if (!(why instanceof Refused && (why.status === 409 || why.status === 404))) throw why;
      refuse(inWords(why));
      return ask();
    }
    const others = lines?.some((other) => other !== line && other.state === "parked");
    return others ? ask() : close();
  };
  return (
    <Dialog title={`Why does ${of} wait?`} close={close} wide>
      <div class="text">
        {refused !== null && <p class="error" role="alert">{refused}</p>}
        <div aria-live="polite">
          {error !== null && <p class="error">{error}</p>}
          {lines === null && error === null && <p class="faint">Asking…</p>}
          {lines?.length === 0 && <p>No event of this key waits or is being handled: all are finished, or an output has them.</p>}
          {lines?.map((line) => (
            <div key={`${line.handler} ${line.input}`} class="line">
              <p class="faint">{line.handler} · pool {line.pool} · from {line.input}</p>
              <p>{line.text}</p>
              {line.event && <Shown event={line.event} error={line.last_error ?? null} />}
              {line.event && line.state === "parked" && <Decisions line={line} decide={decide} />}
              {!line.event && line.state === "parked" && <p class="faint">The event that parks it is not known yet: ask again.</p>}
            </div>
          ))}
        </div>
      </div>
      <footer>
        <Act reads run={async () => {
          go({ why: "" });
          await findLetters(of);
        }}>
          Dead letters with this id or key
        </Act>
        <button type="button" class="act" onClick={() => (refuse(null), void ask())}>Ask again</button>
      </footer>
    </Dialog>
  );
}

/** Decides, and tells what came of it. */
async function decided(key: string, { handler }: KeyLine, event: ParkedEvent, decision: Decision): Promise<string> {
  const query = new URLSearchParams({ key, handler, event: event.id });
  const done = await post<{ decided: { dead_letters: number }[] }>(`/api/keys/${decision}?${query}`);
  const letters = several(done.decided.reduce((sum, one) => sum + one.dead_letters, 0), "dead letter");
  if (decision === "resume") return `${key} goes on: its event is attempted again`;
  return decision === "skip" ? `${key} goes on; ${letters}` : `${key}: ${letters}`;
}

function Shown({ event, error }: { event: ParkedEvent; error: string | null }) {
  const facts: [string, string | null][] = [
    ["Event", event.id],
    ["Type", event.type],
    ["Attempts", count(event.attempt)],
    ["Subject", event.subject],
    ["Source", event.source],
    ["Time", moment(event.time)],
  ];
  return (
    <>
      <dl class="facts">
        {facts.filter(([, value]) => value).map(([name, value]) => (
          <div key={name}><dt>{name}</dt><dd>{value}</dd></div>
        ))}
      </dl>
      {error !== null && <p class="why">{error}</p>}
      <h3>Payload<span class="note">{bytes(event.data.length)}</span></h3>
      <pre tabIndex={0} aria-label="payload">{event.data}</pre>
    </>
  );
}

interface Deciding { line: KeyLine; decide: (line: KeyLine, event: ParkedEvent, decision: Decision) => Promise<void> }

function Decisions({ line, decide }: Deciding) {
  const { event, handler, waiting = 0 } = line;
  if (!event) return null;
  const behind = waiting > 0 ? `, and the ${several(waiting, "event")} behind it ${waiting === 1 ? "goes" : "go"} on` : "";
  return (
    <>
      <p class="faint outcome">
        Resume attempts this event again. Skip makes it a dead letter{behind}.
        {waiting > 0 && ` Drop makes it and the ${several(waiting, "event")} behind it dead letters.`} Later events of the key are handled.
      </p>
      <span class="acts">
        <Act tone="main" label={`resume ${event.id} with ${handler}`} run={() => decide(line, event, "resume")}>Resume</Act>
        <Act label={`skip ${event.id} with ${handler}`} run={() => decide(line, event, "skip")}>Skip</Act>
        <Act tone="destroys" label={`drop ${several(waiting + 1, "event")} with ${handler}`} run={() => decide(line, event, "drop")}>Drop {several(waiting + 1, "event")}</Act>
      </span>
    </>
  );
}
