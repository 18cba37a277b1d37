//! All figures of a running greenroom, and the state kept between two scrapes.

mod own;
#[cfg(test)]
mod page;

use std::{sync::Arc, time::Instant};

use greenroom_bus::{
    engine::Control,
    metrics::{Families, Observer},
};

use self::own::Own;
use crate::{
    admin::advice::{Recent, Seen},
    config::AdminConfig,
    run::{layers::HandlerLayers, reload::Reload},
    telemetry::counts::SignalCounts,
};

/// All figures of a running greenroom.
pub(crate) struct Figures {
    observer: Observer,
    own: Own,
    control: Control,
    reload: Arc<Reload>,
    layers: Arc<HandlerLayers>,
    recent: Recent,
}

impl Figures {
    /// For this run. `exported`: the counters of telemetry, if it is used.
    pub(crate) fn new(
        control: Control,
        reload: Arc<Reload>,
        layers: Arc<HandlerLayers>,
        config: Option<&AdminConfig>,
        exported: Option<Arc<SignalCounts>>,
    ) -> Self {
        let observer = Observer::new(control.clone());
        let observer = match config.map(|admin| &admin.metrics) {
            Some(wanted) => {
                observer.per_worker(wanted.per_worker).wedged_after(wanted.wedged_after)
            }
            None => observer,
        };
        let own = Own::new(control.clone(), reload.clone(), layers.clone(), exported);
        Self { observer, own, control, reload, layers, recent: Recent::default() }
    }

    /// The waiting work in seconds (O12); `None` until a rate is known.
    pub(crate) fn work_waiting(&self) -> Option<f64> {
        self.observer.work_waiting().map(|time| time.as_secs_f64())
    }

    pub(crate) fn look(&self) {
        self.observer.look();
        self.own.look();
        self.recent.look(Instant::now(), &self.control);
    }

    /// The input of the rules of advice.
    pub(in crate::admin) fn seen(&self) -> Seen {
        Seen::now(&self.control, &self.reload, &self.layers, &self.recent)
    }

    pub(crate) fn families(&self) -> Families {
        let mut families = self.observer.families();
        self.own.add(&mut families);
        own::add_advice(&mut families, &self.seen());
        families
    }
}
