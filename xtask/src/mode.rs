//! Defines [`Mode`], which selects whether an `xtask` command writes its files or only checks them.

/// Selects whether a command writes files, such as generated tables, or only checks them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Writes the files.
    Write,
    /// Writes no file. The command fails if a file on disk is out of date, or if another check of the command
    /// fails.
    Check,
}

impl Mode {
    /// Returns [`Mode::Check`] if the flag `--check` is set, otherwise [`Mode::Write`].
    pub(crate) fn of(check: bool) -> Mode {
        if check { Mode::Check } else { Mode::Write }
    }
}
