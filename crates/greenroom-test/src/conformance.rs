//! The contract that every connector must meet, whatever it connects to (V01).
//!
//! Each connector has tests of its special features. Their common promises (order per key, nothing
//! lost, few repeats, pauses that take effect, partitions that are released at once) would
//! otherwise be tested once per connector, each time differently, and the rare cases not at all.
//! Here they are tested once for all, in the real engine.
//!
//! ```text
//! Connector ─ place ─▶ Place ─ open ─▶ its source ─▶ watched ─▶ engine ─▶ a handler that takes its
//!                        │                              │                  time, fails, gets stuck
//!                        └─ publish, revoke, restart    └──▶ ledger ◀───────────┘
//!                                                              │ every delivery, attempt,
//!                                                              ▼ settlement and commit
//!                               passed, not applicable because .., failed: why, and the seed
//! ```
//!
//! The author of a connector implements [`Connector`] and [`Place`], and writes
//!
//! ```ignore
//! greenroom_test::conformance!(orders: OrdersConnector::default());
//! ```
//!
//! which makes a test of each [`Check`]. A connector [declares](Connector::lacks) the abilities
//! that it lacks, with the reason: the checks that need them are reported as not applicable, on
//! standard error, despite the capture of test output. A claim that its source contradicts is a
//! failure. A connector of a server says if that is [missing](Connector::missing): none of its
//! checks is then run, which is reported as well.
//!
//! In every check, besides its own purpose, the ledger must show that no event was made up,
//! positions rise and keep their events, a key is in one hand and its events in order, no event of
//! a revoked assignment begins, no event of a paused partition is given, and **no commit covers an
//! event that is not acknowledged**.
//!
//! The price: some thousand events per connector, on virtual time if the connector [uses
//! it](Connector::clock), or else some seconds of real time. It is no benchmark, and does not
//! attempt cases that need a real network: those belong to the tests of the connector.

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
