//! Tests that replacing a file leaves either the old or the new content, and that only the owner of the file
//! can read it.

use std::{
    io::{Read, Write},
    path::PathBuf,
};

use super::*;

/// Temporary directory of one test, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let process = std::process::id();
        let path = std::env::temp_dir().join(format!("kube-informer-warm-{process}-{name}"));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("store")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put(path: &Path, text: &str) -> Result<(), ReplaceError<io::Error>> {
    replace(path, |file| file.write_all(text.as_bytes()))
}

fn files(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(&folder.0).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn until_it_is_replaced_the_old_content_is_there() {
    let folder = Folder::new("old");
    let path = folder.file();
    put(&path, "one").unwrap();
    let written: Result<(), ReplaceError<io::Error>> = replace(&path, |file| {
        file.write_all(b"two")?;
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        Ok(())
    });
    written.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(files(&folder), ["store", "store.lock"]);
}

#[test]
fn who_is_reading_the_old_content_reads_it_to_its_end() {
    let folder = Folder::new("reading");
    let path = folder.file();
    put(&path, "one").unwrap();
    let (mut old, _) = open(&path).unwrap().unwrap();
    put(&path, "two").unwrap();
    let mut text = String::new();
    old.read_to_string(&mut text).unwrap();
    assert_eq!(text, "one");
}

#[test]
fn what_is_in_the_way_of_the_new_content_leaves_the_old() {
    let folder = Folder::new("in-the-way");
    let path = folder.file();
    put(&path, "one").unwrap();
    fs::create_dir(folder.0.join("store.tmp")).unwrap();
    assert!(matches!(put(&path, "two"), Err(ReplaceError::Io(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_the_unfinished_file_is_not_followed() {
    let folder = Folder::new("link");
    let path = folder.file();
    put(&path, "one").unwrap();
    let elsewhere = folder.0.join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, folder.0.join("store.tmp")).unwrap();
    put(&path, "two").unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
    assert!(!fs::symlink_metadata(&path).unwrap().is_symlink());
}

#[test]
fn a_name_alone_is_in_the_present_folder() {
    assert_eq!(folder_of(Path::new("store")), Path::new("."));
    assert_eq!(folder_of(Path::new("a/store")), Path::new("a"));
    assert_eq!(folder_of(Path::new("/store")), Path::new("/"));
}

#[test]
fn a_write_that_fails_leaves_the_old_content_and_nothing_else() {
    let folder = Folder::new("fails");
    let path = folder.file();
    put(&path, "one").unwrap();
    let refused: Result<(), _> = replace(&path, |file| {
        file.write_all(b"tw").unwrap();
        Err("full")
    });
    assert!(matches!(refused, Err(ReplaceError::Write("full"))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    assert_eq!(files(&folder), ["store", "store.lock"]);
}

#[test]
fn what_a_crash_before_the_rename_left_is_not_read_and_is_cleared_away() {
    let folder = Folder::new("crash");
    let path = folder.file();
    put(&path, "one").unwrap();
    fs::write(folder.0.join("store.tmp"), "tw").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    put(&path, "three").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "three");
    assert_eq!(files(&folder), ["store", "store.lock"]);
}

#[test]
fn two_writers_do_not_write_at_the_same_time() {
    let folder = Folder::new("two");
    let path = folder.file();
    let written: Result<(), ReplaceError<io::Error>> = replace(&path, |file| {
        assert!(matches!(put(&path, "other"), Err(ReplaceError::Busy)));
        file.write_all(b"mine")
    });
    written.unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_it_while_it_is_written_too() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("modes");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let written: Result<(), ReplaceError<io::Error>> = replace(&folder.file(), |_| {
        assert_eq!(mode(&folder.0.join("store.tmp")), 0o600);
        assert_eq!(mode(&folder.0), 0o700);
        Ok(())
    });
    written.unwrap();
    for name in files(&folder) {
        assert_eq!(mode(&folder.0.join(&name)), 0o600, "{name}");
    }
}

#[test]
fn only_files_are_opened() {
    let folder = Folder::new("open");
    assert!(open(&folder.file()).unwrap().is_none());
    fs::create_dir_all(folder.file()).unwrap();
    assert!(open(&folder.file()).is_err());
}

#[test]
fn a_copy_of_the_lock_file_does_not_keep_the_lock() {
    let folder = Folder::new("copied-lock");
    let path = folder.file();
    put(&path, "one").unwrap();
    let lock = File::open(folder.0.join("store.lock")).unwrap();
    lock.try_lock().unwrap();
    // As in a process between its fork and its exec.
    let _copy = lock.try_clone().unwrap();
    drop(Lock(lock));
    put(&path, "two").unwrap();
}
