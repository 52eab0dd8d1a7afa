//! Checks dates and times.

use jiff::civil::Date;

/// Returns whether `text` is a date such as `2006-01-02`.
///
/// The calendar is the Gregorian one for all years from 0000 to 9999.
pub(super) fn is_date(text: &str) -> bool {
    let parts = text.as_bytes();
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = parts else {
        return false;
    };
    let year = two_digits(y1, y2).zip(two_digits(y3, y4));
    let year = year.map(|(century, year)| i16::from(century) * 100 + i16::from(year));
    let date = year.zip(two_digits(m1, m2).zip(two_digits(d1, d2)));
    date.is_some_and(|(year, (month, day))| Date::new(year, month, day).is_ok())
}

/// Returns the number that two ASCII digits form.
fn two_digits(tens: u8, ones: u8) -> Option<i8> {
    let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
    digits.then(|| i8::try_from((tens - b'0') * 10 + (ones - b'0')).ok())?
}

/// Returns whether `text` is a date and time such as `2006-01-02T15:04:05.999Z`.
///
/// Differences from RFC 3339, which kube-apiserver has too:
/// - A second `T` ends the text. Anything can follow.
/// - The fraction of a second can start with any character except a newline, and has at least one digit.
/// - The offset from UTC is not limited to 24 hours. There is no leap second.
pub(super) fn is_date_time(text: &str) -> bool {
    let mut parts = text.split(['t', 'T']);
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some((clock, rest)) = time.split_at_checked(8) else {
        return false;
    };
    is_date(date) && is_clock(clock) && (is_offset(rest) || is_fraction_and_offset(rest))
}

/// Returns whether `text` is a time of day such as `15:04:05`.
fn is_clock(text: &str) -> bool {
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = text.as_bytes() else {
        return false;
    };
    let below = |tens, ones, end| two_digits(tens, ones).is_some_and(|number| number < end);
    below(h1, h2, 24) && below(m1, m2, 60) && below(s1, s2, 60)
}

fn is_fraction_and_offset(text: &str) -> bool {
    let mut characters = text.chars();
    let point = characters.next();
    let digits = characters.as_str();
    let offset = digits.trim_start_matches(|digit: char| digit.is_ascii_digit());
    point.is_some_and(|point| point != '\n') && offset.len() < digits.len() && is_offset(offset)
}

/// Returns whether `text` is `Z` or an offset from UTC such as `+07:00`.
fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'z' | b'Z'] => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].into_iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
