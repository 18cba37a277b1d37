//! Dead letters in SQLite: kept until they are replayed, dropped or too old, and found again by
//! reason, handler, key, age and error (D06, C04).
//!
//! ```text
//! engine ──▶ store ──▶ one writer thread ──▶ a transaction for all that wait ──▶ confirmed
//!              ▲              │  ▲
//!  take, end ──┘              │  └── mark, edit, drop: an operator
//!                             └── older or more than may be kept: removed, counted, logged
//!
//! list, show, export ──▶ a connection that reads, in this process or another
//! ```
//!
//! A letter of any size is cut into pieces of 192 KiB, which are written and read one at a time. If
//! the disk is full, a reserve of 8 MiB is released, and letters continue to be stored while an
//! operator makes room. Once that is used up as well, letters wait in memory, their events stay
//! unsettled, and the writer tries again. A second reserve is never used for letters: with it the
//! store can be opened, and letters can be dropped. A write or a sync that fails for another reason
//! is final for the store.

mod care;
mod change;
mod error;
mod error_group;
mod filter;
mod jobs;
mod json_walk;
mod mask;
mod options;
mod reader;
mod reserve;
mod row;
mod schema;
mod state;
mod store;
mod summary;
mod writer;

#[cfg(test)]
mod tests;

pub use self::{
    care::{Checked, backup, check, compact, give_reserve_back, is_letter_store},
    change::{Dropped, Edit, Marked},
    error::LetterError,
    error_group::error_group,
    filter::{Filter, Order},
    jobs::{Job, JobChange},
    json_walk::{JsonStep, pretty_json, walk_json},
    mask::{Mask, NoMask},
    options::LetterStoreOptions,
    reader::{LetterContent, Letters, WriteError},
    state::State,
    store::LetterStore,
    summary::{By, Group, RejectedBy, Summary, Totals},
};
