//! Letters of any size, and pages of them.

use std::{fmt::Write, fs, path::PathBuf};

use axum::body::to_bytes;
use tempfile::TempDir;

use super::*;

/// Far more than a page holds.
const LARGE: usize = 8 << 20;

fn letter(error: &str, data: &str) -> String {
    format!(
        r#"{{"event":{{"id":"i","type":"t","data":{data}}},"reason":"failed","error":"{error}","attempts":1,"first_at":"","last_at":"","source":"in","position":1,"pool":"p q","handler":"h"}}"#
    )
}

/// One of that key, given up at that hour.
fn keyed(key: &str, hour: u32, error: &str) -> String {
    let more = format!(r#""key":"{key}","last_at":"2026-01-31T{hour:02}:00:00.000Z""#);
    letter(error, "1").replacen(r#""last_at":"""#, &more, 1) + "\n"
}

fn file(lines: &[String]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letters");
    fs::write(&path, lines.concat()).unwrap();
    (directory, path)
}

fn listed(path: &Path, query: &str) -> Value {
    list(path, &Wanted::parse(Some(query.to_owned())).unwrap()).unwrap().1
}

fn numbers(list: &Value) -> Vec<u64> {
    let letters = list["letters"].as_array().unwrap();
    letters.iter().map(|letter| letter["number"].as_u64().unwrap()).collect()
}

/// What stands behind the `?` of the next page.
fn next(list: &Value) -> Option<&str> {
    list["next"].as_str().map(|next| next.strip_prefix("/api/dead-letters?").unwrap())
}

#[test]
fn a_letter_of_any_size_takes_a_line_of_the_list_and_says_how_large_it_is() {
    let data = format!("[\"{}\", 1]", "x".repeat(LARGE));
    let line = letter(&"e".repeat(LARGE), &data);
    let (_directory, path) = file(&[line.clone(), "\n".to_owned(), "unfinished".to_owned()]);
    for order in ["oldest", "newest"] {
        let list = listed(&path, &format!("order={order}"));
        assert!(list.to_string().len() < 2_000);
        let first = &list["letters"][0];
        assert_eq!(first["bytes"], line.len());
        let error = first["error"].as_str().unwrap();
        assert!(error.ends_with(&format!("… ({LARGE} bytes)")), "{error}");
        assert_eq!(list["letters"].as_array().unwrap().len(), 1, "{list}");
    }
}

#[test]
fn a_page_ends_where_it_is_large_enough_and_the_next_one_goes_on_there() {
    let mut lines = String::new();
    for _ in 0..900 {
        writeln!(lines, "{}", letter(&"e".repeat(950), "1")).unwrap();
    }
    let length = lines.len() as u64 / 900;
    let (_directory, path) = file(&[lines]);
    let all: Vec<_> = (0..900).map(|line| line * length + 1).collect();
    for order in ["oldest", "newest"] {
        let (mut seen, mut query) = (Vec::new(), format!("limit=1000&order={order}"));
        loop {
            let list = listed(&path, &query);
            assert!(list.to_string().len() < PAGE + 10_000);
            seen.extend(numbers(&list));
            let Some(next) = next(&list) else { break };
            assert!(next.starts_with(&format!("after={}&limit=1000", seen.last().unwrap())));
            query = next.to_owned();
        }
        if order == "newest" {
            seen.reverse();
        }
        assert_eq!(seen, all, "{order}");
    }
}

#[test]
fn o06_a_list_names_the_traces_of_letters_where_they_do() {
    let traced = letter("e", "1").replacen("{", r#"{"trace_id":"4bf9","#, 1);
    let (_directory, path) = file(&[traced, "\n".to_owned(), letter("e", "1") + "\n"]);
    let letters = listed(&path, "")["letters"].take();
    assert_eq!((&letters[0]["trace_id"], &letters[1]["trace_id"]), (&json!("4bf9"), &json!(null)));
}

#[test]
fn the_next_page_asks_for_the_same_letters() {
    let line = letter("e", "1") + "\n";
    let (_directory, path) = file(&[line.clone(), line.clone()]);
    assert_eq!(next(&listed(&path, "limit=1&pool=p+q")), Some("after=1&limit=1&pool=p+q"));
    let behind = format!("after={}&limit=1&order=newest", line.len() + 1);
    assert_eq!(next(&listed(&path, "limit=1&order=newest")), Some(&*behind));
}

#[test]
fn d06_letters_of_a_file_are_found_by_what_a_store_finds_them_by() {
    let lines =
        [keyed("a", 1, "503 after 12 ms"), keyed("b", 2, "404"), keyed("a", 3, "503 after 9 ms")];
    let starts = [1, 1 + lines[0].len() as u64, 1 + (lines[0].len() + lines[1].len()) as u64];
    let (_directory, path) = file(&lines);
    let found = |query: &str| numbers(&listed(&path, query));
    assert_eq!(found(""), starts);
    assert_eq!(found("order=newest"), [starts[2], starts[1], starts[0]]);
    assert_eq!(found("key=a&order=newest"), [starts[2], starts[0]]);
    assert_eq!(found("event=i&handler=h&key=b"), [starts[1]]);
    assert_eq!(found("since=2026-01-31T02:00:00Z"), [starts[1], starts[2]]);
    assert_eq!(found(&format!("id={},{}&upto={}", starts[0], starts[2], starts[1])), [starts[0]]);
    assert!(found("event=other").is_empty() && found("input=other").is_empty());
    let groups = listed(&path, "by=group");
    let counted: Vec<_> = groups["groups"].as_array().unwrap().iter().collect();
    assert_eq!((counted.len(), &counted[0]["letters"]), (2, &json!(2)), "{groups}");
    let (first, last) = ("2026-01-31T01:00:00.000Z", "2026-01-31T03:00:00.000Z");
    assert_eq!((&counted[0]["first"], &counted[0]["last"]), (&json!(first), &json!(last)));
    assert_eq!(counted[0]["error"], "503 after 9 ms");
    let group = format!("group={}", counted[0]["name"].as_str().unwrap());
    assert_eq!(found(&group), [starts[0], starts[2]]);
    assert_eq!(
        (&groups["totals"]["letters"], &groups["searched_bytes"]),
        (&json!(3), &json!(null))
    );
}

#[test]
fn a_search_reads_a_part_of_a_large_file_and_says_where_it_ended() {
    let other = "x".repeat(LARGE) + "\n";
    let mut lines = vec![keyed("a", 1, "e")];
    lines.extend(std::iter::repeat_n(other, 6));
    lines.push(keyed("a", 2, "e"));
    let behind = 1 + lines[..7].concat().len() as u64;
    let (_directory, path) = file(&lines);
    for (order, numbers_of) in [("newest", [behind, 1]), ("oldest", [1, behind])] {
        let first = listed(&path, &format!("key=a&order={order}"));
        assert_eq!(numbers(&first), numbers_of[..1]);
        let searched = first["searched_bytes"].as_u64().unwrap();
        assert!((READ..READ + 2 * LARGE as u64).contains(&searched), "{searched}");
        let second = listed(&path, next(&first).unwrap());
        assert_eq!(numbers(&second), numbers_of[1..]);
        assert_eq!((&second["searched_bytes"], next(&second)), (&json!(null), None));
    }
    let groups = listed(&path, "by=reason");
    assert_eq!(groups["groups"][0]["letters"], 1, "the newest are counted: {groups}");
    assert!(groups["searched_bytes"].as_u64().unwrap() >= READ);
}

#[test]
fn lines_are_the_same_from_both_ends_wherever_a_piece_of_the_file_ends() {
    for length in [0, 1, 65_534, 65_535, 65_536, 65_537, 131_071, 131_072] {
        let lines = [letter("e", "1"), "\n\n".to_owned(), "x".repeat(length), "\n".to_owned()];
        let (_directory, path) = file(&[lines.concat(), lines.concat(), "unfinished".to_owned()]);
        let oldest = numbers(&listed(&path, ""));
        let mut newest = numbers(&listed(&path, "order=newest"));
        newest.reverse();
        assert_eq!((oldest.len(), &oldest), (6, &newest), "{length}");
    }
}

#[test]
fn letters_that_go_to_a_device_are_not_read_and_the_answer_says_why() {
    let refusal = list(Path::new("/dev/null"), &Wanted::parse(None).unwrap()).unwrap_err();
    assert_eq!(refusal.status, StatusCode::CONFLICT);
    assert!(refusal.what.contains("/dev/null, which is not a file"), "{}", refusal.what);
    assert_eq!(show(Path::new("/dev/null"), 1).unwrap_err().status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_single_letter_is_handed_out_as_it_was_written() {
    let large = letter("e", &format!("\"{}\"", "x".repeat(LARGE)));
    let (_directory, path) =
        file(&[large.clone(), "\nno letter\n".to_owned(), large.clone(), "\n{}".to_owned()]);
    let (second, length) = (large.len() as u64 + 2, large.len() as u64 + 1);
    let third = second + "no letter\n".len() as u64;
    for number in [1, third] {
        let response = show(&path, number).unwrap();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(body, format!("{{\"number\":{number},\"letter\":{large}}}\n"));
    }
    for missing in [0, 2, second, third + 1, third + length, u64::MAX] {
        assert_eq!(show(&path, missing).unwrap_err().status, StatusCode::NOT_FOUND, "{missing}");
    }
}
