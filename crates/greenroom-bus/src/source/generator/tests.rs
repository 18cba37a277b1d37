use std::collections::HashMap;

use greenroom_config::table::assert_options;

use super::*;

async fn all(options: GeneratorOptions) -> Vec<Taken> {
    let mut source = GeneratorSource::new(options).unwrap();
    let mut taken = Vec::new();
    while source.pull(&mut taken).await.unwrap() == Pull::More {}
    taken
}

fn lines(taken: &[Taken]) -> Vec<String> {
    taken.iter().map(|taken| format!("{:?}", taken.event.as_ref().unwrap())).collect()
}

#[tokio::test]
async fn b04_the_same_seed_makes_the_same_events() {
    let types = vec!["a".to_owned(), "b".to_owned()];
    let options = GeneratorOptions {
        count: Some(2_000),
        zipf: 1.0,
        types,
        payload: 30,
        ..Default::default()
    };
    let first = all(options.clone()).await;
    assert_eq!(first.len(), 2_000);
    assert_eq!(first.last().unwrap().position, 2_000);
    assert_eq!(lines(&first), lines(&all(options.clone()).await));
    assert_ne!(lines(&first), lines(&all(GeneratorOptions { seed: 2, ..options }).await));
}

#[tokio::test]
async fn b04_revisions_rise_by_one_for_each_key() {
    #[derive(serde::Deserialize)]
    struct Revision {
        revision: u32,
    }
    let options =
        GeneratorOptions { count: Some(3_000), keys: 20, zipf: 1.2, ..Default::default() };
    let mut last = HashMap::new();
    for taken in all(options).await {
        let event = taken.event.unwrap();
        let slot = last.entry(event.subject().unwrap().clone()).or_insert(0);
        *slot += 1;
        assert_eq!(event.data_as::<Revision>().unwrap().revision, *slot);
    }
    assert_eq!(last.len(), 20);
}

#[tokio::test(start_paused = true)]
async fn b04_the_rate_is_kept_in_virtual_time() {
    let started = Instant::now();
    let taken = all(GeneratorOptions {
        count: Some(1_001),
        rate: Some(Rate { per_second: 100.0 }),
        ..Default::default()
    })
    .await;
    assert_eq!(taken.len(), 1_001);
    let seconds = started.elapsed().as_secs_f64();
    assert!((9.9..10.2).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn b04_a_late_pull_catches_up() {
    let mut source = GeneratorSource::new(GeneratorOptions {
        rate: Some(Rate { per_second: 100.0 }),
        ..Default::default()
    })
    .unwrap();
    let mut taken = Vec::new();
    source.pull(&mut taken).await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    source.pull(&mut taken).await.unwrap();
    assert_eq!(taken.len(), 101);
}

#[tokio::test]
async fn a_count_of_zero_ends_at_once() {
    assert!(all(GeneratorOptions { count: Some(0), ..Default::default() }).await.is_empty());
}

#[test]
fn options_out_of_range_are_refused() {
    let bad = |change: fn(&mut GeneratorOptions)| {
        let mut options = GeneratorOptions::default();
        change(&mut options);
        assert!(GeneratorSource::new(options).is_err());
    };
    bad(|options| options.keys = 0);
    bad(|options| options.types.clear());
    bad(|options| options.types.push(String::new()));
    bad(|options| options.rate = Some(Rate { per_second: 0.0 }));
    bad(|options| options.rate = Some(Rate { per_second: f64::NAN }));
    bad(|options| options.zipf = -1.0);
}

#[test]
fn c02_each_option_takes_what_it_should_and_refuses_the_rest() {
    assert_options::<GeneratorOptions>(
        &[],
        &[
            ("count", "1", &["0", "all"]),
            ("rate", "20/s", &["20", "0/s", "20/fortnight"]),
            ("rate", "100/min", &["-1/s"]),
            ("keys", "1", &["0", "few"]),
            ("zipf", "0", &["-0.1", "11", "steep"]),
            ("types", "[a.b, c]", &["[]", "[1]", "''", "{}"]),
            ("types", "a", &["5"]),
            ("payload", "64KiB", &["17MiB", "big", "-1"]),
            ("seed", "0", &["-1", "x"]),
        ],
    );
}
