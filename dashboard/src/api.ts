// Asks the listener that this page came from. The token, where one is demanded, is
// kept for this tab alone.

import type { Hello, Sample } from "./types";

const TOKEN = "greenroom-token";

export function token(): string | null {
  return sessionStorage.getItem(TOKEN);
}

export function setToken(value: string | null): void {
  if (value) sessionStorage.setItem(TOKEN, value);
  else sessionStorage.removeItem(TOKEN);
}

/** What greenroom says why it does not do something. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly what: string,
    readonly next: string,
    readonly details: unknown,
  ) {
    super(what);
  }
}

function headers(): HeadersInit {
  const shown = token();
  return shown ? { authorization: `Bearer ${shown}` } : {};
}

async function refused(answer: Response): Promise<Refused> {
  const body = (await answer.json().catch(() => null)) as
    | { error?: { what?: string; next?: string; details?: unknown } }
    | null;
  const error = body?.error;
  return new Refused(answer.status, error?.what ?? `status ${answer.status}`, error?.next ?? "", error?.details);
}

async function ask<T>(method: string, path: string): Promise<T> {
  const signal = AbortSignal.timeout(60_000);
  const answer = await fetch(path, { method, headers: headers(), cache: "no-store", signal });
  if (!answer.ok) throw await refused(answer);
  return (await answer.json()) as T;
}

export const get = <T,>(path: string): Promise<T> => ask<T>("GET", path);
export const post = <T,>(path: string): Promise<T> => ask<T>("POST", path);

/** What a refusal for now tells, such as how many keys it is about. Other errors are thrown. */
export function conflict<T>(error: unknown): T {
  if (error instanceof Refused && error.status === 409 && error.details) return error.details as T;
  throw error;
}

/** Saves an answer as a file. A link could not show the token. */
export async function save(path: string, name: string): Promise<void> {
  const answer = await fetch(path, { headers: headers(), cache: "no-store" });
  if (!answer.ok) throw await refused(answer);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = name;
  link.click();
  // The browser takes it up a moment later.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** An error in words. */
export function inWords(error: unknown): string {
  if (error instanceof Refused) return error.next ? `${error.what}: ${error.next}` : error.what;
  return "greenroom does not answer";
}

export interface Heard {
  hello(hello: Hello): void;
  sample(sample: Sample): void;
}

/** Longer than the time between two samples ever is while greenroom is well. */
const SILENCE = 15_000;

/** Hands on the live stream, until it ends, is silent for too long, or `stop` says so. */
export async function listen(heard: Heard, stop: AbortSignal): Promise<void> {
  const own = new AbortController();
  const end = () => own.abort();
  stop.addEventListener("abort", end);
  let silence = setTimeout(end, SILENCE);
  try {
    const answer = await fetch("/api/live", { headers: headers(), cache: "no-store", signal: own.signal });
    if (!answer.ok || !answer.body) throw await refused(answer);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(end, SILENCE);
      rest += value;
      const parts = rest.split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) hand(part, heard);
    }
  } finally {
    clearTimeout(silence);
    stop.removeEventListener("abort", end);
    own.abort();
  }
}

function hand(part: string, heard: Heard): void {
  let kind = "sample";
  let data = "";
  for (const line of part.split("\n")) {
    if (line.startsWith("event: ")) kind = line.slice(7);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (data === "") return;
  if (kind === "hello") heard.hello(JSON.parse(data) as Hello);
  else heard.sample(JSON.parse(data) as Sample);
}
