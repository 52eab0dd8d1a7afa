//! Draws the time at which each server process is killed, and waits for it.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use fastrand::Rng;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{watcher::Watcher, writer::Notes};

/// During one of every `BLOATED_EVERY` server processes, a client makes the database file large and mostly
/// empty.
///
/// The following server processes compact the file during their start.
pub(crate) const BLOATED_EVERY: u64 = 100;

/// Number of server processes that are killed during their start, after the database file was made large. The
/// kills can interrupt the compaction of the file.
const BLOATED_STARTS: u64 = 8;

/// The time at which a server process is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// The process is killed this long after its start, whether or not its server listens.
    Starting(Duration),
    /// Killed after the server has acknowledged this number of writes.
    Acknowledged(usize),
    /// The process is killed this long after its server has started to listen.
    Within(Duration),
    /// Killed when a watcher has received a definition that the server has not completed.
    Unfinished,
    /// Killed after every writer has completed its writes, at which no write is pending.
    Calm,
}

impl Moment {
    /// Draws the moment for the server process with the number `life`.
    pub(crate) fn draw(rng: &mut Rng, life: u64) -> Self {
        let since_bloated = life % BLOATED_EVERY;
        if since_bloated == 1 {
            return Self::Calm;
        }
        if (2..2 + BLOATED_STARTS).contains(&since_bloated) {
            // Compacting takes most of a second.
            return Self::Starting(Duration::from_millis(rng.u64(2..800)));
        }
        match rng.usize(..10) {
            // The first start creates the directory and the file.
            _ if life == 0 => Self::Starting(Duration::from_millis(rng.u64(2..20))),
            0 | 1 => Self::Starting(Duration::from_micros(rng.u64(..25_000))),
            2..5 => Self::Acknowledged(rng.usize(..60)),
            5 => Self::Within(Duration::from_micros(rng.u64(..50_000))),
            6..9 => Self::Unfinished,
            _ => Self::Calm,
        }
    }

    /// Waits for the moment, while clients write and watch.
    ///
    /// `acknowledged` is the number of writes that the server process has acknowledged.
    ///
    /// # Errors
    /// Returns the error of a writer or a watcher. Also returns an error if one of them ends early.
    pub(crate) async fn reach(
        self,
        notes: &Notes,
        mut acknowledged: watch::Receiver<usize>,
        writers: &mut JoinSet<Result<()>>,
        watchers: &mut JoinSet<Result<Watcher>>,
    ) -> Result<()> {
        let mut redefined = notes.redefined.subscribe();
        let reached = async {
            match self {
                Self::Acknowledged(count) => {
                    let reached = acknowledged.wait_for(|acknowledged| *acknowledged >= count);
                    drop(reached.await?);
                }
                Self::Unfinished => drop(redefined.wait_for(|is_complete| !is_complete).await?),
                Self::Starting(period) | Self::Within(period) => sleep(period).await,
                Self::Calm => std::future::pending().await,
            }
            anyhow::Ok(())
        };
        let written = async {
            while let Some(written) = writers.join_next().await {
                written??;
                ensure!(
                    matches!(self, Self::Calm),
                    "a write received no response, although the server was not killed"
                );
            }
            anyhow::Ok(())
        };
        tokio::select! {
            biased;
            reached = reached => reached,
            written = written => written,
            Some(watched) = watchers.join_next() => {
                watched??;
                bail!("a watch ended, although the server was not killed");
            }
        }
    }
}
