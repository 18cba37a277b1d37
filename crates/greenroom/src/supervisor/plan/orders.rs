//! From the present states of the children to the intended ones: which orders may be given now.

use tokio::time::Instant;

use super::{
    Order, Plan, PlanNotice,
    entry::{ChildEntry, Debut, Phase},
};

impl Plan {
    /// The current orders. Each is given once; the plan is notified when it is done.
    pub(crate) fn orders(&mut self, now: Instant) -> Vec<Order> {
        let mut orders = Vec::new();
        // Ends during starts that failed, or were given up.
        let over = self.entries.iter_mut().filter(|entry| entry.phase != Phase::Starting);
        self.notices.extend(over.filter_map(|entry| entry.died.take()).map(PlanNotice::Spent));
        let line_falls = self.give_falls(&mut orders);
        self.give_starts(now, line_falls, &mut orders);
        self.look_whether_booted();
        orders
    }

    /// The last ones first; in line, one at a time. True while a child in line has to go down.
    fn give_falls(&mut self, orders: &mut Vec<Order>) -> bool {
        let mut line_falls = false;
        for entry in self.entries.iter_mut().rev() {
            let Some(how) = entry.pending_fall() else { continue };
            let has_its_turn = !(entry.in_line && line_falls);
            let anew = std::mem::take(&mut entry.anew);
            if if entry.is_falling(how) { anew } else { has_its_turn } {
                entry.phase = Phase::Falling(how);
                orders.push(Order::Fall { child: entry.member.id, how });
            }
            line_falls |= entry.in_line;
        }
        line_falls
    }

    /// The first ones first; in line, one at a time, and when no child in line has
    /// to go down any more.
    fn give_starts(&mut self, now: Instant, line_falls: bool, orders: &mut Vec<Order>) {
        let mut line_waits = line_falls;
        for entry in self.entries.iter_mut().filter(|entry| entry.wants_up()) {
            let has_its_turn = !(entry.in_line && line_waits);
            if has_its_turn && entry.is_to_start() && entry.not_before.is_none_or(|at| at <= now) {
                orders.push(entry.start());
            }
            line_waits |= entry.in_line && entry.phase != Phase::Up;
        }
    }

    fn look_whether_booted(&mut self) {
        let awaited = |entry: &ChildEntry| entry.debut == Some(Debut::Spawn);
        if !self.booted && self.end.is_none() && !self.entries.iter().any(awaited) {
            self.booted = true;
            self.notices.push(PlanNotice::Booted);
        }
    }
}
