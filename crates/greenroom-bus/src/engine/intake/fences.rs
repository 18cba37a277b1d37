//! Numbers by which a target tells an assignment of a partition from a later one (D12).

use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

/// The fence of each assignment, by its number.
///
/// It has to rise from one owner of a partition to the next, which is another process, and no
/// broker exposes its generation through its client. So it is the time: milliseconds since 1970, or
/// the previous fence plus one if that is larger. Two owners are separated by at least the session
/// of the first, or its orderly leave, so clocks may differ by some seconds.
#[derive(Debug)]
pub(crate) struct Fences {
    /// The fence of events without a partition: when the engine was built.
    began: u64,
    assigned: RwLock<Vec<u64>>,
}

impl Default for Fences {
    fn default() -> Self {
        Self { began: millis(), assigned: RwLock::default() }
    }
}

impl Fences {
    /// The number of another assignment, which has a fence from now on.
    pub(crate) fn assign(&self) -> u32 {
        let mut assigned = self.assigned.write();
        let number = assigned.len() as u32;
        let after = assigned.last().copied().unwrap_or(self.began);
        assigned.push(millis().max(after + 1));
        number
    }

    /// The fence of the assignment with this number, or of events without an assignment.
    pub(crate) fn get(&self, number: u32) -> u64 {
        self.assigned.read().get(number as usize).copied().unwrap_or(self.began)
    }
}

fn millis() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d12_a_fence_rises_with_each_assignment_and_start() {
        let fences = Fences::default();
        let numbers = [fences.assign(), fences.assign(), fences.assign()];
        assert_eq!(numbers, [0, 1, 2]);
        let all = numbers.map(|number| fences.get(number));
        let began = fences.get(u32::MAX);
        assert!(began < all[0] && all[0] < all[1] && all[1] < all[2], "{began} {all:?}");
        assert!(millis() >= began, "that of the next start");
    }
}
