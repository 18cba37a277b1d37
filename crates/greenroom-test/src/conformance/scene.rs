//! One check of one connector: a place, a ledger, and runs one after the other.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::{
    ability::Ability,
    connector::{Clock, Connector, Item, Place},
    items::{Items, PARTITIONS},
    ledger::Ledger,
    plan::Plan,
    running::{Running, Setting},
};

pub(super) struct Scene<'a> {
    connector: &'a dyn Connector,
    place: Box<dyn Place>,
    ledger: Arc<Ledger>,
    items: Items,
    seed: u64,
}

impl<'a> Scene<'a> {
    pub(super) fn new(connector: &'a dyn Connector, seed: u64) -> Result<Self, String> {
        let can = |ability| connector.lacks(ability).is_none();
        let partitions = if can(Ability::Partitions) { PARTITIONS } else { 1 };
        Ok(Self {
            connector,
            place: connector.place()?,
            ledger: Arc::new(Ledger::new(can(Ability::Replays))),
            items: Items::new(seed, partitions),
            seed,
        })
    }

    pub(super) fn can(&self, ability: Ability) -> bool {
        self.connector.lacks(ability).is_none()
    }

    pub(super) fn plan(&self) -> Plan {
        Plan::new(self.seed)
    }

    pub(super) fn items(&mut self) -> &mut Items {
        &mut self.items
    }

    /// This many events, as the connector gives them.
    pub(super) fn events(&mut self, count: usize) -> Result<Vec<Item>, String> {
        let wanted = self.items.events(count)?;
        Ok(self.connector.items(wanted))
    }

    /// Publishes these, opens a source and runs an engine until `act` ends. The rest is then cut
    /// off, as by a crash.
    pub(super) fn run<T>(
        &mut self,
        plan: Plan,
        items: &[Item],
        act: impl AsyncFnOnce(&mut Running<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        self.run_as(plan, items, false, act)
    }

    /// Like [`run`](Self::run), with an input that is paused before it is read.
    pub(super) fn run_paused<T>(
        &mut self,
        plan: Plan,
        items: &[Item],
        act: impl AsyncFnOnce(&mut Running<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        self.run_as(plan, items, true, act)
    }

    fn run_as<T>(
        &mut self,
        plan: Plan,
        items: &[Item],
        is_paused: bool,
        act: impl AsyncFnOnce(&mut Running<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let clock = self.connector.clock();
        let runtime = runtime(clock)?;
        let result = runtime.block_on(async {
            self.ledger.publishes(items);
            self.place.publish(items).await?;
            self.ledger.begins_run();
            let mut source = self.place.open().await?;
            self.claims(&mut *source)?;
            let lacks_positions = self.connector.lacks(Ability::KeepsPositions);
            let setting = Setting { plan, clock, is_paused, lacks_positions };
            let place = &mut *self.place;
            let mut running = Running::begin(place, source, &self.ledger, setting).await?;
            act(&mut running).await
        });
        // Everything that still runs is dropped here.
        drop(runtime);
        let result = result?;
        self.ledger.verdict()?;
        Ok(result)
    }

    /// The abilities of the source are those that its connector declares.
    fn claims(&self, source: &mut dyn greenroom_bus::source::Source) -> Result<(), String> {
        let says = [
            (Ability::Replays, source.replayable()),
            (Ability::Partitions, source.is_partitioned()),
        ];
        for (ability, is_able) in says {
            match (self.connector.lacks(ability), is_able) {
                (Some(why), true) => {
                    return Err(format!(
                        "its source is able {ability}, and the connector says: {why}"
                    ));
                }
                (None, false) => {
                    return Err(format!(
                        "its source is not able {ability}; its connector has to say so"
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// On one thread: otherwise a handler that had begun on another one while a partition was released
/// would appear to begin after that.
fn runtime(clock: Clock) -> Result<Runtime, String> {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_all().start_paused(clock == Clock::Virtual).build();
    runtime.map_err(|error| format!("no runtime: {error}"))
}
