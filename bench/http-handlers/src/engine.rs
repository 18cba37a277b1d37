//! The engine, from memory to an `http` handler and nowhere.

use std::{sync::Arc, time::Duration};

use greenroom_bus::{
    dead_letter::file::FileDeadLetterStore,
    engine::{Engine, HandlerConfig, PoolConfig, Retry},
    event::Event,
    handler::http::{HttpFactory, HttpOptions},
    source::{Pull, Pulling, Source, Taken},
};

use crate::{AT_ONCE, Failure};

/// Events of one pull.
const BATCH: usize = 256;

struct Memory {
    events: std::vec::IntoIter<Event>,
    given: u64,
}

impl Source for Memory {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn pull<'a>(&'a mut self, into: &'a mut Vec<Taken>) -> Pulling<'a> {
        for event in self.events.by_ref().take(BATCH) {
            self.given += 1;
            into.push(Taken { position: self.given, event: Ok(event) });
        }
        let is_over = self.events.as_slice().is_empty();
        Box::pin(async move { Ok(if is_over { Pull::End } else { Pull::More }) })
    }

    fn replayable(&self) -> bool {
        false
    }
}

/// Posts all of them, of one subject one after the other where they are ordered. Returns how many
/// were handled.
pub async fn run(url: &str, events: Vec<Event>, is_ordered: bool) -> Result<u64, Failure> {
    let http = HttpFactory::new(&HttpOptions::new(url))?;
    let mut handler = HandlerConfig::new(vec!["**".parse()?], Arc::new(http));
    if is_ordered {
        handler.order_by = Some("subject".parse()?);
    }
    let backoff = greenroom::Backoff::new(Duration::from_millis(1), Duration::from_millis(10));
    handler.retry = Some(Retry { attempts: 20, backoff, total: None });
    let dead_letters = std::env::temp_dir().join(format!("http-handlers-{}", std::process::id()));
    let engine = Engine::builder()
        .input(Box::new(Memory { events: events.into_iter(), given: 0 }))
        .pool("default", PoolConfig { workers: AT_ONCE, ..PoolConfig::default() })
        .handler("http", handler)
        .dead_letters(Arc::new(FileDeadLetterStore::open(&dead_letters)?))
        .build()
        .await?;
    let report = engine.run().await;
    std::fs::remove_file(&dead_letters).ok();
    match report.is_clean() && report.out_of_order == 0 && report.handled == report.taken {
        true => Ok(report.handled),
        false => Err(format!("{report:?}").into()),
    }
}
