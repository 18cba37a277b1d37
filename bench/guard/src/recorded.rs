//! The file of recorded instructions: figures by row, and what they were made with.

use std::{collections::BTreeMap, fs};

use measure::locked;
use serde_json::{Value, json};

use crate::{COMPILER, Failure, Guard};

/// Instructions per message, by row.
pub(crate) type Figures = BTreeMap<String, f64>;

/// Where a new file comes from.
const RECORD: &str = "`guard --record` of the same program writes it";

/// What figures depend on beside the code that they are of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Made {
    pub architecture: String,
    pub compiler: String,
    pub tokio: String,
    pub valgrind: String,
}

impl Made {
    /// By this program, as it was built, under this valgrind.
    pub fn now(valgrind: String) -> Self {
        Self {
            architecture: std::env::consts::ARCH.to_owned(),
            compiler: COMPILER.to_owned(),
            tokio: locked("tokio").to_owned(),
            valgrind,
        }
    }

    fn of(value: &Value) -> Result<Self, Failure> {
        let text = |name: &str| {
            let text = value[name].as_str().map(str::to_owned);
            text.ok_or_else(|| format!("made_with.{name} must be a text; {RECORD}"))
        };
        Ok(Self {
            architecture: text("architecture")?,
            compiler: text("compiler")?,
            tokio: text("tokio")?,
            valgrind: text("valgrind")?,
        })
    }

    fn json(&self) -> Value {
        let Self { architecture, compiler, tokio, valgrind } = self;
        json!({
            "architecture": architecture, "compiler": compiler, "tokio": tokio, "valgrind": valgrind,
        })
    }

    /// What may have changed the figures, though the code is the same.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let of = |name, then: &str, now: &str| {
            (then != now).then(|| format!("{name}: recorded with {then}, counted with {now}"))
        };
        let compiler = of("compiler", &self.compiler, &now.compiler);
        let tokio = of("tokio", &self.tokio, &now.tokio);
        [compiler, tokio, of("valgrind", &self.valgrind, &now.valgrind)]
            .into_iter()
            .flatten()
            .collect()
    }
}

#[derive(Debug, PartialEq)]
pub(crate) struct Recorded {
    pub made: Made,
    pub figures: Figures,
}

impl Recorded {
    /// Reads a file that has a figure for each of these rows, and for no other.
    pub fn read(guard: &Guard<'_>) -> Result<Self, Failure> {
        let place = guard.file.display();
        let text = fs::read_to_string(&guard.file)
            .map_err(|error| format!("{place}: {error}; {RECORD}"))?;
        Self::parse(&text, &guard.rows).map_err(|error| format!("{place}: {error}").into())
    }

    fn parse(text: &str, rows: &[&str]) -> Result<Self, Failure> {
        let file: Value = serde_json::from_str(text)?;
        let given = file["instructions"].as_object();
        let given = given.ok_or_else(|| format!("it has no \"instructions\" by row; {RECORD}"))?;
        if let Some(unknown) = given.keys().find(|row| !rows.contains(&row.as_str())) {
            let known = rows.join(", ");
            return Err(format!("unknown row {unknown}; the guard counts {known}; {RECORD}").into());
        }
        let figure = |row: &&str| {
            let figure =
                given.get(*row).ok_or_else(|| format!("row {row} is missing; {RECORD}"))?;
            let figure = figure.as_f64().filter(|figure| *figure > 0.0);
            let figure = figure.ok_or_else(|| format!("row {row} must be a number above 0"))?;
            Ok(((*row).to_owned(), figure))
        };
        let figures: Result<_, Failure> = rows.iter().map(figure).collect();
        Ok(Self { made: Made::of(&file["made_with"])?, figures: figures? })
    }

    pub fn write(&self, guard: &Guard<'_>) -> Result<(), Failure> {
        let path = &guard.file;
        let text = format!("{:#}\n", self.json(&about(guard)));
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()).into())
    }

    /// With one decimal: more would change with every record.
    fn json(&self, about: &[String]) -> Value {
        let tenths = |figure: f64| (figure * 10.0).round() / 10.0;
        let figures: Figures =
            self.figures.iter().map(|(row, figure)| (row.clone(), tenths(*figure))).collect();
        json!({ "about": about, "made_with": self.made.json(), "instructions": figures })
    }
}

/// What the file says of itself, line by line.
fn about(guard: &Guard<'_>) -> [String; 4] {
    let Guard { program, about, .. } = guard;
    [
        (*about).to_owned(),
        format!(
            "`{program} guard` compares with these figures, and fails where a row grew by more than 5 %: bench/README.md."
        ),
        format!(
            "Recorded with `cargo run --profile measure --manifest-path bench/Cargo.toml -p {program} -- guard --record`."
        ),
        "This file changes only in a commit that says why a figure grew or fell.".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: [&str; 2] = ["A4", "D1"];

    fn recorded() -> Recorded {
        let figures = [("A4".to_owned(), 381.4), ("D1".to_owned(), 900.0)].into();
        Recorded { made: Made::now("valgrind-3.19.0".to_owned()), figures }
    }

    fn refused(change: impl FnOnce(&mut Value)) -> String {
        let mut file = recorded().json(&[]);
        change(&mut file);
        Recorded::parse(&file.to_string(), &ROWS).unwrap_err().to_string()
    }

    #[test]
    fn what_was_written_is_read_again() {
        let written = recorded().json(&[]).to_string();
        assert_eq!(Recorded::parse(&written, &ROWS).unwrap(), recorded());
    }

    #[test]
    fn a_row_that_the_file_lacks_is_named() {
        let told = refused(|file| {
            file["instructions"].as_object_mut().unwrap().remove("D1");
        });
        assert!(told.starts_with("row D1 is missing"), "{told}");
    }

    #[test]
    fn a_row_that_nobody_counts_is_named_with_those_that_are() {
        let told = refused(|file| file["instructions"]["Z9"] = json!(1.0));
        assert!(told.starts_with("unknown row Z9; the guard counts A4, D1"), "{told}");
    }

    #[test]
    fn a_figure_is_a_number_above_zero() {
        for wrong in [json!(0), json!(-1.0), json!("381.4"), Value::Null] {
            let told = refused(|file| file["instructions"]["A4"] = wrong);
            assert_eq!(told, "row A4 must be a number above 0");
        }
    }

    #[test]
    fn a_file_without_figures_or_without_what_made_them_is_refused() {
        assert!(refused(|file| file["instructions"] = json!([])).contains("\"instructions\""));
        let told = refused(|file| file["made_with"]["compiler"] = Value::Null);
        assert!(told.starts_with("made_with.compiler must be a text"), "{told}");
    }

    #[test]
    fn another_compiler_is_told_with_both() {
        let now = Made { compiler: "rustc 9.0.0".to_owned(), ..recorded().made };
        let told = recorded().made.differences(&now);
        assert_eq!(told.len(), 1);
        assert!(told[0].ends_with("counted with rustc 9.0.0"), "{told:?}");
        assert!(now.differences(&now).is_empty());
    }
}
