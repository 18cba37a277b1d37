// Replays of dead letters: how far each has come, and what it may be told.

import { post } from "./api";
import { useAsked } from "./asked";
import { count, moment, several } from "./format";
import type { Replay } from "./types";
import { Act, Badge, Bar, type Tone } from "./ui";

const TONES: Record<Replay["state"], Tone> = { running: "well", stopped: "care", done: "idle" };

/** How old what is shown may be, in ms. */
const REFRESH = 5_000;

/** One that is done is shown for so long after it was asked for, in ms. */
const REMEMBERED = 600_000;

export function Replays({ changed }: { changed: () => Promise<void> }) {
  const { found, again } = useAsked<{ replays: Replay[] }>("/api/dead-letters/replays", REFRESH);
  const all = found?.replays.filter(({ state, created_at }) => state !== "done" || Date.now() - Date.parse(created_at) < REMEMBERED) ?? [];
  if (all.length === 0) return null;
  const tell = (replay: Replay, order: "stop" | "resume" | "cancel") => async () => {
    await post(`/api/dead-letters/replays/${replay.id}/${order}`);
    await again();
    await changed();
  };
  return (
    <>
      <h3>Replays</h3>
      <ul class="list replays">
        {all.map((replay) => {
          const { id, state, letters, failed, refused } = replay;
          const done = letters - replay.waiting - replay.in_replay;
          const note = [failed > 0 && `${count(failed)} failed again`, refused > 0 && `${count(refused)} refused`].filter(Boolean);
          return (
            <li key={id}>
              <div class="what">
                <span>Replay {id} <Badge tone={TONES[state]}>{state}</Badge></span>
                <span class="faint">{[replay.wanted, `asked for at ${moment(replay.created_at) ?? "–"}`, ...note].join(" · ")}</span>
              </div>
              <span class="gauge">
                <Bar value={done} of={letters} label={`${count(done)} of ${several(letters, "letter")} handled again`} />
                <span class="amount">{count(done)}<span class="of"> / {count(letters)}</span></span>
              </span>
              {state !== "done" && (
                <span class="acts">
                  {state === "running" && <Act label={`stop replay ${id}`} run={tell(replay, "stop")}>Stop</Act>}
                  {state === "stopped" && <Act label={`resume replay ${id}`} run={tell(replay, "resume")}>Resume</Act>}
                  <Act label={`cancel replay ${id}`} run={tell(replay, "cancel")}>Cancel</Act>
                </span>
              )}
            </li>
          );
        })}
      </ul>
    </>
  );
}
