//! Whether a command writes or checks its files.

/// The use of generated file content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Replace the file.
    Write,
    /// Keep the file, and fail if it differs.
    Check,
}

impl Mode {
    /// Returns the mode for the value of the flag `--check`.
    pub(crate) fn of(check: bool) -> Mode {
        if check { Mode::Check } else { Mode::Write }
    }
}
