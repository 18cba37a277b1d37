// What becomes of dead letters: handled again, or dropped for good.

import { conflict, post } from "./api";
import { count, several } from "./format";
import { confirm, toast } from "./ui";

export async function replay(query: URLSearchParams): Promise<void> {
  const marked = await post<{ letters: number; without_event: number; marked_before: number }>(`/api/dead-letters/replay?${query}`);
  const left = marked.without_event > 0 ? `; ${count(marked.without_event)} have no event` : "";
  toast(marked.letters > 0 ? "well" : "care", `${several(marked.letters, "letter")} ${marked.letters === 1 ? "is" : "are"} handled again${left}`);
}

/** Asks how many it would be, asks whether that is meant, and drops no more than these. */
export async function drop(query: URLSearchParams, what: string, changed: () => Promise<void>): Promise<void> {
  const path = `/api/dead-letters/drop?${query}`;
  const none = { letters: 0, newest: 0 };
  const totals = await post(path).then(() => none, conflict<typeof none>);
  if (totals.letters === 0) {
    toast("care", "no such letter is left");
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
