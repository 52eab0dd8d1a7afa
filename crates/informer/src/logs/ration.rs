//! [`Ration`]: so many lines of one sort are written in a while, and the others are counted. Pure,
//! told the time.

use std::time::Duration;

use tokio::time::Instant;

/// So many lines of one sort are written, of a list or in a while; enough to see what they have in
/// common.
pub(crate) const LINES: usize = 10;

/// A minute: a log of a day of nothing else has 14,400 lines and 1,440 counts.
const WHILE: Duration = Duration::from_secs(60);

/// How many lines of one sort there have been in a while.
#[derive(Debug, Default)]
pub(crate) struct Ration {
    /// Since when; unset before the first line.
    since: Option<Instant>,
    lines: usize,
}

impl Ration {
    /// How many lines of a while that is over were not written. Each is counted once, and as nobody
    /// waits for the end of a while, not before this is asked again.
    pub(crate) fn left_out(&mut self, now: Instant) -> usize {
        let is_over = |since| now.duration_since(since) >= WHILE;
        if !self.since.is_some_and(is_over) {
            return 0;
        }
        let Self { lines, .. } = std::mem::take(self);
        lines.saturating_sub(LINES)
    }

    /// Whether one more line is to be written. A new while begins with it if there is none.
    pub(crate) fn line(&mut self, now: Instant) -> bool {
        self.since.get_or_insert(now);
        self.lines += 1;
        self.lines <= LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ten_lines_a_minute_are_written_and_the_others_counted_once_when_it_is_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut ration = Ration::default();
        assert_eq!(ration.left_out(at(0)), 0);
        let written = (0..25).filter(|_| ration.line(at(1))).count();
        assert_eq!(written, 10);
        assert_eq!(ration.left_out(at(60)), 0, "it counts from the first line");
        assert!(!ration.line(at(60)));
        assert_eq!(ration.left_out(at(61)), 16);
        assert_eq!(ration.left_out(at(61)), 0, "once");
        let written = (0..10).filter(|_| ration.line(at(100))).count();
        assert_eq!(written, 10);
        assert_eq!(ration.left_out(at(200)), 0, "none was left out");
        assert!(ration.line(at(200)), "another while");
    }
}
