//! The source in memory whose partitions come and go: what brokers will be held to.

use greenroom_test::{
    conformance,
    conformance::{BrokerConnector, Check, not_applicable},
    partitioned::BrokerOptions,
};

conformance!(calm: BrokerConnector::default());
conformance!(restless: BrokerConnector(RESTLESS));

/// Gaps and repeats, and batches of all sizes.
const RESTLESS: BrokerOptions = BrokerOptions { seed: 3, batch: 40, gaps: 0.2, repeats: 0.2 };

#[test]
fn v01_a_broker_is_able_to_do_everything() {
    let told = Check::ALL.map(|check| not_applicable(&BrokerConnector::default(), check));
    assert!(told.iter().all(Option::is_none), "{told:?}");
}
