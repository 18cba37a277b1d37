//! Batches are of one share (Q05).

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use greenroom::{
    Actor, Context, Pool,
    batch::{Batch, Batches},
    shares::ShareLimits,
};

type Row = (&'static str, u64);

#[derive(Clone, Default)]
struct Writer(Arc<Mutex<Vec<Vec<&'static str>>>>);

impl Writer {
    fn batches(&self) -> Vec<Vec<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Actor for Writer {
    type Message = Batch<Row>;
    type Reply = Vec<Result<(), ()>>;
    type Error = ();

    async fn handle(&mut self, rows: Batch<Row>, _: &mut Context<Self>) -> Result<Self::Reply, ()> {
        let tenants: Vec<_> = rows.iter().map(|row| row.0).collect();
        let results = tenants.iter().map(|_| Ok(())).collect();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(tenants);
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(results)
    }
}

#[tokio::test(start_paused = true)]
async fn q05_a_batch_of_a_key_is_of_one_share() {
    let writer = Writer::default();
    let each = writer.clone();
    let pool = Pool::batched(move |_| each.clone(), Batches::of(4)).workers(2);
    let pool = pool.ordered_by(|row: &Row| row.1).shared_by(|row: &Row| row.0);
    let pool = pool.spawn().await.unwrap();
    for tenant in ["a", "a", "a", "a", "a", "b", "b", "a"] {
        pool.send((tenant, 7)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let sizes: Vec<_> = writer.batches().iter().map(|batch| (batch[0], batch.len())).collect();
    assert_eq!(sizes, [("a", 4), ("a", 1), ("b", 2), ("a", 1)]);
}

#[tokio::test(start_paused = true)]
async fn q05_a_batch_without_keys_is_of_one_share_and_one_attempt() {
    let writer = Writer::default();
    let each = writer.clone();
    let pool = Pool::batched(move |_| each.clone(), Batches::of(10)).workers(4);
    let pool = pool.shared_by(|row: &Row| row.0).share_limits(ShareLimits::default().in_hand(1));
    let pool = pool.spawn().await.unwrap();
    for number in 0..40 {
        pool.send((if number % 2 == 0 { "a" } else { "b" }, number)).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let batches = writer.batches();
    assert!(batches.iter().all(|batch| batch.iter().all(|tenant| *tenant == batch[0])));
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [10, 10, 10, 10]);
}
