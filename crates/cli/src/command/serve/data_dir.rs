//! `--data-dir`: acknowledged writes survive a restart.
//!
//! Guarantees: any problem with the directory is reported in one line with the next step; a signal is handled while a
//! large directory is read.

use std::{io::ErrorKind, panic, path::PathBuf};

use anyhow::{Context as _, anyhow};
use kube_informer_apiserver::{Builder, OpenError, Server};

/// Opens a directory, and creates it if it does not exist.
///
/// # Errors
/// Returns an error if the directory can't be used.
///
/// # Cancel safety
/// If the future is dropped, the directory is still opened, and then released.
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
    let opened = opening.await.context("the data directory was not opened")?;
    opened.map_err(|error| way_out(&error))
}

fn way_out(error: &OpenError) -> anyhow::Error {
    match error {
        OpenError::InUse { directory } => anyhow!(
            "{} is in use by another server: end that one, or name another directory with --data-dir",
            directory.display()
        ),
        OpenError::Io { directory, source } => {
            let shown = directory.display();
            match source.kind() {
                ErrorKind::AlreadyExists | ErrorKind::NotADirectory => anyhow!(
                    "{shown} is not a directory: name one, or a place for a new one, with --data-dir"
                ),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => anyhow!(
                    "{shown} can't be written to ({source}): name a directory of yours with --data-dir"
                ),
                _ => anyhow!(
                    "can't keep objects in {shown} ({source}): name another directory with --data-dir"
                ),
            }
        }
        OpenError::Damaged { .. } => {
            anyhow!("{error}; put back a copy of it, or name another directory with --data-dir")
        }
        other => anyhow!("{other}; name another directory with --data-dir"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn any_problem_with_a_directory_is_one_line_with_the_next_step() {
        let directory = || PathBuf::from("data");
        let file = || PathBuf::from("data/objects.redb");
        let io = |kind: ErrorKind| OpenError::Io {
            directory: directory(),
            source: io::Error::from(kind),
        };
        let newer = "it was written by a newer version, in format 2, and this one knows 1";
        let rows = [
            (
                OpenError::InUse {
                    directory: directory(),
                },
                "data is in use by another server",
            ),
            (io(ErrorKind::AlreadyExists), "data is not a directory"),
            (io(ErrorKind::NotADirectory), "data is not a directory"),
            (io(ErrorKind::PermissionDenied), "data can't be written to"),
            (io(ErrorKind::ReadOnlyFilesystem), "can't be written to"),
            (io(ErrorKind::StorageFull), "can't keep objects in data"),
            (
                OpenError::Foreign {
                    file: file(),
                    detail: newer.to_owned(),
                },
                newer,
            ),
            (
                OpenError::Damaged {
                    file: file(),
                    detail: "a sum is wrong".to_owned(),
                },
                "data/objects.redb is damaged: a sum is wrong; put back a copy",
            ),
        ];
        for (error, says) in rows {
            let said = format!("{:#}", way_out(&error));
            assert!(said.contains(says), "{said}");
            assert!(said.ends_with("with --data-dir"), "{said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
