// The sliders, and a few positions of them that are worth a look.

import { count, time } from "../format";
import type { Setting, SettingName, Settings } from "./state";

const TEXTS: Record<SettingName, { label: string; about: string; show: (value: number) => string }> = {
  workers: { label: "Workers", about: "of each pool", show: count },
  skew: { label: "Skew of the keys", about: "0: all alike; 1: the n-th key has 1/n", show: (value) => value.toFixed(1) },
  slow_percent: { label: "Events of the slow key", about: "order-0042, of all events", show: (value) => `${value.toFixed(1)}%` },
  slow_ms: { label: "How slow", about: "other events take 8 ms", show: time },
  failure_percent: { label: "Failures", about: "of all attempts; each is tried again", show: (value) => `${value.toFixed(1)}%` },
  flood: { label: "A flooding tenant", about: "sends so many events more", show: (value) => `${count(value)}/s` },
  shares: { label: "Shares", about: "lanes divide their workers among tenants", show: (value) => (value > 0 ? "on" : "off") },
};

const SCENES: { name: string; settings: Settings }[] = [
  { name: "One slow key", settings: {} },
  { name: "No trouble", settings: { slow_percent: 0 } },
  { name: "Many failures", settings: { slow_percent: 0, failure_percent: 10 } },
  { name: "A flood, with shares", settings: { slow_percent: 0, flood: 1_500 } },
  { name: "A flood, without", settings: { slow_percent: 0, flood: 1_500, shares: 0 } },
];

interface Props { settings: Setting[]; change: (settings: Settings) => void }

export function SettingsCard({ settings, change }: Props) {
  const start = Object.fromEntries(settings.map(({ name, start }) => [name, start])) as Settings;
  const scenes = SCENES.map(({ name, settings }) => ({ name, settings: { ...start, ...settings } }));
  const isNow = (scene: Settings) => settings.every(({ name, value }) => scene[name] === value);
  return (
    <section class="card settings" aria-labelledby="settings">
      <h2 id="settings" class="hidden">Settings</h2>
      <div class="scenes" role="group" aria-label="positions worth a look">
        {scenes.map(({ name, settings }) => (
          <button key={name} type="button" class={isNow(settings) ? "act main" : "act"} aria-pressed={isNow(settings)} onClick={() => change(settings)}>{name}</button>
        ))}
      </div>
      <div class="sliders">
        {settings.map((setting) => <Slider key={setting.name} setting={setting} change={change} />)}
      </div>
    </section>
  );
}

function Slider({ setting, change }: { setting: Setting; change: Props["change"] }) {
  const { name, value, least, most, step } = setting;
  const { label, about, show } = TEXTS[name];
  const set = (value: number) => change({ [name]: value });
  const id = `set-${name}`;
  return (
    <div class="setting">
      <label for={id}>{label}</label>
      <output for={id}>{show(value)}</output>
      {name === "shares" ? (
        <input id={id} type="checkbox" role="switch" checked={value > 0} aria-describedby={`${id}-about`} onChange={(event) => set(event.currentTarget.checked ? 1 : 0)} />
      ) : (
        <input id={id} type="range" min={least} max={most} step={step} value={value} aria-valuetext={show(value)} aria-describedby={`${id}-about`} onInput={(event) => set(event.currentTarget.valueAsNumber)} />
      )}
      <span id={`${id}-about`} class="note">{about}</span>
    </div>
  );
}
