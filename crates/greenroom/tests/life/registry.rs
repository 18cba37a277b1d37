//! Names, and addresses without some of their types (A15).

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use greenroom::{
    Actor, AnyAddress, Context, NotAccepted, Pool, Recipient, Registry, Stop, registry::FindError,
};

const SECOND: Duration = Duration::from_secs(1);

/// Answers with the double.
struct Doubler;

impl Actor for Doubler {
    type Message = u32;
    type Reply = u32;
    type Error = ();

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<u32, ()> {
        Ok(2 * number)
    }
}

/// Adds up; it has the same messages as `Doubler`, and other replies and errors.
struct Summer(Arc<AtomicU32>);

impl Actor for Summer {
    type Message = u32;
    type Reply = ();
    type Error = String;

    async fn handle(&mut self, number: u32, _cx: &mut Context<Self>) -> Result<(), String> {
        self.0.fetch_add(number, Ordering::SeqCst);
        Ok(())
    }
}

async fn doubler() -> Pool<Doubler> {
    Pool::new(|_| Doubler).name("doubler").workers(1).spawn().await.unwrap()
}

async fn summer(capacity: usize) -> (Pool<Summer>, Arc<AtomicU32>) {
    let sum = Arc::new(AtomicU32::new(0));
    let theirs = sum.clone();
    let pool = Pool::new(move |_| Summer(theirs.clone())).name("summer").workers(1);
    (pool.capacity(capacity).spawn().await.unwrap(), sum)
}

