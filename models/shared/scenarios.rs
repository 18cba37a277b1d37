//! What is tried. Each public function of these modules is one scenario, tried by a test of the same name.

#[path = "scenarios/backlogs.rs"]
pub mod backlogs;
#[path = "scenarios/ends.rs"]
pub mod ends;
#[path = "scenarios/handoff.rs"]
pub mod handoff;
#[path = "scenarios/keys.rs"]
pub mod keys;
#[path = "scenarios/kills.rs"]
pub mod kills;
#[path = "scenarios/mailboxes.rs"]
pub mod mailboxes;
#[path = "scenarios/parked.rs"]
pub mod parked;
#[path = "scenarios/permits.rs"]
pub mod permits;
#[path = "scenarios/player.rs"]
mod player;
#[path = "scenarios/runs.rs"]
pub mod runs;
#[path = "scenarios/shards.rs"]
pub mod shards;
#[path = "scenarios/shares.rs"]
pub mod shares;
#[path = "scenarios/wakes.rs"]
pub mod wakes;
#[path = "scenarios/withdrawals.rs"]
pub mod withdrawals;
