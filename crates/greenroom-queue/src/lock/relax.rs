//! How a thread waits for a taken lock.

use std::cell::Cell;

use spin::relax::RelaxStrategy;

/// Spins before a thread yields to the operating system: several times as long as a lock is held.
const SPINS: u32 = 64;

thread_local! {
    static SPUN: Cell<u32> = const { Cell::new(0) };
}

/// Spins for a while, then yields.
pub struct SpinThenYield;

impl RelaxStrategy for SpinThenYield {
    fn relax() {
        std::hint::spin_loop();
        let spun = SPUN.get().wrapping_add(1);
        SPUN.set(spun);
        if spun.is_multiple_of(SPINS) {
            std::thread::yield_now();
        }
    }
}
