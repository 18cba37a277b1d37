//! The panic hook that remembers locations (A11). A process of its own: there is one hook.

use std::{
    panic,
    sync::atomic::{AtomicU32, Ordering},
};

static HEARD: AtomicU32 = AtomicU32::new(0);

#[test]
fn a11_the_hook_that_was_there_before_still_hears_of_each_panic_once() {
    panic::set_hook(Box::new(|_| {
        HEARD.fetch_add(1, Ordering::SeqCst);
    }));
    greenroom::panic_location::install();
    greenroom::panic_location::install();
    panic::catch_unwind(|| panic!("on purpose")).unwrap_err();
    assert_eq!(HEARD.load(Ordering::SeqCst), 1);
}
