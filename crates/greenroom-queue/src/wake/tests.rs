use std::{
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Wake as Woken},
};

use super::*;

/// Records whether it was woken.
#[derive(Default)]
struct Task(AtomicBool);

impl Woken for Task {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Task {
    fn was_woken(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Polls a parked worker once, with this task's waker.
fn rest_on(
    parked: Pin<&mut impl Future<Output = WakeReason>>,
    task: &Arc<Task>,
) -> Poll<WakeReason> {
    parked.poll(&mut Context::from_waker(&Waker::from(task.clone())))
}

fn one() -> (Wake, WatchdogHandle, [Arc<Task>; 2]) {
    (Wake::new(1, 1), WatchdogHandle::none(), Default::default())
}

#[test]
fn who_parks_and_says_what_wakes_it_is_woken_also_before_it_rests() {
    let (wake, watchdog, [task, _]) = one();
    let park_token = wake.park(0, Some(Waker::from(task.clone())));
    assert!(wake.one_more(&watchdog) && task.was_woken());
    let parked = pin!(wake.woken(0, park_token));
    assert_eq!(rest_on(parked, &task), Poll::Ready(WakeReason::Any));
}

#[test]
fn who_rests_on_another_task_than_before_is_woken_there() {
    let (wake, watchdog, [first, second]) = one();
    let park_token = wake.park(0, Some(Waker::from(first.clone())));
    {
        let mut parked = pin!(wake.woken(0, park_token));
        assert!(rest_on(parked.as_mut(), &first).is_pending());
        assert!(rest_on(parked.as_mut(), &second).is_pending());
        assert!(wake.one_more(&watchdog));
        assert_eq!((first.was_woken(), second.was_woken()), (false, true));
        assert_eq!(rest_on(parked, &second), Poll::Ready(WakeReason::Any));
    }
    drop(wake);
    assert_eq!(Arc::strong_count(&first), 1, "nobody keeps what wakes it");
}

#[test]
fn who_has_not_said_what_wakes_it_finds_out_that_it_is_unparked() {
    let (wake, watchdog, [task, _]) = one();
    let park_token = wake.park(0, None);
    assert!(wake.one_more(&watchdog));
    let parked = pin!(wake.woken(0, park_token));
    assert_eq!(rest_on(parked, &task), Poll::Ready(WakeReason::Any));
    let park_token = wake.park(0, None);
    let mut parked = pin!(wake.woken(0, park_token));
    assert!(rest_on(parked.as_mut(), &task).is_pending());
    assert!(wake.call(0, &watchdog) && task.was_woken());
    assert_eq!(rest_on(parked, &task), Poll::Ready(WakeReason::Any));
}

#[test]
fn workers_leave_the_list_from_anywhere_each_with_its_own_waker() {
    let tasks: [Arc<Task>; 3] = Default::default();
    let (wake, watchdog) = (Wake::new(3, 3), WatchdogHandle::none());
    for (worker, task) in tasks.iter().enumerate() {
        let _rest = wake.park(worker, Some(Waker::from(task.clone())));
    }
    wake.forget(0, &watchdog);
    assert_eq!(wake.idle(), 2);
    assert!(wake.call(1, &watchdog) && !wake.call(1, &watchdog) && !wake.call(0, &watchdog));
    assert_eq!(tasks.each_ref().map(|task| task.was_woken()), [false, true, false]);
    wake.all();
    assert_eq!(tasks.each_ref().map(|task| task.was_woken()), [false, false, true]);
    assert_eq!((wake.idle(), wake.awake()), (0, 2));
}
