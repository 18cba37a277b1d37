// Numbers and times as they are shown. Each kind keeps its width while it changes: figures
// of one width, few digits.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 0, 12, 4,321, 98,765, 1.23 M, 4.56 G. */
export function count(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toFixed(2)} G`;
  if (size >= 1e6) return `${(value / 1e6).toFixed(2)} M`;
  return whole.format(value);
}

/** 0, 0.4, 12, 4,321. */
export function rate(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  if (value > 0 && value < 9.95) return value < 0.05 ? "<0.1" : value.toFixed(1);
  return count(value);
}

/** 0.42 ms, 12 ms, 3.4 s, 5 min, 2.5 h, 3 d. */
export function time(ms: number | null | undefined): string {
  if (ms == null || !Number.isFinite(ms)) return "–";
  if (ms < 0.01) return "0 ms";
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${ms.toFixed(0)} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 119.5) return `${seconds.toFixed(0)} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${(seconds / 3_600).toFixed(1)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** 0 B, 12 KiB, 3.4 MiB. */
export function bytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (value >= 1024 && place < units.length - 1) {
    value /= 1024;
    place += 1;
  }
  return `${place > 0 && value < 9.95 ? value.toFixed(1) : value.toFixed(0)} ${units[place]}`;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** 17:04:09, as the clock of this machine shows it. */
export function timeOfDay(ms: number): string {
  return clock.format(ms);
}

/** The time zone of all times on the page: that of this browser. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

// Sweden writes the year first, and nothing between the date and the time.
const calendar = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });

/** `2026-01-31T12:00:00.123Z` as `2026-01-31 13:00:00` of this time zone. */
export function moment(written: string | null | undefined): string | null {
  const ms = Date.parse(written ?? "");
  return Number.isNaN(ms) ? null : calendar.format(ms);
}

/** `1 key`, `3 keys`. */
export function several(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** `retries_exhausted` as `retries exhausted`. */
export function words(name: string | null | undefined): string {
  return (name ?? "").replaceAll("_", " ");
}
