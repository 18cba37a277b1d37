//! Rounds of one row: in each of them, for every other system, greenroom and then that
//! system, so that what the machine does meanwhile hits both. A ratio is that of the two
//! repetitions of one pair.

use measure::{Distance, max, median, min};

use crate::rows::Row;

/// One repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub value: f64,
    /// A cache line's way to and fro, in nanoseconds, before and after.
    pub trips: [f64; 2],
    /// Cores that others used meanwhile.
    pub others: f64,
}

/// What it came to, or why there is no figure.
pub type Outcome = Result<Sample, String>;

/// Who can be asked for repetitions, by number.
pub trait Players {
    fn play(&mut self, who: usize, row: &Row, messages: u64) -> Outcome;

    /// True for those that are asked no more.
    fn is_out(&self, who: usize) -> bool;
}

/// Greenroom and another system, one right after the other.
pub struct Pair {
    pub own: Outcome,
    pub other: Outcome,
}

impl Pair {
    /// Where both have a figure: the ratio, and how far the cores were apart.
    fn ratio(&self, row: &Row) -> Option<(f64, Distance)> {
        let (own, other) = self.own.as_ref().ok().zip(self.other.as_ref().ok())?;
        let ([a, b], [c, d]) = (own.trips, other.trips);
        Some((row.ratio(own.value, other.value), Distance::of(&[a, b, c, d])))
    }
}

/// All rounds of one other system.
pub struct Series {
    pub who: usize,
    /// Messages of a repetition, or why it could not warm up.
    pub messages: Result<u64, String>,
    pub pairs: Vec<Pair>,
}

impl Series {
    pub fn outcomes(&self) -> Vec<&Outcome> {
        self.pairs.iter().map(|pair| &pair.other).collect()
    }

    /// Pairs of this distance; of all where there is none.
    pub fn compared(&self, row: &Row, distance: Option<Distance>) -> Compared {
        let is_wanted = |pair: &&Pair| {
            let own = pair.ratio(row).map(|(_, own)| own);
            own.is_some() && distance.is_none_or(|wanted| own == Some(wanted))
        };
        let pairs: Vec<_> = self.pairs.iter().filter(is_wanted).collect();
        Compared {
            own: pairs.iter().filter_map(|pair| Some(pair.own.as_ref().ok()?.value)).collect(),
            other: pairs.iter().filter_map(|pair| Some(pair.other.as_ref().ok()?.value)).collect(),
            ratios: pairs.iter().filter_map(|pair| Some(pair.ratio(row)?.0)).collect(),
        }
    }
}

/// Figures of pairs that belong together.
pub struct Compared {
    pub own: Vec<f64>,
    pub other: Vec<f64>,
    pub ratios: Vec<f64>,
}

/// A row that was run.
pub struct Measured {
    pub row: &'static Row,
    pub own: usize,
    pub own_messages: Result<u64, String>,
    /// Repetitions of greenroom where there was nobody else.
    pub alone: Vec<Outcome>,
    pub series: Vec<Series>,
}

impl Measured {
    /// All repetitions of greenroom.
    pub fn own_outcomes(&self) -> Vec<&Outcome> {
        let of_pairs = self.series.iter().flat_map(|series| &series.pairs);
        self.alone.iter().chain(of_pairs.map(|pair| &pair.own)).collect()
    }
}

/// Median and ends of these figures.
#[derive(Clone, Copy)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// `None` for none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let spread = Self { median: median(values), min: min(values), max: max(values) };
        (!values.is_empty()).then_some(spread)
    }
}

/// How much is run.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    pub rounds: usize,
    pub messages: u64,
}

/// Runs a row: warms everybody up, then the rounds.
pub fn run(
    row: &'static Row,
    own: usize,
    others: &[usize],
    amount: Amount,
    players: &mut impl Players,
) -> Measured {
    if row.warm_up(amount.messages).is_some() {
        eprintln!("{}: warming up", row.name);
    }
    let own_messages = warm_up(row, own, amount, players);
    let warmed = |who: &usize| {
        let messages = warm_up(row, *who, amount, players);
        Series { who: *who, messages, pairs: Vec::new() }
    };
    let series = others.iter().map(warmed).collect();
    let mut measured = Measured { row, own, own_messages, alone: Vec::new(), series };
    for round in 1..=amount.rounds {
        eprintln!("{}: round {round} of {}", row.name, amount.rounds);
        measured.round(players);
    }
    measured
}

impl Measured {
    fn round(&mut self, players: &mut impl Players) {
        let (row, own, messages) = (self.row, self.own, self.own_messages.clone());
        let play_own = |players: &mut _| play(row, own, &messages, players);
        if self.series.is_empty() {
            self.alone.push(play_own(players));
        }
        for series in &mut self.series {
            // Asked for nothing where it is out already: that has been said once.
            if series.messages.is_ok() && !players.is_out(series.who) {
                let own = play_own(players);
                let other = play(row, series.who, &series.messages, players);
                series.pairs.push(Pair { own, other });
            }
        }
    }
}

