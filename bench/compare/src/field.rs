//! Who takes part: programs that run, and the systems that they offer.
//!
//! A system whose program dies or hangs is left out from then on, and the program is started
//! again for its other systems.

use std::time::Duration;

use measure::{Watch, ping_pong};

use crate::{
    contestant::{Broken, Contestant, Launch},
    protocol::{Answer, Offer, System},
    rounds::{Outcome, Players, Sample},
    rows::Row,
};

/// The system that all others are compared with.
pub const OWN: &str = "greenroom";

struct Program {
    launch: Launch,
    /// `None` after one of its systems has broken it, until another one is asked.
    running: Option<Contestant>,
}

pub struct Entrant {
    pub system: System,
    program: usize,
    /// Why it is left out.
    pub out: Option<String>,
}

pub struct Field {
    programs: Vec<Program>,
    pub entrants: Vec<Entrant>,
    /// What each program runs on, with its name.
    pub runtimes: Vec<(&'static str, String)>,
    deadline: Duration,
}

impl Field {
    /// Starts all of them. Those that cannot be started are returned as well, with the reason.
    pub fn start(launches: Vec<Launch>, deadline: Duration) -> (Self, Vec<String>) {
        let (programs, entrants, runtimes) = (Vec::new(), Vec::new(), Vec::new());
        let mut field = Self { programs, entrants, runtimes, deadline };
        let mut failed = Vec::new();
        for launch in launches {
            match Contestant::start(&launch, deadline) {
                Ok((contestant, offer)) => field.add(launch, contestant, offer),
                Err(broken) => failed.push(format!("{}: {broken}", launch.name)),
            }
        }
        (field, failed)
    }

    fn add(&mut self, launch: Launch, contestant: Contestant, offer: Offer) {
        let program = self.programs.len();
        let entrant = |system| Entrant { system, program, out: None };
        self.entrants.extend(offer.systems.into_iter().map(entrant));
        self.runtimes.push((launch.name, offer.runtime));
        self.programs.push(Program { launch, running: Some(contestant) });
    }

    pub fn own(&self) -> Option<usize> {
        self.entrants.iter().position(|entrant| entrant.system.name == OWN)
    }

    /// Those that offer a row.
    pub fn offering(&self, row: &Row) -> Vec<usize> {
        let offers =
            |who: &usize| self.entrants[*who].system.rows.iter().any(|name| name == row.name);
        (0..self.entrants.len()).filter(offers).collect()
    }

    /// Rows that are offered and that the comparison does not know, with who offers them.
    pub fn unknown(&self) -> Vec<String> {
        let unknown = |entrant: &Entrant| {
            let rows = entrant.system.rows.iter().filter(|row| Row::named(row).is_none());
            rows.map(|row| format!("{} offers {row}", entrant.system.name)).collect::<Vec<_>>()
        };
        self.entrants.iter().flat_map(unknown).collect()
    }

    fn ask(&mut self, who: usize, row: &Row, messages: u64) -> Result<Outcome, Broken> {
        let entrant = &self.entrants[who];
        let program = &mut self.programs[entrant.program];
        let name = &entrant.system.name;
        if row.needs_own_process() {
            let (mut own, _) = Contestant::start(&program.launch, self.deadline)?;
            return sample(&mut own, name, row, messages);
        }
        if program.running.is_none() {
            program.running = Some(Contestant::start(&program.launch, self.deadline)?.0);
        }
        let running = program.running.as_mut();
        let running = running.ok_or_else(|| Broken::NotStarted("it has ended".to_owned()))?;
        sample(running, name, row, messages)
    }
}

/// One repetition, with what is beside it.
fn sample(
    contestant: &mut Contestant,
    system: &str,
    row: &Row,
    messages: u64,
) -> Result<Outcome, Broken> {
    let before = ping_pong();
    let watch = Watch::start_with(Some(contestant.id()));
    let answer = contestant.ask(system, row.name, messages)?;
    let others = watch.cores();
    let trips = [before, ping_pong()];
    Ok(match answer {
        Answer::Value(value) => Ok(Sample { value, trips, others }),
        Answer::Error(error) => Err(error),
    })
}

impl Players for Field {
    fn play(&mut self, who: usize, row: &Row, messages: u64) -> Outcome {
        if let Some(why) = &self.entrants[who].out {
            return Err(why.clone());
        }
        self.ask(who, row, messages).unwrap_or_else(|broken| {
            let program = self.entrants[who].program;
            let why = format!("{broken}; left out from {} on", row.name);
            eprintln!("{}: {why}", self.entrants[who].system.name);
            self.programs[program].running = None;
            self.entrants[who].out = Some(why.clone());
            Err(why)
        })
    }

    fn is_out(&self, who: usize) -> bool {
        self.entrants[who].out.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestant::tests::script;

    /// Two systems of one program: one answers, the other breaks it.
    fn field(breaks: &str) -> Field {
        let system = |name| {
            format!(
                r#"{{"name": "{name}", "version": "1", "language": "sh", "rows": ["A4", "E-full", "Z"]}}"#
            )
        };
        let offer = format!(r#"{{"systems": [{}, {}]}}"#, system("good"), system("bad"));
        let text = format!(
            r#"echo '{offer}'; while read line; do case "$line" in *good*) echo '{{"value": '$$'}}';; *) {breaks};; esac; done"#
        );
        let (field, failed) = Field::start(vec![script(&text)], Duration::from_secs(3));
        assert!(failed.is_empty(), "{failed:?}");
        field
    }

    fn value(field: &mut Field, row: &str) -> f64 {
        field.play(0, Row::named(row).unwrap(), 5).unwrap().value
    }

    #[test]
    fn a_system_that_breaks_its_program_is_left_out_and_the_others_go_on() {
        for breaks in ["exit 3", "exec sleep 60", "echo what"] {
            let (mut field, row) = (field(breaks), Row::named("A4").unwrap());
            let before = value(&mut field, "A4");
            let why = field.play(1, row, 5).unwrap_err();
            assert!(why.contains("left out from A4 on"), "{why}");
            assert!(field.is_out(1) && !field.is_out(0));
            assert_eq!(field.play(1, row, 5).unwrap_err(), why);
            assert_ne!(value(&mut field, "A4"), before, "{breaks}: the program runs anew");
        }
    }

    #[test]
    fn an_error_is_of_one_repetition() {
        let (mut field, row) = (field(r#"echo '{"error": "lost 1"}'"#), Row::named("A4").unwrap());
        assert_eq!(field.play(1, row, 5).unwrap_err(), "lost 1");
        assert!(!field.is_out(1));
    }

    #[test]
    fn memory_is_asked_of_a_program_that_was_started_for_it() {
        let mut field = field("exit 3");
        let running = value(&mut field, "A4");
        assert_ne!(value(&mut field, "E-full"), running);
        assert_eq!(value(&mut field, "A4"), running);
    }

    #[test]
    fn rows_that_nobody_knows_are_said() {
        assert_eq!(field("exit 3").unknown(), ["good offers Z", "bad offers Z"]);
    }
}
