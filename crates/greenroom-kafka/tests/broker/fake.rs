//! A broker in this process, for tests that need no other: it speaks the protocol on a socket.

use std::{
    env,
    sync::{OnceLock, mpsc},
    thread,
};

use krafka::testing::FakeBroker;
use tokio::runtime::Builder;

/// The broker that is named, or else one in this process, which all tests share.
pub(crate) fn broker() -> String {
    static SHARED: OnceLock<FakeBroker> = OnceLock::new();
    super::support::log();
    let named = env::var("GREENROOM_KAFKA").ok().filter(|broker| !broker.is_empty());
    named.unwrap_or_else(|| SHARED.get_or_init(fake).bootstrap_servers())
}

/// One of a test's own, which fails as it is told. It lives on a thread of its own: runtimes end
/// with their tests.
pub(crate) fn fake() -> FakeBroker {
    super::support::log();
    let (give, given) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            give.send(FakeBroker::start().await.unwrap()).unwrap();
            std::future::pending::<()>().await;
        });
    });
    given.recv().unwrap()
}

/// Gives the first header of this name, of the first batch of partition 0, a name that is no text.
/// No client of Rust sends such a name; others do.
pub(crate) fn spoil_name(fake: &FakeBroker, topic: &str, header: &str) {
    fake.with_state(|state| {
        let first = &mut state.partition_mut(topic, 0).unwrap().log[0];
        let mut bytes = first.to_vec();
        let is_it = |part: &[u8]| part == header.as_bytes();
        let at = bytes.windows(header.len()).position(is_it).unwrap();
        bytes[at] = 0xff;
        *first = bytes.into();
    });
}
