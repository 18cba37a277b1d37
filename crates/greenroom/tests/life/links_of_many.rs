//! A12: many ties at once, over threads.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use greenroom::{Actor, AnyAddress, Context, ExitReason, OnExit, Pool, Stop};

use crate::life::probe::HOUR;

/// Counts its signals.
#[derive(Clone, Default)]
struct Ear {
    exits: Arc<AtomicUsize>,
    downs: Arc<AtomicUsize>,
    traps: bool,
}

enum Do {
    Monitor(AnyAddress),
    Exit,
}

impl Actor for Ear {
    type Message = Do;
    type Reply = ();
    type Error = ();

    async fn handle(&mut self, message: Do, cx: &mut Context<Self>) -> Result<(), ()> {
        match message {
            Do::Monitor(other) => cx.monitor(&other),
            Do::Exit => cx.exit(ExitReason::failed("on purpose")),
        }
        Ok(())
    }

    async fn exited(
        &mut self,
        _who: Option<&AnyAddress>,
        _reason: &ExitReason,
        _cx: &mut Context<Self>,
    ) -> OnExit {
        self.exits.fetch_add(1, Ordering::SeqCst);
        if self.traps { OnExit::GoOn } else { OnExit::Stop }
    }

    async fn down(&mut self, _who: &AnyAddress, _reason: &ExitReason, _cx: &mut Context<Self>) {
        self.downs.fetch_add(1, Ordering::SeqCst);
    }
}

async fn ear(ear: Ear) -> Pool<Ear> {
    Pool::one(ear).spawn().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a12_a_chain_of_a_thousand_collapses() {
    let mut chain = Vec::new();
    for _ in 0..1_000 {
        chain.push(ear(Ear::default()).await);
    }
    chain.windows(2).for_each(|two| two[0].erase().link(&two[1].erase()));
    chain[0].send(Do::Exit).await.unwrap();
    for one in &chain {
        assert!(tokio::time::timeout(HOUR, one.erase().ended()).await.unwrap().is_abnormal());
    }
}

#[tokio::test(start_paused = true)]
async fn a12_a_pool_of_a_thousand_links_is_told_to_all() {
    let hub = ear(Ear::default()).await;
    let mut spokes = Vec::new();
    for _ in 0..1_000 {
        let spoke = ear(Ear::default()).await;
        spoke.erase().link(&hub.erase());
        spokes.push(spoke);
    }
    spokes[500].send(Do::Exit).await.unwrap();
    for spoke in &spokes {
        assert!(spoke.erase().ended().await.is_abnormal());
    }
}

/// One ends while another is being linked to it on another thread: it is notified exactly once.
#[test]
fn a12_an_end_during_a_tie_is_heard_of_once() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    const PAIRS: usize = 1_000;
    let told = Ear { traps: true, ..Ear::default() };
    let (exits, downs) = (told.exits.clone(), told.downs.clone());
    runtime.block_on(async {
        let one = ear(told).await;
        let mut others = Vec::new();
        for _ in 0..PAIRS {
            others.push(ear(Ear::default()).await);
        }
        let (link, watch) = (one.erase(), one.address());
        let all: Vec<_> = others.iter().map(|other| other.erase()).collect();
        let ending = all.clone();
        let ends = std::thread::spawn(move || {
            for (number, other) in ending.iter().enumerate() {
                other.exit(if number % 2 == 0 { ExitReason::Killed } else { ExitReason::Normal });
            }
        });
        for (number, other) in all.iter().enumerate() {
            match number % 3 {
                0 => link.link(other),
                1 => other.link(&link),
                _ => watch.send(Do::Monitor(other.clone())).await.unwrap(),
            }
        }
        ends.join().unwrap();
        for other in &all {
            other.ended().await;
        }
        let heard = || exits.load(Ordering::SeqCst) + downs.load(Ordering::SeqCst);
        while heard() < PAIRS {
            tokio::task::yield_now().await;
        }
        one.call(Do::Monitor(one.erase())).await.unwrap();
        assert_eq!(exits.load(Ordering::SeqCst), PAIRS - PAIRS / 3);
        assert_eq!(downs.load(Ordering::SeqCst), PAIRS / 3);
        one.stop(Stop::Now).await;
    });
}

/// Both of a pair end at once, on two threads, while they are linked on a third.
#[test]
fn a12_pairs_that_end_together_all_end() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    runtime.block_on(async {
        let mut pairs = Vec::new();
        for _ in 0..500 {
            pairs.push([ear(Ear::default()).await, ear(Ear::default()).await]);
        }
        let all: Vec<_> = pairs.iter().map(|two| [two[0].erase(), two[1].erase()]).collect();
        std::thread::scope(|scope| {
            for side in [0, 1] {
                let all = &all;
                scope.spawn(move || all.iter().for_each(|two| two[side].exit(ExitReason::Killed)));
            }
            all.iter().for_each(|two| two[0].link(&two[1]));
        });
        for one in all.iter().flatten() {
            assert!(one.ended().await.is_abnormal());
        }
    });
}
