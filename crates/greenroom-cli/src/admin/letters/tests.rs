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

fn file(lines: &[String]) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("letters");
    fs::write(&path, lines.concat()).unwrap();
    (directory, path)
}

fn wanted(after: u64, limit: usize) -> Wanted {
    Wanted { after, limit, ..Wanted::default() }
}

fn listed(path: &Path, wanted: &Wanted) -> Value {
    list(path, wanted).unwrap().1
}

#[test]
fn a_letter_of_any_size_takes_a_line_of_the_list_and_says_how_large_it_is() {
    let data = format!("[\"{}\", 1]", "x".repeat(LARGE));
    let line = letter(&"e".repeat(LARGE), &data);
    let (_directory, path) = file(&[line.clone(), "\n".to_owned(), "unfinished".to_owned()]);
    let list = listed(&path, &wanted(0, 10));
    assert!(list.to_string().len() < 2_000);
    let first = &list["letters"][0];
    assert_eq!(first["bytes"], line.len());
    let error = first["error"].as_str().unwrap();
    assert!(error.ends_with(&format!("… ({LARGE} bytes)")), "{error}");
    assert_eq!(list["letters"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn a_page_ends_where_it_is_large_enough_and_the_next_one_goes_on_there() {
    let mut lines = String::new();
    for _ in 0..900 {
        writeln!(lines, "{}", letter(&"e".repeat(950), "1")).unwrap();
    }
    let (_directory, path) = file(&[lines]);
    let (mut seen, mut after) = (0, 0);
    loop {
        let list = listed(&path, &wanted(after, MOST));
        let letters = list["letters"].as_array().unwrap();
        assert!(list.to_string().len() < PAGE + 10_000);
        seen += letters.len();
        after = letters.last().unwrap()["number"].as_u64().unwrap();
        if list["next"].is_null() {
            break;
        }
        assert_eq!(list["next"], format!("/api/dead-letters?after={after}&limit=1000"));
    }
    assert_eq!((seen, after), (900, 900));
}

#[test]
fn o06_a_list_names_the_traces_of_letters_where_they_do() {
    let traced = letter("e", "1").replacen("{", r#"{"trace_id":"4bf9","#, 1);
    let (_directory, path) = file(&[traced, "\n".to_owned(), letter("e", "1") + "\n"]);
    let letters = listed(&path, &wanted(0, 10))["letters"].take();
    assert_eq!((&letters[0]["trace_id"], &letters[1]["trace_id"]), (&json!("4bf9"), &json!(null)));
}

#[test]
fn the_next_page_asks_for_the_same_letters() {
    let line = letter("e", "1") + "\n";
    let (_directory, path) = file(&[line.clone(), line]);
    let wanted = Wanted { pool: Some("p q".to_owned()), ..wanted(0, 1) };
    let next = listed(&path, &wanted)["next"].clone();
    assert_eq!(next, "/api/dead-letters?after=1&limit=1&pool=p+q");
}

#[tokio::test]
async fn a_single_letter_is_handed_out_as_it_was_written() {
    let large = letter("e", &format!("\"{}\"", "x".repeat(LARGE)));
    let (_directory, path) =
        file(&[large.clone(), "\nno letter\n".to_owned(), large.clone(), "\n{}".to_owned()]);
    for number in [1, 3] {
        let response = show(&path, number).unwrap();
        let length = response.headers()["content-length"].clone();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(length.to_str().unwrap(), body.len().to_string());
        assert_eq!(body, format!("{{\"number\":{number},\"letter\":{large}}}\n"));
    }
    for missing in [0, 2, 4, 5] {
        assert_eq!(show(&path, missing).unwrap_err().status, StatusCode::NOT_FOUND, "{missing}");
    }
}
