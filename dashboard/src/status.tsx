// The first thing that is seen: is all well, what is not and since when, and the few
// figures of the whole run.

import { count, rate, several, time, timeOfDay } from "./format";
import { RANGES } from "./history";
import { chains, tone as toneOf, TONES } from "./problems";
import { store, waiting, type Link } from "./store";
import { Mark, Named } from "./ui";
import type { Finding, Sample } from "./types";
import { Chart } from "./chart";

export function Status({ sample }: { sample: Sample }) {
  const found = chains(sample.health);
  const tone = toneOf(sample.health);
  const lasted = found.reduce<number | null>((most, { cause }) => (cause.lasted_ms === null ? most : Math.max(most ?? 0, cause.lasted_ms)), null);
  const since = tone === "well" ? null : lasted !== null ? sample.at_ms - lasted : store.unwellSince;
  return (
    <div id="status" class={`status ${tone}`}>
      <div class="headline">
        <Mark tone={tone} />
        {/* The verdict alone: durations would be read aloud each second. */}
        <div role="status"><h1><Named text={sample.health.headline} /></h1></div>
        {since !== null && <span class="since">since {timeOfDay(since)}</span>}
      </div>
      {found.length > 0 && (
        <ul class="problems">
          {found.slice(0, 6).map(({ cause, effects }) => (
            <li key={cause.what}>
              <Problem finding={cause} />
              {effects.length > 0 && (
                <ul class="effects" aria-label="what follows from it">
                  {effects.map((effect) => <li key={effect.what}><Problem finding={effect} /></li>)}
                </ul>
              )}
            </li>
          ))}
          {found.length > 6 && <li class="more">and {found.length - 6} more</li>}
        </ul>
      )}
    </div>
  );
}

function Problem({ finding }: { finding: Finding }) {
  const { severity, what, figures, lasted_ms } = finding;
  return (
    <span class="problem">
      <Mark tone={TONES[severity]} />
      <a href={`#${finding.about}`}><Named text={`${what}: ${figures}`} /></a>
      {lasted_ms !== null && <span class="lasted">{time(lasted_ms)}</span>}
    </span>
  );
}

export function Figures({ sample }: { sample: Sample }) {
  const { all } = store;
  const { run } = sample;
  const handled = sample.pools.reduce((sum, pool) => sum + pool.in_hand, 0);
  const workers = sample.pools.reduce((sum, pool) => sum + pool.live, 0);
  const oldest = sample.pools.reduce<number | null>((most, { oldest_ms }) => (oldest_ms === null ? most : Math.max(most ?? 0, oldest_ms)), null);
  return (
    <dl class="figures">
      <Figure name="Finished" value={rate(all.settledRate)} unit="/s" note={`${rate(all.takenRate)}/s taken`} />
      <Figure name="Waiting" value={count(waiting(sample))} note={oldest === null ? "nothing waits" : `oldest ${time(oldest)}`} />
      <Figure name="Being handled" value={count(handled)} note={`of ${several(workers, "worker")}`} />
      <Figure name="Parked keys" value={count(run.parked_keys)} note={`${several(run.parked_events, "event")} behind them`} tone={run.parked_keys > 0 ? "care" : ""} />
      <Figure name="Dead letters" value={count(run.dead_lettered)} note={`${rate(all.lettersRate * 60)} a minute`} tone={all.lettersRate > 0 ? "care" : ""} />
      <Figure name={run.read === null ? "Finished in all" : "Read"} value={run.read === null ? count(run.settled) : `${(run.read * 100).toFixed(0)} %`} note={`up for ${time(sample.up_ms)}`} />
    </dl>
  );
}

function Figure(props: { name: string; value: string; unit?: string; note: string; tone?: string }) {
  return (
    <div class={`figure ${props.tone ?? ""}`}>
      <dt>{props.name}</dt>
      <dd>
        <span class="value">{props.value}</span>
        {props.unit && <span class="unit">{props.unit}</span>}
      </dd>
      <dd class="sub">{props.note}</dd>
    </div>
  );
}

export function Overview({ sample }: { sample: Sample }) {
  const series = store.series(null);
  return (
    <div class="overview card">
      <div class="ranges" role="group" aria-label="charts of the last">
        {RANGES.map((seconds) => (
          <button key={seconds} type="button" class="plain" aria-pressed={store.range === seconds} onClick={() => store.setRange(seconds)}>
            {time(seconds * 1_000)}
          </button>
        ))}
      </div>
      <Chart
        title="Events a second"
        series={series}
        rows={[0, 1]}
        figures={[
          { name: "finished", colour: "data", fill: true },
          { name: "taken", colour: "data-2" },
        ]}
        show={rate}
        now={`${rate(store.all.settledRate)} finished, ${rate(store.all.takenRate)} taken`}
      />
      <Chart
        title="Events under way"
        series={series}
        rows={[2, 3]}
        figures={[
          { name: "waiting", colour: "data", fill: true },
          { name: "being handled", colour: "data-2" },
        ]}
        show={count}
        now={`${count(waiting(sample))} waiting`}
      />
    </div>
  );
}

/** No figures come: since when, why, and that the page goes on by itself. */
export function Gone({ link }: { link: Link }) {
  if (link.is !== "gone") return null;
  const { refused, since, why } = link;
  return (
    <div class="gone">
      <Mark tone="bad" />
      <div>
        <span role="alert"><strong>{refused ? `greenroom gives this page no figures: ${why}` : `greenroom has not answered since ${timeOfDay(since)}`}</strong></span>
        <span>
          {" "}
          ({time(Date.now() - since)}{!refused && `; ${why}`}). {store.sample && "What is shown is from then. "}The page tries again by itself.
        </span>
      </div>
    </div>
  );
}
