//! A stop waits while an operator decides about a parked key.

use std::{
    pin::pin,
    task::{Context as TaskContext, Waker},
};

use crate::{
    Actor, Context, FinalAction, Pool,
    pool::{
        core::parked::{release_key, remove_key},
        frame::gate::close,
    },
};

/// Always fails.
struct Fails;

impl Actor for Fails {
    type Message = u8;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, _: u8, _: &mut Context<Self>) -> Result<(), ()> {
        Err(())
    }
}

/// The stop had counted the message neither as parked nor as settled, and nothing told it to check
/// again.
#[tokio::test(start_paused = true)]
async fn k08_a13_a_stop_that_waits_is_told_of_every_decision_about_a_parked_key() {
    for removes in [false, true] {
        let builder = Pool::new(|_| Fails).workers(1).ordered_by(|message: &u8| *message);
        let core = builder.on_final_failure(FinalAction::ParkKey).spawn_core().await.unwrap();
        let pool = Pool::spawned(core.clone());
        pool.send(7).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        assert_eq!(pool.stats().parked, 1);
        close(&*core);
        let mut told = pin!(core.frame.lifecycle.next_progress());
        let mut task = TaskContext::from_waker(Waker::noop());
        assert!(told.as_mut().poll(&mut task).is_pending());
        match removes {
            true => assert_eq!(remove_key(&core, &7, None), Some(vec![7])),
            false => assert!(release_key(&core, &7, None)),
        }
        assert!(told.as_mut().poll(&mut task).is_ready(), "{removes}");
    }
}
