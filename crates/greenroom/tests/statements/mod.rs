//! Checks that STATEMENTS.md is true: every statement is there and has tests, and the tests that it
//! names exist.
//!
//! A test belongs to the statements whose numbers begin its name: `a04_a05_...` covers A04 and A05.
//! After a test was added, renamed or removed,
//!
//! ```text
//! GREENROOM_WRITE_STATEMENTS=1 cargo test -p greenroom --test actors statements
//! ```
//!
//! writes the names into the page. The text and the heading of a statement are written by hand.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

/// The statements of each kind.
const STATEMENTS: [(char, RangeInclusive<u32>); 10] = [
    ('A', 1..=20),
    ('P', 0..=30),
    ('K', 1..=12),
    ('T', 1..=4),
    ('H', 1..=12),
    ('S', 1..=4),
    ('X', 1..=3),
    ('Q', 1..=6),
    ('Q', 9..=11),
    ('Q', 13..=14),
];

/// The tests of each statement, by number.
type Tests = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_page_names_every_statement_and_its_tests() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tests = tests_below(here);
    let page_path = here.join("STATEMENTS.md");
    let page = read(&page_path);
    assert_eq!(headings(&page), all_numbers(), "the statements on the page");
    let expected = with_tests(&page, &tests);
    if std::env::var_os("GREENROOM_WRITE_STATEMENTS").is_some() {
        fs::write(&page_path, &expected).expect("the page can be written");
    }

    let mut without = all_numbers();
    without.retain(|number| !tests.contains_key(number));
    assert!(without.is_empty(), "statements without a test: {without:?}");
    let page = read(&page_path);
    if let Some((line, (is, should_be))) = first_difference(&page, &expected) {
        panic!(
            "STATEMENTS.md, line {line}, is\n{is}\nand should be\n{should_be}\n\
             GREENROOM_WRITE_STATEMENTS=1 cargo test -p greenroom --test actors statements"
        );
    }
}

#[test]
fn names_of_tests_are_found_by_their_attributes() {
    let source = "\
        #[tokio::test(start_paused = true)]\n    async fn p13_p28_one() {}\n\
        #[test]\n#[should_panic(expected = \"x\")]\nfn a01_two() {}\nfn a02_no_test() {}\n\
        // fn a03_neither() {}\n";
    assert_eq!(tests_in(source), ["p13_p28_one", "a01_two"]);
    assert_eq!(numbers_of("p13_p28_one"), ["P13", "P28"]);
    assert_eq!(numbers_of("a03_m01_one"), ["A03"]); // M01 is not a statement of this page
    assert_eq!(numbers_of("ab1_one"), [""; 0]);
}

fn all_numbers() -> Vec<String> {
    let of_kind = |(kind, numbers): (char, RangeInclusive<u32>)| {
        numbers.map(move |number| format!("{kind}{number:02}"))
    };
    STATEMENTS.into_iter().flat_map(of_kind).collect()
}

/// The numbers at the start of a test's name that are existing statements.
fn numbers_of(test: &str) -> Vec<String> {
    let is_number = |part: &&str| {
        matches!(part.as_bytes(), [kind, tens, units]
            if kind.is_ascii_lowercase() && tens.is_ascii_digit() && units.is_ascii_digit())
    };
    let numbers = test.split('_').take_while(is_number).map(str::to_uppercase);
    let known = all_numbers();
    numbers.filter(|number| known.contains(number)).collect()
}

/// The names of the functions under a test attribute.
fn tests_in(source: &str) -> Vec<&str> {
    let (mut names, mut is_test) = (Vec::new(), false);
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(function) = line.trim_start_matches("async ").strip_prefix("fn ") {
            let name = function.split(['(', '<']).next().unwrap_or(function);
            names.extend(is_test.then_some(name));
            is_test = false;
        }
    }
    names
}

/// The tests of this package, and of the queue package below it.
fn tests_below(package: &Path) -> Tests {
    let mut tests = Tests::new();
    let folders = ["src", "tests", "../greenroom-queue/src"].map(|folder| package.join(folder));
    for path in folders.iter().flat_map(|folder| sources(folder)) {
        for test in tests_in(&read(&path)) {
            for number in numbers_of(test) {
                tests.entry(number).or_default().insert(test.to_owned());
            }
        }
    }
    tests
}

fn sources(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("the sources are there");
    let paths = entries.map(|entry| entry.expect("an entry of the directory").path());
    let found = paths.flat_map(|path| match path.is_dir() {
        true => sources(&path),
        false => vec![path],
    });
    found.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The number of the statement that this is the heading of.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("### ")?.split(' ').next()
}

fn headings(page: &str) -> Vec<String> {
    page.lines().filter_map(heading).map(str::to_owned).collect()
}

/// The page with the names of the tests at the end of each statement's text, before the empty line.
fn with_tests(page: &str, tests: &Tests) -> String {
    let (mut written, mut statement) = (String::new(), None);
    for line in page.lines().filter(|line| !line.starts_with("* `")).chain([""]) {
        statement = heading(line).or(statement);
        if line.is_empty() {
            let names = statement.take().and_then(|number| tests.get(number));
            names.into_iter().flatten().for_each(|name| written += &format!("* `{name}`\n"));
        }
        written += &format!("{line}\n");
    }
    written.trim_end().to_owned() + "\n"
}

/// The first line in which two texts differ, from 1, and the lines.
fn first_difference<'a>(one: &'a str, other: &'a str) -> Option<(usize, (&'a str, &'a str))> {
    let lines = |text: &'a str| text.lines().chain(std::iter::repeat("(nothing)"));
    let most = one.lines().count().max(other.lines().count());
    let mut pairs = lines(one).zip(lines(other)).take(most);
    pairs.position(|(is, should_be)| is != should_be).and_then(|line| {
        let pair = lines(one).zip(lines(other)).nth(line)?;
        Some((line + 1, pair))
    })
}
