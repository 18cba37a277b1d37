// What the admin listener answers, as far as the page shows it. Times are in milliseconds.

export interface Spread { p50: number; p90: number; p99: number; max: number }

export interface Pool {
  name: string;
  state: "running" | "full" | "paused" | "without workers";
  settings: { workers: number; queue: number; engine: string; on_final_failure: string };
  rate_per_s: number | null;
  workers: number;
  live: number;
  busy: number;
  idle: number;
  capacity: number;
  queued: number;
  oldest_ms: number | null;
  in_hand: number;
  retrying_or_parked: number;
  parked: number;
  accepted: number;
  handled: number;
  failed_attempts: number;
  further_attempts: number;
  dead_lettered: number;
  restarts: number;
  full_episodes: number;
  limit: number | null;
  keys: { running: number; retrying: number; parked: number; ready: number; waiting_events: number } | null;
  queueing_ms: Spread;
  handling_ms: Spread;
  /** Of the time since the last sample. */
  recent: { queueing_ms: Spread; handling_ms: Spread; measured: number };
  /** Its events have shares. */
  has_shares: boolean;
  /** How long each worker has handled its event; -1 idle, -2 starting, -3 disabled, null none. */
  slots?: (number | null)[];
}

export interface Partition {
  partition: number;
  state: "paused" | "running";
  in_flight_bytes: number;
  in_flight: number;
  held_back: number;
  last_settled_ms: number | null;
  next: number | null;
  oldest_open: number | null;
  lag: number | null;
}

/** How an input stands with what it reads from. */
export type Connection = "connecting" | "joining" | "assigned" | "waiting" | "refused" | "lost";

/** Events of a share, and the pool beside which they wait. */
export interface HeldByShare { pool: string; share: string | null; events: number }

export interface Input {
  name: string;
  source: string;
  /** That of its connection, where nothing can come of it. */
  state: "paused" | "running" | Connection;
  /** Events taken so far. */
  taken: number;
  connection: Connection;
  connection_detail: string | null;
  connection_since_ms: number | null;
  in_flight_bytes: number;
  in_flight: number;
  held_back: number;
  run_ahead: number;
  /** Because of which it stands still. */
  held_by_share: HeldByShare | null;
  parked: number;
  refuses_parked: boolean;
  last_settled_ms: number | null;
  answers: Record<string, number> | null;
  partitions: Partition[];
}

export interface Trouble { lasted_ms: number; last_error: string }

export interface Handler {
  name: string;
  kind: string | null;
  pool: string;
  on: string[];
  order_by: string | null;
  attempts: number;
  state: "paused" | "up" | "refused" | "outage" | "broken";
  outage: Trouble | null;
  /** Attempts so far, by how they ended. */
  handled: number;
  failed: number;
  /** Of the attempts of the last second or so. */
  recent: { p50_ms: number | null; p99_ms: number | null; attempts: number };
}

export interface Output {
  name: string;
  kind: string | null;
  target: string;
  on: string[];
  state: "failed" | "up" | "paused" | "failing";
  trouble: Trouble | null;
  failure: string | null;
  events: number;
  rejected: number;
  /** Workers that wait until it takes something. */
  waiting: { pool: string; workers: number }[];
  /** A reload removed it, and it has not stored all that it accepted. */
  removed: boolean;
}

export interface ParkedKey {
  key: string;
  handler: string;
  pool: string;
  input: string;
  since_ms: number;
  reason: string;
  last_error: string | null;
  /** The same for keys that are parked for the same. */
  group: string;
  /** Events behind the one that failed. */
  waiting: number;
  event: { id: string; type: string; attempt: number } | null;
}

export interface HotKey { key: string; handler: string; pool: string; events: number; at_most_too_many: number }

export interface PoolEvent { number: number; at_ms: number; pool: string; kind: string; text: string; times: number }

export interface Run {
  phase: "run" | "drain" | "stop";
  taken: number;
  settled: number;
  dead_lettered: number;
  dead_letters_open: number;
  dead_letters_lost: number;
  queued: number;
  parked_keys: number;
  parked_events: number;
  standstill: string | null;
  in_flight_bytes: number;
  read: number | null;
  inputs: Input[];
}

