use super::*;

const TWO: Schema = Schema {
    application_id: 0x4752_5431,
    what: "tests",
    file: "tests.db",
    steps: &["CREATE TABLE a (x INTEGER)", "ALTER TABLE a ADD COLUMN y INTEGER DEFAULT 7"],
    views: &[],
};

const ONE: Schema = Schema { steps: &[TWO.steps[0]], ..TWO };

fn reason(opened: Result<Owned, NotOpened>) -> NotOpened {
    opened.map(|_| ()).unwrap_err()
}

#[test]
fn d06_an_older_store_is_migrated_with_what_is_in_it_and_a_newer_one_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let old = own(&path, &ONE).unwrap();
    old.connection.execute("INSERT INTO a VALUES (1)", []).unwrap();
    drop(old);
    let error = read(&path, &TWO).map(|_| ()).unwrap_err();
    assert!(error.reason.contains("an earlier version"), "{error}");
    let new = own(&path, &TWO).unwrap();
    let found = new.connection.query_row("SELECT x, y FROM a", [], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?))
    });
    assert_eq!(found.unwrap(), (1, 7));
    drop(new);
    let error = reason(own(&path, &ONE));
    assert!(error.reason.contains("a later version") && !error.is_held, "{error}");
    assert!(read(&path, &TWO).is_ok());
}

#[test]
fn d06_a_second_owner_is_refused_and_readers_are_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let first = own(&path, &TWO).unwrap();
    let error = reason(own(&path, &TWO));
    assert!(error.is_held && error.reason.contains("this very process"), "{error}");
    assert!(read(&path, &TWO).is_ok());
    drop(first);
    assert!(own(&path, &TWO).is_ok());
}

#[test]
fn d06_nobody_else_may_read_a_store() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let opened = own(&path, &TWO).unwrap();
    opened.connection.execute("INSERT INTO a VALUES (1, 2)", []).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    let files = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.collect();
    assert!(files.len() >= 3, "{files:?}");
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{file:?}"));
    drop(opened);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    drop(own(&path, &TWO).unwrap());
    assert_eq!(mode(&path), 0o700, "one that was opened to others is closed again");
}

#[test]
fn d06_what_is_no_store_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("precious"), "x").unwrap();
    let error = reason(own(directory.path(), &TWO));
    assert!(error.reason.contains("something else"), "{error}");
    let error = reason(own(&directory.path().join("precious"), &TWO));
    assert!(error.reason.contains("this is a file"), "{error}");
    let foreign = directory.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(TWO.path(&foreign), "no database at all, and long enough to be looked at").unwrap();
    let error = reason(own(&foreign, &TWO));
    assert!(error.reason.contains("no SQLite database"), "{error}");
    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    let database = Connection::open(TWO.path(&other)).unwrap();
    database.execute_batch("CREATE TABLE theirs (x)").unwrap();
    drop(database);
    let error = reason(own(&other, &TWO));
    assert!(error.reason.contains("is no store of tests"), "{error}");
    assert_eq!(fs::read(directory.path().join("precious")).unwrap(), b"x");
}

#[test]
fn d06_pages_that_are_free_are_given_back_many_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let tables = own(&path, &TWO).unwrap().connection;
    let fill = "INSERT INTO a VALUES (zeroblob(4000000), 1); DELETE FROM a";
    tables.execute_batch(fill).unwrap();
    let size = || fs::metadata(TWO.path(&path)).unwrap().len();
    checkpoint(&tables).unwrap();
    let before = size();
    vacuum(&tables).unwrap();
    checkpoint(&tables).unwrap();
    // And a page of those that say what is where.
    assert!((500..510).contains(&((before - size()) / 4_096)), "{before} {}", size());
}

#[test]
fn d06_a_store_that_is_opened_again_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(own(&path, &TWO).unwrap());
    let opened = own(&path, &TWO).unwrap();
    assert_eq!(fs::metadata(path.join("tests.db-wal")).map_or(0, |journal| journal.len()), 0);
    drop(opened);
}
