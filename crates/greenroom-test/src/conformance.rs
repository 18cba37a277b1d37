//! What every connector has to do, whatever it connects to (V01).
//!
//! Each connector has tests of what is special about it. What all of them promise (order per key,
//! nothing lost, few repeats, a pause that is heeded, partitions that are given up at once) would
//! otherwise be tested as often and as differently as there are connectors, and the rare cases not
//! at all. Here it is written once, and runs in the real engine.
//!
//! ```text
//! Connector ─ place ─▶ Place ─ open ─▶ its source ─▶ watched ─▶ engine ─▶ a handler that takes its
//!                        │                              │                  time, fails, gets stuck
//!                        └─ publish, revoke, restart    └──▶ ledger ◀───────────┘
//!                                                              │ every delivery, attempt,
//!                                                              ▼ settlement and commit
//!                               passed, not applicable because .., failed: what, and the seed
//! ```
//!
//! The author of a connector implements [`Connector`] and [`Place`], and writes
//!
//! ```ignore
//! greenroom_test::conformance!(orders: OrdersConnector::default());
//! ```
//!
//! which makes a test of each [`Check`]. What the connector cannot do it
//! [says](Connector::lacks), with the reason: the checks that need it are told as not applicable,
//! on standard error, past the capture of test output. A claim that its source contradicts is a
//! failure. A connector of a server says where that is [missing](Connector::missing): nothing of
//! it is run then, which is told as well.
//!
//! In every check, whatever else it looks for, the ledger has to show that no event was made up,
//! positions rise and stay with their events, a key is in one hand and its events in order, nothing
//! of a revoked assignment begins, nothing of a paused partition is given, and **no commit covers
//! an event that is not acknowledged**.
//!
//! The price: some thousand events for each connector, on virtual time where it [keeps to
//! that](Connector::clock), in real time some seconds. It is no benchmark, and does not try what
//! only a real network does: that is for the tests of the connector.

mod ability;
mod broker;
mod check;
mod checks;
mod connector;
mod items;
mod ledger;
mod letters;
mod plan;
mod recorder;
mod running;
mod scene;
mod suite;
mod verdict;
mod watched;

pub use self::{
    ability::Ability,
    broker::BrokerConnector,
    check::Check,
    connector::{Body, Clock, Connector, Item, Place, Stored},
    suite::{check, not_applicable, run},
    verdict::{Report, Row, Verdict},
};

/// Makes a test of each [`Check`], in a module of this name: `conformance!(orders:
/// OrdersConnector::default());`
#[macro_export]
macro_rules! conformance {
    ($name:ident: $connector:expr) => {
        mod $name {
            use super::*;

            $crate::conformance!(@test $connector;
                v01_order_per_key OrderPerKey,
                v01_no_loss NoLoss,
                v01_bounded_repeats BoundedRepeats,
                v01_pause_and_resume PauseAndResume,
                v01_malformed_events MalformedEvents,
                v01_shutdown_under_load ShutdownUnderLoad,
                v01_restart Restart,
                v01_gaps Gaps,
                v01_revoke_during_load RevokeDuringLoad,
            );
        }
    };
    (@test $connector:expr; $($test:ident $check:ident,)*) => {
        $(
            #[test]
            fn $test() {
                $crate::conformance::check(&$connector, $crate::conformance::Check::$check).told();
            }
        )*
    };
}
