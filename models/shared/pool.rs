//! A pool: the product's files, and those that are played.

#[path = "core.rs"]
pub(crate) mod core;
#[path = "failed.rs"]
pub(crate) mod failed;
#[path = "frame.rs"]
pub(crate) mod frame;
#[path = "../../crates/greenroom/src/pool/left_over.rs"]
pub(crate) mod left_over;
#[path = "../../crates/greenroom/src/pool/lifecycle.rs"]
pub(crate) mod lifecycle;
#[path = "../../crates/greenroom/src/pool/outgoing.rs"]
pub(crate) mod outgoing;
#[path = "../../crates/greenroom/src/pool/pool_payload.rs"]
pub(crate) mod pool_payload;

#[path = "handoff.rs"]
pub(crate) mod handoff;
#[path = "membership.rs"]
pub(crate) mod membership;
#[path = "stats.rs"]
pub(crate) mod stats;
#[path = "worker.rs"]
pub(crate) mod worker;

pub(crate) mod builder {
    pub(crate) mod settings {
        pub(crate) use crate::pool::core::Settings;
    }
}

pub(crate) mod admin {
    pub(crate) mod error {
        /// Why a pool was not changed.
        #[derive(Debug)]
        pub(crate) enum AdminError {
            NotRunning,
        }
    }
}
