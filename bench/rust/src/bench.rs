//! What repetitions have in common, made when it is first asked for: keys and arrivals are
//! drawn before a clock starts.

use std::{
    cell::{OnceCell, RefCell},
    sync::Arc,
};

use crate::{
    arrivals::Schedule,
    keys::{self, Keys},
    row::Draw,
    work::Calibration,
};

pub struct Bench {
    pub calibration: Calibration,
    uniform: OnceCell<Keys>,
    zipf: OnceCell<Keys>,
    /// The last that was asked for, as repetitions of a comparison ask for the same.
    schedule: RefCell<Option<Arc<Schedule>>>,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            calibration: Calibration::measure(),
            uniform: OnceCell::new(),
            zipf: OnceCell::new(),
            schedule: RefCell::new(None),
        }
    }

    pub fn keys(&self, draw: Draw) -> Keys {
        match draw {
            Draw::Uniform => self.uniform.get_or_init(keys::uniform).clone(),
            Draw::Zipf => self.zipf.get_or_init(keys::zipf).clone(),
        }
    }

    pub fn schedule(&self, messages: u64) -> Arc<Schedule> {
        let mut last = self.schedule.borrow_mut();
        match &*last {
            Some(schedule) if schedule.total() == messages => schedule.clone(),
            _ => last.insert(Arc::new(Schedule::draw(messages, &self.keys(Draw::Zipf)))).clone(),
        }
    }
}
