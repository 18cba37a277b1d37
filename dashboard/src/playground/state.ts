// What the playground says, and what it is told.

import { get, post } from "../api";

export interface Setting { name: SettingName; value: number; start: number; least: number; most: number; step: number }
export type SettingName = "workers" | "skew" | "slow_percent" | "slow_ms" | "failure_percent" | "flood" | "shares";

export interface Worker {
  slot: number;
  key: string | null;
  slow: boolean;
  retries: boolean;
  ms: number | null;
  /** Events in the worker's own mailbox. */
  behind: number;
}

export interface Side {
  name: "lanes" | "hashing";
  workers: Worker[];
  free: number;
  per_second: number;
  p50_ms: number | null;
  p99_ms: number | null;
  waiting: number;
  held_up: number;
  lines: { key: string; slow: boolean; events: number }[];
  handled: number;
  out_of_order: number;
  lost: number;
  failed: number;
  turned_away: number;
}

export interface State { settings: Setting[]; sides: Side[] }

export type Settings = Partial<Record<SettingName, number>>;

export const ask = () => get<State>("/api/playground");

export function change(settings: Settings): Promise<State> {
  const query = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  return post<State>(`/api/playground/settings?${query.join("&")}`);
}
