//! [`LogLimiter`] limits the number of log lines with the same message per minute, and counts the lines above
//! the limit.
//!
//! The limiter does not write lines and does not read a clock. The caller writes the lines and passes the
//! current time.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum number of log lines with the same message per minute.
///
/// Also the maximum number of errors, such as decode errors, that are logged per LIST or streaming list.
pub(crate) const LINES_PER_WINDOW: usize = 10;

/// Length of the window to which [`LINES_PER_WINDOW`] applies.
const WINDOW: Duration = Duration::from_secs(60);

/// Limits the number of log lines with the same message to [`LINES_PER_WINDOW`] per minute. The minute starts
/// with its first line.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    /// Time of the first line in the current window, if any.
    began: Option<Instant>,
    lines: usize,
}

impl LogLimiter {
    /// Ends an expired window. Returns the number of its lines above the limit, or 0 if no window expired.
    ///
    /// Must be called before each call of [`line`](Self::line).
    pub(crate) fn left_out(&mut self, now: Instant) -> usize {
        let is_over = |began| now.duration_since(began) >= WINDOW;
        if !self.began.is_some_and(is_over) {
            return 0;
        }
        let Self { lines, .. } = std::mem::take(self);
        lines.saturating_sub(LINES_PER_WINDOW)
    }

    /// Counts one line, and returns whether the caller may write the line.
    pub(crate) fn line(&mut self, now: Instant) -> bool {
        self.began.get_or_insert(now);
        self.lines += 1;
        self.lines <= LINES_PER_WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_lines_a_minute_are_written_and_the_rest_are_counted_once() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut limiter = LogLimiter::default();
        assert_eq!(limiter.left_out(at(0)), 0);
        let written = (0..25).filter(|_| limiter.line(at(1))).count();
        assert_eq!(written, 10);
        assert_eq!(limiter.left_out(at(60)), 0, "it counts from the first line");
        assert!(!limiter.line(at(60)));
        assert_eq!(limiter.left_out(at(61)), 16);
        assert_eq!(limiter.left_out(at(61)), 0, "once");
        let written = (0..10).filter(|_| limiter.line(at(100))).count();
        assert_eq!(written, 10);
        assert_eq!(limiter.left_out(at(200)), 0, "none was left out");
        assert!(limiter.line(at(200)), "another window");
    }
}