fn play(
    row: &Row,
    who: usize,
    messages: &Result<u64, String>,
    players: &mut impl Players,
) -> Outcome {
    players.play(who, row, messages.clone()?)
}

/// The number of messages for the repetitions that count.
fn warm_up(
    row: &Row,
    who: usize,
    amount: Amount,
    players: &mut impl Players,
) -> Result<u64, String> {
    let figure = match row.warm_up(amount.messages) {
        Some(messages) => players.play(who, row, messages)?.value,
        None => f64::NAN,
    };
    Ok(row.messages(amount.messages, figure))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Each has figures that it gives in turn; the first is that of the warm-up.
    pub struct Fakes {
        pub figures: Vec<Vec<Outcome>>,
        pub played: Vec<(usize, u64)>,
        pub out: Vec<usize>,
    }

    impl Fakes {
        pub fn new(figures: Vec<Vec<Outcome>>) -> Self {
            Self { figures, played: Vec::new(), out: Vec::new() }
        }
    }

    impl Players for Fakes {
        fn play(&mut self, who: usize, _: &Row, messages: u64) -> Outcome {
            self.played.push((who, messages));
            let outcome = self.figures[who].remove(0);
            if outcome == Err("died".to_owned()) {
                self.out.push(who);
            }
            outcome
        }

        fn is_out(&self, who: usize) -> bool {
            self.out.contains(&who)
        }
    }

    pub fn near(value: f64) -> Outcome {
        Ok(Sample { value, trips: [100.0, 100.0], others: 0.0 })
    }

    pub fn far(value: f64) -> Outcome {
        Ok(Sample { value, trips: [500.0, 500.0], others: 0.0 })
    }

    pub fn lost() -> Outcome {
        Err("lost: 9 of 10 messages were handled".to_owned())
    }

    pub fn measured(row: &str, figures: Vec<Vec<Outcome>>, rounds: usize) -> (Measured, Fakes) {
        let others: Vec<_> = (1..figures.len()).collect();
        let (mut fakes, row) = (Fakes::new(figures), Row::named(row).unwrap());
        let amount = Amount { rounds, messages: 5_000_000 };
        (run(row, 0, &others, amount, &mut fakes), fakes)
    }

    #[test]
    fn greenroom_goes_right_before_each_other_system() {
        let all = |value| (0..5).map(|_| near(value)).collect();
        let (_, fakes) = measured("A4", vec![all(10.0), all(1.0), all(0.1)], 2);
        let who: Vec<_> = fakes.played.iter().map(|(who, _)| *who).collect();
        assert_eq!(who, [0, 1, 2, 0, 1, 0, 2, 0, 1, 0, 2]);
        let messages: Vec<_> = fakes.played.iter().map(|(_, messages)| *messages).collect();
        assert_eq!(messages[..3], [500_000; 3]);
        assert_eq!(messages[3..7], [5_000_000, 1_500_000, 5_000_000, 150_000]);
    }

    #[test]
    fn ratios_are_of_one_pair_and_those_of_near_cores_apart() {
        let own = vec![near(1.0), near(60.0), near(40.0), far(20.0)];
        let other = vec![near(1.0), near(10.0), near(20.0), far(10.0)];
        let (measured, _) = measured("A4", vec![own, other], 3);
        let ratios = |distance| measured.series[0].compared(measured.row, distance).ratios;
        assert_eq!(ratios(None), [6.0, 2.0, 2.0]);
        assert_eq!(ratios(Some(Distance::Near)), [6.0, 2.0]);
        assert_eq!(ratios(Some(Distance::Far)), [2.0]);
        assert!(ratios(Some(Distance::Mixed)).is_empty());
    }

    #[test]
    fn a_repetition_without_a_figure_has_no_ratio() {
        let own = vec![near(1.0), near(60.0), near(60.0)];
        let (measured, _) = measured("A4", vec![own, vec![near(1.0), lost(), near(20.0)]], 2);
        let compared = measured.series[0].compared(measured.row, None);
        assert_eq!((compared.ratios, compared.own), (vec![3.0], vec![60.0]));
        assert_eq!(measured.own_outcomes().len(), 2);
    }

    #[test]
    fn who_is_out_or_cannot_warm_up_is_asked_no_more() {
        let own = vec![near(1.0), near(1.0)];
        let died = vec![near(1.0), Err("died".to_owned())];
        let (measured, fakes) = measured("A4", vec![own, died, vec![lost()]], 3);
        assert_eq!(fakes.played.len(), 5);
        assert_eq!(measured.series[0].pairs.len(), 1);
        assert!(measured.series[1].messages.is_err());
    }

    #[test]
    fn memory_needs_no_warm_up_and_greenroom_may_be_alone() {
        let (measured, fakes) = measured("E-full", vec![vec![near(1.0), near(1.1)]], 2);
        assert_eq!(fakes.played, [(0, 256_000), (0, 256_000)]);
        assert_eq!(measured.own_outcomes().len(), 2);
    }

    #[test]
    fn a_spread_is_median_and_ends() {
        let spread = Spread::of(&[3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (2.5, 1.0, 10.0));
        assert!(Spread::of(&[]).is_none());
    }
}