fn unknown(name: &str) -> FindError {
    FindError::Unknown { name: name.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a15_a_name_leads_to_a_typed_address() {
    let registry = Registry::new();
    let pool = doubler().await;
    registry.register("two", &pool).unwrap();
    registry.register("zwei", &pool).unwrap();
    for name in ["two", "zwei"] {
        let found = registry.clone().find::<Doubler>(name).unwrap();
        assert_eq!(found.call(21).await, Ok(42));
    }
    let found = registry.find_typed::<u32, u32, ()>("two").unwrap();
    assert_eq!(found.call(21).await, Ok(42), "by one who knows the messages alone");
    assert_eq!(registry.find::<Doubler>("three").unwrap_err(), unknown("three"));
    let mut names = registry.names();
    names.sort();
    assert_eq!(names, ["two".into(), "zwei".into()]);
}

#[tokio::test(start_paused = true)]
async fn a15_a_name_of_another_type_is_an_error_of_its_own() {
    let registry = Registry::new();
    let (summer, _sum) = summer(9).await;
    registry.register("sum", &summer).unwrap();
    let error = registry.find::<Doubler>("sum").unwrap_err();
    assert!(matches!(&error, FindError::OtherType { name, registered, wanted }
        if name == "sum" && registered.contains("String") && !wanted.contains("String")));
    assert!(registry.find::<Summer>("sum").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a15_a_duplicate_name_is_an_error_value() {
    let registry = Registry::new();
    let (pool, other) = (doubler().await, doubler().await);
    registry.register("two", &pool).unwrap();
    let taken = registry.register("two", &other).unwrap_err();
    assert_eq!((taken.name.as_str(), &taken.holder), ("two", &pool.erase()));
    assert_eq!(taken.to_string(), "the name two is taken");
    assert_eq!(registry.register("two", &pool).unwrap_err(), taken, "the holder's own name too");
    assert_eq!(registry.find::<Doubler>("two").unwrap().erase(), pool.erase());
}

#[tokio::test(start_paused = true)]
async fn a15_a_name_vanishes_when_the_last_address_is_dropped() {
    let registry = Registry::new();
    let pool = doubler().await;
    registry.register("two", &pool).unwrap();
    drop(pool);
    assert_eq!(registry.find::<Doubler>("two").unwrap_err(), unknown("two"));
    assert!(registry.names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a15_a_name_vanishes_with_a_stop_and_can_be_taken_again() {
    let registry = Registry::new();
    let pool = doubler().await;
    registry.register("name", &pool).unwrap();
    pool.stop(Stop::Now).await;
    assert_eq!(registry.find::<Doubler>("name").unwrap_err(), unknown("name"));
    let (next, sum) = summer(9).await;
    registry.register("name", &next).unwrap();
    registry.find::<Summer>("name").unwrap().call(3).await.unwrap();
    assert_eq!(sum.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a15_a_name_can_be_taken_away() {
    let registry = Registry::new();
    let pool = doubler().await;
    registry.register("two", &pool).unwrap();
    assert_eq!(registry.remove("two"), Some(pool.erase()));
    assert_eq!(registry.remove("two"), None);
    assert_eq!(registry.find::<Doubler>("two").unwrap_err(), unknown("two"));
    assert_eq!(pool.call(1).await, Ok(2), "the actor goes on");
    registry.register("two", &pool).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a15_an_erased_address_knows_who_it_is_and_whether_it_lives() {
    let (doubler, (summer, _sum)) = (doubler().await, summer(9).await);
    let erased = [doubler.erase(), doubler.address().erase(), summer.erase()];
    assert_eq!(erased.iter().cloned().collect::<HashSet<AnyAddress>>().len(), 2);
    assert_eq!(erased[0], erased[1]);
    assert_ne!(erased[0], erased[2]);
    assert!(erased.iter().all(AnyAddress::is_alive));
    drop(doubler);
    assert_eq!(erased.each_ref().map(AnyAddress::is_alive), [false, false, true]);
    assert_eq!(erased.each_ref().map(AnyAddress::name), ["doubler", "doubler", "summer"]);
    tokio::time::sleep(SECOND).await;
    assert!(erased[0].stop(Stop::Now).await.is_none(), "nothing of it is left");
}

#[tokio::test(start_paused = true)]
async fn a15_an_erased_address_can_stop_and_loses_nothing() {
    let (pool, sum) = summer(9).await;
    for number in 1..=3 {
        pool.try_send(number).unwrap();
    }
    let summary = pool.erase().stop(Stop::Now).await.unwrap();
    let handled = sum.load(Ordering::SeqCst);
    assert!(summary.wedged.is_empty());
    assert_eq!(pool.try_send(4).unwrap_err().without_message(), NotAccepted::Stopped);
    let report = pool.stop(Stop::Now).await;
    assert_eq!(report.left_over.len(), summary.left_over);
    assert_eq!(handled + report.left_over.iter().sum::<u32>(), 6);
    assert!(summary.left_over > 0, "they were queued and not begun");
}

#[tokio::test(start_paused = true)]
async fn a15_a_recipient_takes_messages_whatever_the_reply_is() {
    let (doubler, (summer, sum)) = (doubler().await, summer(2).await);
    let recipients: [Recipient<u32>; 2] = [doubler.address().into(), summer.address().into()];
    for recipient in &recipients {
        recipient.try_send(1).unwrap();
        recipient.send(2).await.unwrap();
    }
    let third = recipients[1].try_send(3).unwrap_err();
    assert_eq!((third.without_message(), third.into_message()), (NotAccepted::Full, Some(3)));
    recipients[1].send(4).await.unwrap();
    assert_eq!(recipients[1].erase(), summer.erase());
    let clone = recipients[1].clone();
    drop(summer);
    drop(recipients);
    clone.send(5).await.unwrap();
    let weak = clone.erase();
    drop(clone);
    assert!(!weak.is_alive(), "a recipient keeps its pool alive, until the last one is dropped");
    tokio::time::sleep(SECOND).await;
    assert_eq!(sum.load(Ordering::SeqCst), 12);
}

#[tokio::test(start_paused = true)]
async fn a15_a_weak_address_is_the_same_sender_and_ends_with_the_last_address() {
    let (pool, _sum) = summer(9).await;
    let weak = pool.downgrade();
    let (one, other) = (weak.upgrade().unwrap(), weak.clone().upgrade().unwrap());
    assert_eq!(format!("{one:?}"), format!("{other:?}"), "messages of both are queued together");
    drop(pool);
    drop(one);
    assert!(weak.is_alive(), "one address is left");
    drop(other);
    assert!(!weak.is_alive());
    assert!(weak.upgrade().is_none(), "a pool that drains cannot be had back");
}

/// The last address is dropped while other threads upgrade: either they get an address that works,
/// or the pool ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a15_an_upgrade_that_succeeds_gives_an_address_that_works() {
    for _ in 0..200 {
        let (pool, sum) = summer(9).await;
        let weak = pool.downgrade();
        let upgrade = std::thread::spawn(move || weak.upgrade().map(|address| address.try_send(7)));
        drop(pool);
        let sent = upgrade.join().unwrap();
        assert!(sent.as_ref().is_none_or(Result::is_ok), "it was refused: {sent:?}");
        let expected = if sent.is_some() { 7 } else { 0 };
        let ended = async {
            while Arc::strong_count(&sum) > 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(60 * SECOND, ended).await.unwrap();
        assert_eq!(sum.load(Ordering::SeqCst), expected);
    }
}
