//! What a command does with the files that it makes.

/// What to do with a file once it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Replace it.
    Write,
    /// Leave it alone, and fail if it differs.
    Check,
}

impl Mode {
    /// The mode of a command that has the flag `--check`.
    pub(crate) fn of(check: bool) -> Mode {
        if check { Mode::Check } else { Mode::Write }
    }
}
