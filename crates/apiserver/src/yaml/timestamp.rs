//! Recognizes the texts that `go.yaml.in/yaml/v2` considers to be times.
//!
//! Guarantees: the accepted texts are those that Go's `time.Parse` accepts for the formats in
//! `allowedTimestampFormats` in `resolve.go`.

/// The rest of a text.
struct Rest<'a>(&'a str);

/// Returns whether a text is a date, such as `2020-1-2`, or a date with a time, such as `2020-1-2T3:4:5Z`.
pub(super) fn is_timestamp(text: &str) -> bool {
    let mut rest = Rest(text);
    rest.date().is_some() && (rest.0.is_empty() || rest.clock().is_some())
}

impl<'a> Rest<'a> {
    fn date(&mut self) -> Option<()> {
        let (year, _) = self.0.split_at_checked(4)?;
        if !year.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.0 = &self.0[4..];
        let year: u16 = year.parse().ok()?;
        self.letter('-')?;
        let month = self.number(1..=12)?;
        self.letter('-')?;
        let is_leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        self.number(1..=days)?;
        Some(())
    }

    /// Parses `T` or `t` and a time with its zone, or spaces and a time without a zone.
    fn clock(&mut self) -> Option<()> {
        let has_zone = self.0.starts_with(['T', 't']);
        if has_zone {
            self.0 = &self.0[1..];
        } else {
            self.letter(' ')?;
            self.0 = self.0.trim_start_matches(' ');
        }
        self.number(0..=23)?;
        self.letter(':')?;
        self.number(0..=59)?;
        self.letter(':')?;
        self.number(0..=59)?;
        if let Some(fraction) = self.0.strip_prefix(['.', ',']) {
            let rest = fraction.trim_start_matches(|letter: char| letter.is_ascii_digit());
            if rest.len() < fraction.len() {
                self.0 = rest;
            }
        }
        match (has_zone, self.0) {
            (false, "") | (true, "Z") => Some(()),
            (true, zone) => is_offset(zone).then_some(()),
            (false, _) => None,
        }
    }

    fn letter(&mut self, letter: char) -> Option<()> {
        self.0 = self.0.strip_prefix(letter)?;
        Some(())
    }

    /// Parses a number of one or two digits.
    fn number(&mut self, range: std::ops::RangeInclusive<u8>) -> Option<u8> {
        let digits = self
            .0
            .bytes()
            .take(2)
            .take_while(u8::is_ascii_digit)
            .count();
        let (number, rest): (&'a str, &'a str) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok().filter(|number| range.contains(number))
    }
}

/// Returns whether a text is an offset, such as `+01:30`. As in Go, 24 hours and 60 minutes are valid.
fn is_offset(text: &str) -> bool {
    let number = |tens: u8, ones: u8| {
        let is_number = tens.is_ascii_digit() && ones.is_ascii_digit();
        is_number.then(|| (tens - b'0') * 10 + (ones - b'0'))
    };
    match text.as_bytes() {
        [b'+' | b'-', h1, h2, b':', m1, m2] => {
            number(*h1, *h2).is_some_and(|hours| hours <= 24)
                && number(*m1, *m2).is_some_and(|minutes| minutes <= 60)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results are those of `go.yaml.in/yaml/v2` 2.4.3.
    #[test]
    fn times_are_recognized_as_in_go() {
        for (text, expected) in [
            ("2020-01-02", true),
            ("2020-1-2", true),
            ("2020-02-30", false),
            ("2000-02-29", true),
            ("1900-02-29", false),
            ("2020-13-01", false),
            ("2020-01-02T03:04:05Z", true),
            ("2020-01-02t3:4:5.123456789012Z", true),
            ("2020-01-02T03:04:05", false),
            ("2020-01-02T03:04:05+24:60", true),
            ("2020-01-02T03:04:05+0130", false),
            ("2020-01-02   03:04:05,5", true),
            ("2020-01-02 03:04:05Z", false),
            ("2020-01-02 24:00:00", false),
            ("2020-01-02 03:04:05.", false),
            ("20200-01-02", false),
            ("2020", false),
        ] {
            assert_eq!(is_timestamp(text), expected, "{text}");
        }
    }
}
