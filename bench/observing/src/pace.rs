//! How much is run, and how long.

use std::time::Duration;

/// Before anything is measured.
pub const WARM_UP: Duration = Duration::from_secs(3);
/// Each measurement.
pub const WINDOW: Duration = Duration::from_secs(3);
/// After them: the run is not to end while it is measured.
const REST: Duration = Duration::from_secs(4);

/// The same for all sides.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Events per second.
    pub rate: u64,
    pub workers: usize,
    /// How often it is measured.
    pub windows: u32,
}

impl Pace {
    /// Of a whole run, where each window has a second one beside it.
    pub fn events(self) -> u64 {
        self.rate * (WARM_UP + 2 * self.windows * WINDOW + REST).as_secs()
    }
}
