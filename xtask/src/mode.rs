//! Defines [`Mode`], which selects whether an `xtask` command writes its files or only checks them.

/// Selects whether a command writes files, such as generated tables, or only checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Writes the files.
    Write,
    /// Writes no file, and fails if a file is out of date or another check fails.
    Check,
}

impl Mode {
    /// Returns [`Mode::Check`] if the flag `--check` is set, otherwise [`Mode::Write`].
    pub(crate) fn of(check: bool) -> Mode {
        if check { Mode::Check } else { Mode::Write }
    }
}
