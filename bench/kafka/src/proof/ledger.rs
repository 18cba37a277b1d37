//! All that was handled, and whether that is as it should be.

use std::{
    collections::{BTreeMap, HashMap},
    process::ExitCode,
    sync::Arc,
};

use super::{process::Line, publishing::Published};

pub struct Ledger {
    published: Arc<Published>,
    lines: Vec<Line>,
    is_done: Vec<bool>,
    count_done: u64,
}

/// What went wrong, and what is only counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    lost: u64,
    /// Handled, within one assignment of their partition, before or while
    /// one that came earlier was.
    out_of_order: u64,
    /// Handled for the first time before one of their key that came earlier.
    ahead: u64,
    repeated: u64,
    /// Handled by two processes at the same time.
    at_once: u64,
}

impl Ledger {
    pub fn new(published: Arc<Published>) -> Self {
        let is_done = vec![false; published.count() as usize];
        Self { published, lines: Vec::new(), is_done, count_done: 0 }
    }

    pub fn take(&mut self, line: Line) {
        let is_done = &mut self.is_done[line.number as usize];
        self.count_done += u64::from(!*is_done);
        *is_done = true;
        self.lines.push(line);
    }

    pub fn count_done(&self) -> u64 {
        self.count_done
    }

    pub fn is_whole(&self) -> bool {
        self.count_done == self.published.count()
    }

    /// Says what came of it.
    pub fn judge(&self) -> ExitCode {
        let verdict = self.verdict();
        let Verdict { lost, out_of_order, ahead, repeated, at_once } = verdict;
        let percent = repeated as f64 * 100.0 / self.published.count() as f64;
        println!("lost                              {lost}");
        println!("out of order within an ownership  {out_of_order}");
        println!("done before an earlier one        {ahead}");
        println!("repeated                          {repeated} ({percent:.2} %)");
        println!("handled by two at the same time   {at_once}");
        match lost + out_of_order + ahead {
            0 => ExitCode::SUCCESS,
            _ => {
                eprintln!("error: events were lost, or were handled out of order");
                ExitCode::FAILURE
            }
        }
    }

    fn verdict(&self) -> Verdict {
        let mut verdict = Verdict {
            lost: self.published.count() - self.count_done,
            repeated: self.lines.len() as u64 - self.count_done,
            ..Verdict::default()
        };
        let mut by_key = HashMap::<usize, Vec<&Line>>::new();
        for line in &self.lines {
            by_key.entry(self.published.key(line.number)).or_default().push(line);
        }
        by_key.into_values().for_each(|lines| verdict.judge(lines));
        verdict
    }
}

impl Verdict {
    /// Of one key.
    fn judge(&mut self, mut lines: Vec<&Line>) {
        lines.sort_unstable_by_key(|line| line.from);
        let mut owned = BTreeMap::<(u32, u32), &Line>::new();
        for line in &lines {
            if let Some(before) = owned.insert((line.process, line.ownership), line) {
                let is_behind = before.number < line.number && before.until <= line.from;
                self.out_of_order += u64::from(!is_behind);
            }
        }
        let is_at_once = |pair: &&[&Line]| pair[1].from < pair[0].until;
        self.at_once += lines.windows(2).filter(is_at_once).count() as u64;
        lines.sort_unstable_by_key(|line| line.until);
        let (mut highest, mut firsts) = (None, std::collections::HashSet::new());
        for line in lines {
            if firsts.insert(line.number) {
                self.ahead += u64::from(highest > Some(line.number));
                highest = highest.max(Some(line.number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one key: the process, its ownership, the number, and when.
    fn verdict(lines: &[(u32, u32, u64, u64, u64)]) -> Verdict {
        let mut ledger = Ledger::new(Arc::new(Published::draw(4, 1, 1)));
        for &(process, ownership, number, from, until) in lines {
            ledger.take(Line { process, number, ownership, from, until });
        }
        ledger.verdict()
    }

    #[test]
    fn what_is_handled_again_by_the_next_owner_is_counted_and_no_fault() {
        let lines =
            [(1, 0, 0, 0, 1), (1, 0, 1, 1, 2), (2, 0, 1, 3, 4), (2, 0, 2, 4, 5), (2, 0, 3, 5, 6)];
        assert_eq!(verdict(&lines), Verdict { repeated: 1, ..Verdict::default() });
        let again = [(1, 0, 0, 0, 1), (1, 1, 0, 1, 2), (1, 1, 1, 2, 3), (1, 1, 2, 3, 4)];
        assert_eq!(verdict(&again), Verdict { repeated: 1, lost: 1, ..Verdict::default() });
    }

    #[test]
    fn what_is_handled_ahead_of_its_line_is_found() {
        let swapped = [(1, 0, 1, 0, 1), (1, 0, 0, 1, 2), (1, 0, 2, 2, 3), (1, 0, 3, 3, 4)];
        assert_eq!(verdict(&swapped), Verdict { out_of_order: 1, ahead: 1, ..Verdict::default() });
        let while_another_is = [(1, 0, 0, 0, 9), (1, 0, 1, 8, 10), (1, 0, 2, 10, 11)];
        let expected = Verdict { out_of_order: 1, at_once: 1, lost: 1, ..Verdict::default() };
        assert_eq!(verdict(&while_another_is), expected);
    }
}
