//! How do I choose the worker for a message myself?
//!
//! A policy gets the message, its metadata, and the live workers with their load. It runs in the
//! sender, before the message is accepted. Here each worker keeps the images of some users in its
//! cache; messages that need no cache go to an idle worker.
//!
//! `cargo run -p greenroom --example custom_policy`

#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::{collections::HashSet, convert::Infallible, time::Duration};

use greenroom::{
    CallError, SendError,
    policy::{About, Choice, Crew, Policy},
    prelude::*,
};

#[derive(Debug, Clone, Copy)]
enum Job {
    /// An image of the user with this number.
    Image(u64),
    /// Any worker can do this.
    Report,
    /// For the worker with the least to do.
    Heavy,
    Nonsense,
}

struct ByUser;

impl Policy<Job> for ByUser {
    fn choose(&self, job: &Job, _about: &About<'_>, crew: &Crew<'_>) -> Choice {
        match job {
            Job::Image(user) => Choice::At((user % crew.len() as u64) as usize),
            Job::Report => Choice::Any,
            Job::Heavy => match crew.iter().min_by_key(|worker| worker.load()) {
                Some(worker) => Choice::Slot(worker.slot),
                None => Choice::Hold,
            },
            Job::Nonsense => Choice::Refuse,
        }
    }
}

/// Remembers the users whose images it has seen.
#[derive(Default)]
struct Thumbnails {
    cache: HashSet<u64>,
}

impl Actor for Thumbnails {
    type Message = Job;
    /// The worker that handled it, and whether it knew the user.
    type Reply = (usize, bool);
    type Error = Infallible;

    async fn handle(
        &mut self,
        job: Job,
        cx: &mut Context<Self>,
    ) -> Result<(usize, bool), Infallible> {
        if let Job::Heavy = job {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let known = matches!(job, Job::Image(user) if !self.cache.insert(user));
        Ok((cx.slot(), known))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::new(|_slot| Thumbnails::default()).workers(3).dispatch(ByUser);
    let pool = pool.spawn().await?;

    for (user, expected) in [(7, (1, false)), (8, (2, false)), (7, (1, true)), (8, (2, true))] {
        let (slot, known) = pool.call(Job::Image(user)).await?;
        println!("user {user}: worker {slot}, {}", if known { "in its cache" } else { "new" });
        assert_eq!((slot, known), expected);
    }

    let heavy = || pool.call(Job::Heavy);
    let (one, two, three) = tokio::join!(heavy(), heavy(), heavy());
    let workers: HashSet<usize> = [one?.0, two?.0, three?.0].into();
    println!("heavy jobs: {} workers have one each", workers.len());
    assert_eq!(workers.len(), 3);

    let (slot, _) = pool.call(Job::Report).await?;
    println!("a report: made by whoever was free, one of {}", pool.stats().live);
    assert!(slot < 3);
    let refused = pool.call(Job::Nonsense).await;
    assert!(matches!(refused, Err(CallError::NotAccepted(SendError::Refused(Job::Nonsense)))));
    println!("nonsense: refused before it was accepted");

    let stats = pool.stop(Stop::within(Duration::from_secs(1))).await.stats;
    assert_eq!((stats.handled, stats.rejected), (8, 1));
    Ok(())
}
