//! [`LogLimiter`]: writes the first lines of one kind in a window of time and counts the others. Pure,
//! told the time.

use std::time::Duration;

use tokio::time::Instant;

/// So many lines of one kind are written per window, or of one list; enough to see what they have in common.
pub(crate) const LINES_PER_WINDOW: usize = 10;

/// A minute: a log of a day of nothing else has 14,400 lines and 1,440 counts.
const WINDOW: Duration = Duration::from_secs(60);

/// How many lines of one kind the current window has had.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    /// When the window began; unset before the first line.
    began: Option<Instant>,
    lines: usize,
}

impl LogLimiter {
    /// How many lines of a window that is over were not written. Each is counted once, and not before this is
    /// called again: no timer waits for the end of a window.
    pub(crate) fn left_out(&mut self, now: Instant) -> usize {
        let is_over = |began| now.duration_since(began) >= WINDOW;
        if !self.began.is_some_and(is_over) {
            return 0;
        }
        let Self { lines, .. } = std::mem::take(self);
        lines.saturating_sub(LINES_PER_WINDOW)
    }

    /// Whether one more line is to be written. It begins a window if there is none.
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
    async fn ten_lines_a_minute_are_written_and_the_others_counted_once_when_it_is_over() {
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
