// Small parts that all views are made of.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { inWords } from "./api";
import { store } from "./store";

/** Renders again when the store has something new. */
export function useStore(): typeof store {
  const [, render] = useState(0);
  useEffect(() => store.watch(() => render((times) => times + 1)), []);
  return store;
}

export type Tone = "well" | "care" | "bad" | "idle";

/** A state in a word. The shape says it as well as the colour does. */
export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <Mark tone={tone} />
      {children}
    </span>
  );
}

const MARKS: Record<Tone, string> = {
  well: "M3 8.5l3 3 7-7",
  care: "M8 3v6M8 12v.5",
  bad: "M4 4l8 8M12 4l-8 8",
  idle: "M4 8h8",
};

export function Mark({ tone }: { tone: Tone }) {
  return (
    <svg class={`mark ${tone}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={MARKS[tone]} />
    </svg>
  );
}

/** How full something is. */
export function Bar({ value, of, label, tone }: { value: number; of: number; label: string; tone?: Tone }) {
  const share = of > 0 ? Math.min(value / of, 1) : 0;
  return (
    <span class={`bar ${tone ?? ""}`} role="img" aria-label={label} title={label}>
      <span class="fill" style={{ width: `${(share * 100).toFixed(1)}%` }} />
    </span>
  );
}

export function Section(props: { id: string; title: string; note?: ComponentChildren; side?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section id={props.id} class="card" aria-labelledby={`${props.id}-title`} tabIndex={-1}>
      <header>
        <h2 id={`${props.id}-title`}>{props.title}</h2>
        {props.note !== undefined && <span class="note">{props.note}</span>}
        {props.side !== undefined && <span class="side">{props.side}</span>}
      </header>
      {props.children}
    </section>
  );
}

/** Nothing is here, and what would be. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** A button that does something at greenroom, and cannot be pressed twice meanwhile. */
export function Act(props: {
  children: ComponentChildren;
  label?: string;
  run: () => Promise<void>;
  tone?: "main" | "destroys";
  disabled?: boolean;
  /** It changes nothing: those who may only read may do it. */
  reads?: boolean;
}) {
  const [busy, setBusy] = useState(false);
  const here = useRef(true);
  useEffect(() => () => void (here.current = false), []);
  const may = props.reads === true || store.hello?.may_change !== false;
  const act = () => {
    if (busy) return;
    setBusy(true);
    props
      .run()
      .catch((error: unknown) => toast("bad", inWords(error)))
      .finally(() => here.current && setBusy(false));
  };
  return (
    <button
      type="button"
      class={`act ${props.tone ?? ""}`}
      // While it is busy it stays enabled, or it would lose the focus.
      disabled={!may || props.disabled === true || store.link.is === "gone"}
      aria-disabled={busy}
      title={may ? undefined : "this token may only read"}
      aria-label={props.label}
      aria-busy={busy}
      onClick={act}
    >
      {props.children}
    </button>
  );
}

interface Toast { id: number; tone: Tone; text: string }
let toasts: Toast[] = [];
let nextToast = 0;

/** Says for a while what came of something. */
export function toast(tone: Tone, text: string): void {
  const id = nextToast++;
  toasts = [...toasts, { id, tone, text }].slice(-4);
  store.tell();
  setTimeout(() => dismiss(id), tone === "bad" ? 12_000 : 6_000);
}

function dismiss(id: number): void {
  toasts = toasts.filter((one) => one.id !== id);
  store.tell();
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map((one) => (
        <div key={one.id} class={`toast ${one.tone}`}>
          <Mark tone={one.tone} />
          <span>{one.text}</span>
          <button type="button" class="plain" aria-label="dismiss" onClick={() => dismiss(one.id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}

/** A dialog over the page. Escape closes it, and what had the focus gets it back. */
export function Dialog(props: { title: string; close: () => void; wide?: boolean; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  // An effect would give the focus back later, and take it from what has got it since.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const own = dialog.current;
    if (own && !own.open) own.showModal();
    return () => {
      own?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={props.wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault();
        props.close();
      }}
      onClick={(event) => event.target === dialog.current && props.close()}
    >
      <div class="inside">
        <header>
          <h2 id="dialog-title">{props.title}</h2>
          <button type="button" class="plain close" aria-label="close" onClick={props.close}>
            ×
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

export interface Question {
  title: string;
  text: ComponentChildren;
  yes: string;
  run: () => Promise<void>;
}

let question: Question | null = null;

/** Asks before something that cannot be taken back. */
export function confirm(asked: Question): void {
  question = asked;
  store.tell();
}

export function Confirm() {
  if (!question) return null;
  const { title, text, yes, run } = question;
  const close = () => {
    question = null;
    store.tell();
  };
  return (
    <Dialog title={title} close={close}>
      <div class="text">{text}</div>
      <footer>
        <button type="button" class="act" onClick={close} autofocus>
          Cancel
        </button>
        <Act
          tone="destroys"
          run={async () => {
            await run();
            close();
          }}
        >
          {yes}
        </Act>
      </footer>
    </Dialog>
  );
}

/** Names of options and parts, which stand between backticks, as code. */
export function Named({ text }: { text: string }) {
  return <>{text.split("`").map((part, place) => (place % 2 === 0 ? part : <code key={place}>{part}</code>))}</>;
}
