// The shares of a pool: what each has of its workers, what it waits for, and what may be done.

import { useState } from "preact/hooks";
import { post } from "./api";
import { useAsked } from "./asked";
import { count, rate, several, time } from "./format";
import type { Share, SharePage } from "./types";
import { Act, Badge, Empty, toast, type Tone } from "./ui";

/** Rows of the table. */
const SHOWN = 20;

/** How old it may be, in ms: greenroom looks at each waiting event of the pool for it. */
const REFRESH = 3_000;

const ORDERS: [string, string][] = [
  ["time", "most time in hand"],
  ["waiting", "most waiting"],
  ["held", "held for longest"],
];

const STATES: Record<string, [Tone, string]> = {
  full: ["idle", "as many in hand as may be"],
  rate: ["idle", "waits for its rate"],
  held: ["care", "held"],
  probing: ["care", "one attempt probes"],
  paused: ["care", "paused"],
  gone: ["care", "its target is gone"],
};

export function Shares({ pool }: { pool: string }) {
  const [sort, sortBy] = useState("time");
  const path = `/api/pools/${encodeURIComponent(pool)}/shares`;
  const list = useAsked<SharePage>(`${path}?${new URLSearchParams({ sort, limit: String(SHOWN) })}`, REFRESH);
  const shares = list.found?.shares ?? [];
  const all = list.found?.count ?? 0;
  return (
    <div class="shares">
      <h3>
        Shares<span class="note">{several(all, "share")}{all > shares.length && `, the first ${shares.length}`}</span>
        <select aria-label={`order of the shares of ${pool}`} value={sort} onChange={(event) => sortBy(event.currentTarget.value)}>
          {ORDERS.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
        </select>
      </h3>
      {list.error !== null && <p class="error">{list.error}</p>}
      {list.found !== null && shares.length === 0 && <Empty>No event waits or is being handled, and no share has limits of its own.</Empty>}
      {shares.length > 0 && (
        <div class="scroll">
          <table aria-label={`shares of ${pool}`}>
            <thead>
              <tr>
                <th>Share</th><th class="number">In hand</th><th class="number">Waiting</th><th class="number">Time in hand</th>
                <th class="number">Weight</th><th class="number">Rate</th><th>State</th><th><span class="hidden">Change</span></th>
              </tr>
            </thead>
            <tbody>
              {shares.map((share) => <Row key={share.share ?? ""} share={share} path={path} again={list.again} />)}
            </tbody>
          </table>
        </div>
      )}
      {list.found?.lines && (
        <>
          <p class="faint">What was set by hand holds until the end of the run. These lines keep it:</p>
          <pre tabIndex={0} aria-label="the lines that keep it">{list.found.lines}</pre>
        </>
      )}
    </div>
  );
}

function Row({ share, path, again }: { share: Share; path: string; again: () => Promise<void> }) {
  const { weight, in_hand: most, rate_per_s } = share.limits;
  const [tone, state] = STATES[share.state] ?? ["idle", ""];
  return (
    <tr>
      <td class="key" title={share.share ?? undefined}>{share.share ?? <span class="faint">without a share</span>}</td>
      <td class="number">{count(share.in_hand)}{most !== null && <span class="of"> / {count(most)}</span>}</td>
      <td class="number">{count(share.waiting)}</td>
      <td class="number">{time(share.time_ms)}</td>
      <td class="number">{count(weight)}</td>
      <td class="number">{rate_per_s === null ? "–" : `${rate(rate_per_s)}/s`}</td>
      <td>
        {state !== "" && <Badge tone={tone}>{state}</Badge>}
        {share.next_ms !== null && share.state === "held" && <span class="faint"> {time(share.next_ms)}</span>}
      </td>
      <td>{share.share !== null && <Orders share={share} path={`${path}/${encodeURIComponent(share.share)}`} again={again} />}</td>
    </tr>
  );
}

function Orders({ share, path, again }: { share: Share; path: string; again: () => Promise<void> }) {
  const name = share.share ?? "";
  const waits = ["paused", "gone", "held", "probing"].includes(share.state);
  return (
    <span class="acts">
      <Act
        label={`${waits ? "resume" : "pause"} the share ${name}`}
        run={async () => {
          await post(`${path}/${waits ? "resume" : "pause"}`);
          toast("well", waits ? `${name} goes on` : `${name} is paused: nothing more of it is attempted`);
          await again();
        }}
      >
        {waits ? "Resume" : "Pause"}
      </Act>
    </span>
  );
}
