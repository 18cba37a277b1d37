// One dead letter in full. What it holds is shown as text and never as anything else.

import { useEffect, useState } from "preact/hooks";
import { get, inWords } from "./api";
import { drop, replay } from "./fate";
import { bytes, moment, words } from "./format";
import { Act, Dialog, toast } from "./ui";

/** More of a letter than this is not shown: a browser would be busy for long. */
const LONGEST = 200_000;

export function OneLetter({ number, close, changed, store: stored }: { number: number; close: () => void; changed: () => Promise<void>; store: boolean }) {
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
    ["Key", fact("key")],
    ["Share", fact("share")],
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
