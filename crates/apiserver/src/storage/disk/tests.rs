//! Tests the creation, the content and the size of the database file.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;

use super::{ABOUT, COMPACT_BYTES_MIN, Disk, FILE, FORMAT_KEY, UNFINISHED, open_file, take};
use crate::kinds::Kinds;
use crate::resource::Registry;
use crate::storage::{Entry, Write};

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("kube-informer-disk-{process}-{name}"));
        drop(fs::remove_dir_all(&path));
        Scratch(path)
    }

    fn open(&self) -> Disk {
        Disk::open(&self.0, Box::new(open_file)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

fn registry() -> Registry {
    Registry::new(&Kinds::builtin())
}

fn write(key: &str, revision: u64, bytes: usize) -> Write {
    let registry = registry();
    let resource = registry.resource_named("pods").unwrap();
    let object = json!({"metadata": {"name": key}, "padding": "x".repeat(bytes)});
    let members = object.as_object().unwrap();
    Write {
        revision,
        collection: resource.collection,
        key: key.into(),
        new: Some(Arc::new(Entry::new(
            resource,
            key.into(),
            members,
            revision,
        ))),
    }
}

fn removal(key: &str, revision: u64) -> Write {
    Write {
        new: None,
        ..write(key, revision, 0)
    }
}

/// Returns the collection and key of each stored object, such as `pods ns/a`, and the store's revision.
fn found(scratch: &Scratch) -> (Vec<String>, u64) {
    let mut keys = Vec::new();
    let revision = scratch.open().load(|stored| {
        keys.push(format!("{} {}", stored.collection, stored.key));
        Ok(())
    });
    (keys, revision.unwrap())
}

#[test]
fn a_closed_directory_is_unlocked_while_a_copy_of_its_lock_file_is_open() {
    let scratch = Scratch::new("copied-lock");
    let lock = take(&scratch.0).unwrap();
    // A child process has such a copy between its fork and its exec.
    let _copy = lock.0.try_clone().unwrap();
    drop(lock);
    take(&scratch.0).unwrap();
}

#[test]
fn a_directory_after_an_interrupted_first_start_is_new() {
    let scratch = Scratch::new("unfinished");
    fs::create_dir_all(&scratch.0).unwrap();
    fs::write(scratch.0.join(UNFINISHED), "half a file").unwrap();
    let mut disk = scratch.open();
    assert!(disk.is_new());
    disk.found(&[write("ns/a", 7, 1)], 7, &registry()).unwrap();
    assert!(!disk.is_new() && !scratch.0.join(UNFINISHED).exists());
    drop(disk);
    assert_eq!(found(&scratch), (vec!["pods ns/a".to_owned()], 7));
}

#[test]
fn a_batch_stores_the_last_state_of_each_object() {
    let scratch = Scratch::new("batch");
    let mut disk = scratch.open();
    disk.found(&[], 1, &registry()).unwrap();
    let batch = [
        write("ns/a", 2, 1),
        write("ns/b", 3, 1),
        removal("ns/a", 4),
        removal("ns/never", 5),
    ];
    disk.write(&batch, 5, &registry()).unwrap();
    drop(disk);
    assert_eq!(found(&scratch), (vec!["pods ns/b".to_owned()], 5));
}

#[test]
fn a_mostly_empty_file_shrinks_on_open() {
    let scratch = Scratch::new("empty");
    let mut disk = scratch.open();
    disk.found(&[], 1, &registry()).unwrap();
    let size = || fs::metadata(scratch.0.join(FILE)).unwrap().len();
    let large = write("ns/0", 2, 2_000_000);
    let keys: Vec<String> = (0..10).map(|nth| format!("ns/{nth:02}")).collect();
    let written = |key: &String| Write {
        key: key.as_str().into(),
        ..large.clone()
    };
    for key in &keys {
        disk.write(&[written(key)], 2, &registry()).unwrap();
    }
    // The last object keeps the end of the file in use.
    let removals: Vec<Write> = keys[..9].iter().map(|key| removal(key, 3)).collect();
    disk.write(&removals, 3, &registry()).unwrap();
    drop(disk);
    assert!(size() > COMPACT_BYTES_MIN, "{}", size());
    assert_eq!(found(&scratch), (vec!["pods ns/09".to_owned()], 3));
    assert!(size() < COMPACT_BYTES_MIN, "{}", size());
    assert_eq!(found(&scratch).0.len(), 1, "and can be read again");
}

#[test]
fn an_inconsistent_object_is_reported_by_name() {
    let scratch = Scratch::new("contradiction");
    let mut disk = scratch.open();
    disk.found(&[write("ns/a", 1, 1)], 1, &registry()).unwrap();
    let error = disk.load(|_| Err("it has no metadata".to_owned()));
    let error = error.unwrap_err().to_string();
    assert!(
        error.ends_with("is damaged: pods ns/a: it has no metadata"),
        "{error}"
    );
}

#[test]
fn a_store_of_a_newer_version_is_reported() {
    let scratch = Scratch::new("newer");
    scratch.open().found(&[], 1, &registry()).unwrap();
    let database = open_file(&scratch.0.join(FILE), false).unwrap();
    let transaction = database.begin_write().unwrap();
    let mut about = transaction.open_table(ABOUT).unwrap();
    about.insert(FORMAT_KEY, 2).unwrap();
    drop(about);
    transaction.commit().unwrap();
    drop(database);
    let error = scratch.open().load(|_| Ok(())).unwrap_err().to_string();
    let says = "a newer version wrote it in format 2, and this version reads format 1";
    assert!(error.ends_with(says), "{error}");
}

#[cfg(unix)]
#[test]
fn new_files_are_private_and_existing_modes_are_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new("modes");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    scratch.open().found(&[], 1, &registry()).unwrap();
    assert_eq!(mode(&scratch.0), 0o700);
    for entry in fs::read_dir(&scratch.0).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o750)).unwrap();
    drop(scratch.open());
    assert_eq!(mode(&scratch.0), 0o750);
}
