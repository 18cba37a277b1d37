// Something that a view asks greenroom for, again and again while it is shown.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, inWords } from "./api";
import { store } from "./store";

export interface Asked<T> {
  /** The last answer; of another path while the new one is on its way. */
  found: T | null;
  error: string | null;
  again: () => Promise<void>;
}

/** A change of `mark` makes an answer that is older than this stale, in ms. */
const MARKED = 5_000;

/** What `path` answers, no older than `oldest` ms. Nothing is asked where it is null. */
export function useAsked<T>(path: string | null, oldest: number, mark = 0): Asked<T> {
  const [found, setFound] = useState<T | null>(null);
  const [error, setError] = useState<string | null>(null);
  const last = useRef({ path: "", mark, at: 0 });
  const ask = async (own: string): Promise<void> => {
    last.current = { path: own, mark, at: Date.now() };
    try {
      const found = await get<T>(own);
      if (last.current.path !== own) return;
      setFound(found);
      setError(null);
    } catch (why) {
      if (last.current.path === own) setError(inWords(why));
    }
  };
  // The store renders all views with each sample.
  useEffect(() => {
    const { current } = last;
    const age = Date.now() - current.at;
    const isStale = current.path !== path || age > oldest || (current.mark !== mark && age > MARKED);
    if (path !== null && isStale && store.link.is === "live") void ask(path);
  });
  const again = async () => {
    if (path === null) return;
    await ask(path);
    // What was changed is done within moments, but not at once.
    last.current = { ...last.current, at: Date.now() - oldest + 1_000 };
  };
  return { found, error, again };
}
