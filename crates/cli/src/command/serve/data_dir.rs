//! Opens the directory of `serve --data-dir`, in which the embedded server stores its objects.
//!
//! Guarantees: the error for an unusable directory is one line that also states what the user can do next.
//! The directory is opened on a blocking thread, so the caller can handle signals while a large directory is
//! read.
//!
//! The module does not read or write the files itself. The embedded server reads and writes them.

use std::{io::ErrorKind, panic, path::PathBuf};

use anyhow::anyhow;
use kube_informer_apiserver::{Builder, OpenError, Server};

/// Starts the embedded server with a data directory, which is created if it does not exist.
///
/// # Cancel safety
/// The directory is opened on a blocking thread. If the future is dropped, this thread still opens the
/// directory, and the started server is then dropped.
pub(super) async fn open(builder: Builder, directory: PathBuf) -> anyhow::Result<Server> {
    let opening = tokio::task::spawn_blocking(move || {
        // Inconsistent data in a damaged file makes the database panic; the panic is returned as an error, so its
        // message is not printed.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let opened = builder.open(directory);
        panic::set_hook(hook);
        opened
    });
    let opened = opening.await.map_err(|error| {
        anyhow!("can't open the data directory: {error}; name another directory with --data-dir")
    })?;
    opened.map_err(|error| way_out(&error))
}

fn way_out(error: &OpenError) -> anyhow::Error {
    match error {
        OpenError::InUse { directory } => anyhow!(
            "can't open the data directory {}: another server uses it; stop that server, or name another directory with --data-dir",
            directory.display()
        ),
        OpenError::Io { directory, source } => {
            let shown = directory.display();
            match source.kind() {
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory => anyhow!(
                    "can't open the data directory {shown}: it is not a directory; name an existing or a new directory with --data-dir"
                ),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => anyhow!(
                    "can't write to the data directory {shown}: {source}; name a writable directory with --data-dir"
                ),
                _ => anyhow!(
                    "can't use the data directory {shown}: {source}; name another directory with --data-dir"
                ),
            }
        }
        OpenError::Damaged { .. } => {
            anyhow!(
                "can't open the data directory: {error}; restore the file from a copy, or name another directory with --data-dir"
            )
        }
        other => anyhow!(
            "can't open the data directory: {other}; name another directory with --data-dir"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use expect_test::expect;

    use super::*;

    #[test]
    fn any_problem_with_a_directory_is_one_line_with_the_next_step() {
        let directory = || PathBuf::from("data");
        let file = || PathBuf::from("data/objects.redb");
        let io = |kind: ErrorKind| OpenError::Io {
            directory: directory(),
            source: io::Error::from(kind),
        };
        let newer = "a newer version wrote it in format 2, and this version reads format 1";
        let lines = [
            OpenError::InUse {
                directory: directory(),
            },
            io(ErrorKind::AlreadyExists),
            io(ErrorKind::NotADirectory),
            io(ErrorKind::PermissionDenied),
            io(ErrorKind::ReadOnlyFilesystem),
            io(ErrorKind::StorageFull),
            OpenError::Foreign {
                file: file(),
                detail: newer.to_owned(),
            },
            OpenError::Damaged {
                file: file(),
                detail: "a sum is wrong".to_owned(),
            },
        ]
        .map(|error| {
            let line = format!("{:#}\n", way_out(&error));
            assert!(line.ends_with(" with --data-dir\n"), "{line}");
            line
        });
        expect![[r#"
            can't open the data directory data: another server uses it; stop that server, or name another directory with --data-dir
            can't open the data directory data: it is not a directory; name an existing or a new directory with --data-dir
            can't open the data directory data: it is not a directory; name an existing or a new directory with --data-dir
            can't write to the data directory data: permission denied; name a writable directory with --data-dir
            can't write to the data directory data: read-only filesystem or storage medium; name a writable directory with --data-dir
            can't use the data directory data: no storage space; name another directory with --data-dir
            can't open the data directory: data/objects.redb is not a store that this server can read: a newer version wrote it in format 2, and this version reads format 1; name another directory with --data-dir
            can't open the data directory: data/objects.redb is damaged: a sum is wrong; restore the file from a copy, or name another directory with --data-dir
        "#]].assert_eq(&lines.concat());
    }
}
