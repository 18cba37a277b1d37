//! The panic hook that remembers locations (A11).

use std::{
    panic,
    sync::atomic::{AtomicU32, Ordering},
};

use greenroom::{Actor, Context, ExitReason, Pool};

use super::alone;

static HEARD: AtomicU32 = AtomicU32::new(0);

struct Careless;

impl Actor for Careless {
    type Message = ();
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, (): (), _cx: &mut Context<Self>) -> Result<(), ()> {
        panic!("on purpose")
    }
}

/// The location of a panic in a new actor.
async fn panicked_at() -> Option<greenroom::panic_location::PanicLocation> {
    let pool = Pool::one(Careless).spawn().await.unwrap();
    assert!(pool.call(()).await.is_err());
    match pool.erase().ended().await {
        ExitReason::Panicked { location, .. } => location,
        other => panic!("{other}"),
    }
}

#[test]
fn a11_the_hook_that_was_there_before_still_hears_of_each_panic_once() {
    alone(
        "alone::panic_location::a11_the_hook_that_was_there_before_still_hears_of_each_panic_once",
        1,
        one_hook(),
    );
}

async fn one_hook() {
    panic::set_hook(Box::new(|_| {
        HEARD.fetch_add(1, Ordering::SeqCst);
    }));
    assert_eq!(panicked_at().await, None, "nobody has asked for it");
    greenroom::panic_location::install();
    greenroom::panic_location::install();
    panic::catch_unwind(|| panic!("on purpose")).unwrap_err();
    assert_eq!(HEARD.load(Ordering::SeqCst), 2);
    let at = panicked_at().await.unwrap();
    assert!(at.file.ends_with("panic_location.rs") && at.line > 10, "{at}");
    assert_eq!(HEARD.load(Ordering::SeqCst), 3);
}