/** What is worth changing. */
export interface Finding {
  severity: "critical" | "warning" | "hint";
  /** A path of the configuration; or `keys`, `dead_letters`, `run`. */
  about: string;
  what: string;
  figures: string;
  why: string;
  change: string;
  /** Lines of the configuration. */
  lines: string | null;
  /** A request to the listener: `POST /api/pools/erp/resume`. */
  ask: string | null;
  /** What the terminal is told to do the same: `greenroom pool resume erp`. */
  command: string | null;
  /** For how long it has been so. */
  lasted_ms: number | null;
  /** What it follows from: `about` of another finding, which comes before it. */
  follows: string | null;
}

/** The one verdict: its colour, its words, and what it is for. */
export interface Health { health: "green" | "yellow" | "red"; headline: string; findings: Finding[] }

export interface Sample {
  at_ms: number;
  up_ms: number;
  health: Health;
  run: Run;
  pools: Pool[];
  handlers: Handler[];
  outputs: Output[];
  parked: ParkedKey[];
  hottest: HotKey[];
  has_letter_store: boolean;
  events: PoolEvent[];
}

/** What was, as the daemon has kept it: a row for each figure; null where nothing was measured. */
export interface Past {
  times_ms: number[];
  all: Record<string, (number | null)[]>;
  pools: Record<string, Record<string, (number | null)[]>>;
  marks: Mark[];
}

/** Something to know on a chart. */
export interface Mark { at_ms: number; kind: "action" | "restart" | "trouble" | "over"; text: string }

export interface Hello { role: string; may_change: boolean; version: string; instance: string }

export interface Worker {
  slot: number;
  name: string;
  status: string;
  busy_ms: number | null;
  attempt: number | null;
  key: string | null;
  handler: string | null;
  input: string | null;
  handled: number;
  failed_attempts: number;
  restarts: number;
}

/** A share of a pool; `null` is that of all events without one. */
export interface Share {
  share: string | null;
  limits: { weight: number; in_hand: number | null; rate_per_s: number | null };
  waiting: number;
  in_hand: number;
  time_ms: number;
  state: "ready" | "idle" | "full" | "rate" | "held" | "probing" | "paused" | "gone" | "unknown";
  next_ms: number | null;
}

/** `lines` of the configuration keep what was set by hand. */
export interface SharePage { shares: Share[]; count: number; lines: string | null }

/** An event that parks its key: what is decided about. */
export interface ParkedEvent {
  id: string;
  type: string;
  subject: string | null;
  source: string;
  time: string | null;
  attempt: number;
  /** The payload as text, masked and cut. */
  data: string;
}

export interface KeyLine {
  handler: string;
  pool: string;
  input: string;
  text: string;
  state?: string;
  waiting?: number;
  last_error?: string | null;
  event?: ParkedEvent | null;
}

export interface Letter {
  number: number;
  bytes?: number;
  id?: string | null;
  type?: string | null;
  subject?: string | null;
  key?: string | null;
  share?: string | null;
  reason?: string;
  error?: string;
  attempts?: number;
  first_at?: string;
  last_at?: string;
  pool?: string | null;
  handler?: string | null;
  input?: string | null;
  /** Of a store. */
  state?: "stored" | "marked" | "in_replay";
  replays?: number;
}

/** What was read of a file of letters, where the search has ended before all of it was. */
interface Searched { searched_bytes?: number | null }

export interface LetterPage extends Searched { letters: Letter[]; next: string | null; totals?: { letters: number } }

/** Letters with something in common; `name` is that, none where they were for no handler. */
export interface LetterGroup { name: string | null; letters: number; first: string; last: string; reason: string; handler: string | null; error: string }

export interface LetterGroups extends Searched { groups: LetterGroup[] }

/** A replay that was asked for. */
export interface Replay {
  id: number;
  created_at: string;
  /** Which letters, in words. */
  wanted: string;
  state: "running" | "stopped" | "done";
  letters: number;
  waiting: number;
  in_replay: number;
  failed: number;
  refused: number;
}
