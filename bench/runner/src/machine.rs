//! Reads the hardware, the software environment and the available memory of the machine that runs the
//! measurements.

use std::{fmt::Write as _, fs, thread};

use anyhow::{Context as _, Result};

/// Returns a Markdown list that describes the machine and the compared software.
///
/// An element of `versions` is a name and a version.
///
/// # Errors
/// Returns an error if Linux's `/proc` is not available.
pub(crate) fn settings(versions: &[(String, String)]) -> Result<String> {
    let cpu = read("/proc/cpuinfo")?;
    let kernel = read("/proc/sys/kernel/osrelease")?;
    let load = read("/proc/loadavg")?;
    let memory = field(&read("/proc/meminfo")?, "MemTotal").unwrap_or_default();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut list = String::new();
    let mut say = |name: &str, what: &str| {
        // Writing to a `String` can't fail.
        let _ = writeln!(list, "- {name}: {what}");
    };
    let model = field(&cpu, "model name").unwrap_or_else(|| "unknown".to_owned());
    say(
        "processor",
        &format!("{model}, {processors} of it; the source runs on the same"),
    );
    say("memory", &memory);
    say("kernel", kernel.trim());
    say("load when it began (1, 5, 15 minutes)", load_of(&load));
    say(
        "Rust programs",
        "profile `release` (no LTO), jemalloc except where it says the system's allocator, Tokio with a worker per processor",
    );
    for name in ["GOGC", "GOMAXPROCS", "GOMEMLIMIT"] {
        let value = environment(name).unwrap_or_else(|| "not set".to_owned());
        say(name, &value);
    }
    for (name, version) in versions {
        say(name, version);
    }
    Ok(list)
}

/// Returns the kernel's `MemAvailable` in KiB.
///
/// # Errors
/// Returns an error if Linux's `/proc` is not available.
pub(crate) fn available_kib() -> Result<f64> {
    let memory = read("/proc/meminfo")?;
    let available = field(&memory, "MemAvailable").context("/proc/meminfo has no MemAvailable")?;
    kib(&available).with_context(|| format!("{available} is not an amount of memory in kB"))
}

fn kib(amount: &str) -> Option<f64> {
    amount.strip_suffix(" kB")?.parse().ok()
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("can't read {path}"))
}

/// Returns the value of the first line `name: value` in `text`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (before, value) = line.split_once(':')?;
        (before.trim() == name).then(|| value.trim().to_owned())
    })
}

fn load_of(load: &str) -> &str {
    let end = load
        .match_indices(' ')
        .nth(2)
        .map_or(load.len(), |(at, _)| at);
    &load[..end]
}

#[expect(
    clippy::disallowed_methods,
    reason = "the runner is a command of the project, as xtask is"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let cpu = "model\t\t: 85\nmodel name\t: Some CPU @ 2.60GHz\nmodel name\t: Other\n";
        assert_eq!(
            field(cpu, "model name").as_deref(),
            Some("Some CPU @ 2.60GHz")
        );
        assert_eq!(field(cpu, "name"), None);
    }

    #[test]
    fn amounts_of_memory_are_in_kib() {
        assert_eq!(kib("1024 kB"), Some(1024.0));
        assert_eq!(kib("1024 MB"), None);
    }

    #[test]
    fn the_load_is_the_three_averages() {
        assert_eq!(load_of("0.50 1.25 2.00 3/456 789\n"), "0.50 1.25 2.00");
        assert_eq!(load_of("0.50"), "0.50");
    }
}
