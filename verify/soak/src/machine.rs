//! Reads figures of this process and of the machine from `/proc`.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::time::sleep;

/// Size of a page of `/proc/self/statm` in bytes.
const PAGE: u64 = 4096;

/// Returns the resident memory of this process in MiB.
///
/// # Errors
/// Returns an error if `/proc` can't be read.
pub(crate) fn resident_mib() -> Result<u64> {
    let text = fs::read_to_string("/proc/self/statm").context("Linux with /proc is required")?;
    let pages = text.split_whitespace().nth(1).context("statm has pages")?;
    Ok((pages.parse::<u64>()? * PAGE) >> 20)
}

/// Returns the number of open sockets of this process.
///
/// # Errors
/// Returns an error if `/proc` can't be read.
pub(crate) fn sockets() -> Result<usize> {
    let folder = fs::read_dir("/proc/self/fd")?;
    let targets = folder.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let is_socket = |target: &std::path::PathBuf| target.to_string_lossy().starts_with("socket:");
    Ok(targets.filter(is_socket).count())
}

/// Checks that this process may open `needed` files.
///
/// # Errors
/// Returns an error with the command that raises the limit.
pub(crate) fn check_open_files(needed: u64) -> Result<()> {
    let text = fs::read_to_string("/proc/self/limits")?;
    let line = text.lines().find(|line| line.starts_with("Max open files"));
    let limit = line.and_then(|line| line.split_whitespace().nth(3));
    let limit = limit.context("the limit of open files is missing")?;
    let enough = limit.parse().map_or(true, |limit: u64| limit >= needed);
    ensure!(
        enough,
        "this process may open {limit} files and needs {needed}; run `ulimit -n {needed}` first"
    );
    Ok(())
}

/// Measures for `period` which percentage of the machine's CPU time this process and `others` use.
///
/// # Errors
/// Returns an error if `/proc` can't be read, or if one of the processes has ended.
pub(crate) async fn used_percent(period: Duration, others: &[u32]) -> Result<u64> {
    let (used, total) = cpu_times(others)?;
    sleep(period).await;
    let (used_then, total_then) = cpu_times(others)?;
    Ok(100 * (used_then - used) / (total_then - total).max(1))
}

/// Returns two CPU times in ticks: the sum for this process and the processes `others`, and the time of the
/// whole machine since its start, including idle time.
fn cpu_times(others: &[u32]) -> Result<(u64, u64)> {
    let mut used = process_time("self")?;
    for process in others {
        used += process_time(&process.to_string())?;
    }
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().context("stat has a first line")?;
    let times = line.split_whitespace().skip(1).map(str::parse);
    let times: Vec<u64> = times.collect::<Result<_, _>>()?;
    // The times of guests, after the first eight, are also in the first two.
    Ok((used, times.iter().take(8).sum()))
}

/// Returns the CPU time of a process in ticks.
fn process_time(process: &str) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the process, in parentheses, can contain spaces.
    let (_, fields) = text.rsplit_once(')').context("stat has a name")?;
    let times = fields.split_whitespace().skip(11).take(2).map(str::parse);
    let times: Vec<u64> = times.collect::<Result<_, _>>()?;
    Ok(times.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_too_low_is_an_error() {
        assert!(check_open_files(1).is_ok());
        let error = check_open_files(u64::MAX).unwrap_err().to_string();
        assert!(error.contains("ulimit -n"), "{error}");
    }
}
