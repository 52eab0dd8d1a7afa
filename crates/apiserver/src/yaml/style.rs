//! Selects the style of a text in YAML, as `go.yaml.in/yaml/v2` does in `yaml_emitter_analyze_scalar`.

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// A block of lines after `|`.
    Literal,
}

/// The properties of a text that determine its style.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    pub(super) line_breaks: bool,
    has_line_feed: bool,
    /// The simplest style for the text if it has no line feed and stays a text without quotes.
    simplest: Style,
    allows_literal: bool,
}

/// What a pass over a text has found.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent property of the text"
)]
#[derive(Clone, Copy, Default)]
struct Found {
    indicators: bool,
    special_characters: bool,
    break_space: bool,
    space_break: bool,
    line_breaks: bool,
}

impl Traits {
    pub(super) fn of(text: &str) -> Traits {
        if text.is_empty() {
            return Traits {
                line_breaks: false,
                has_line_feed: false,
                simplest: Style::Plain,
                allows_literal: false,
            };
        }
        let found = Found::of(text);
        let blank = |letter: char| letter == ' ' || Traits::is_break(letter);
        let is_padded = text.starts_with(blank) || text.ends_with(blank);
        let is_special = found.space_break || found.special_characters;
        let simplest = if is_special || found.break_space {
            Style::DoubleQuoted
        } else if is_padded || found.line_breaks || found.indicators {
            Style::SingleQuoted
        } else {
            Style::Plain
        };
        Traits {
            line_breaks: found.line_breaks,
            has_line_feed: text.contains('\n'),
            simplest,
            allows_literal: !(text.ends_with(' ') || is_special),
        }
    }

    /// Returns the style of a key that is written without `?`.
    pub(super) fn style_of_key(self, can_be_plain: bool) -> Style {
        if self.line_breaks || !can_be_plain {
            Style::DoubleQuoted
        } else {
            self.simplest
        }
    }

    /// Returns the style of a text. `can_be_plain` is whether the text without quotes is still a text.
    pub(super) fn style(self, can_be_plain: bool) -> Style {
        match (self.has_line_feed, self.allows_literal, can_be_plain) {
            (true, true, _) => Style::Literal,
            (true, false, _) | (false, _, false) => Style::DoubleQuoted,
            (false, _, true) => self.simplest,
        }
    }

    pub(super) fn is_break(letter: char) -> bool {
        matches!(letter, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
    }

    /// Returns whether a character is escaped in double quotes.
    pub(super) fn is_escaped(letter: char) -> bool {
        !is_printable(letter) || Traits::is_break(letter) || matches!(letter, '"' | '\\')
    }
}

impl Found {
    fn of(text: &str) -> Found {
        let mut found = Found {
            indicators: text.starts_with("---") || text.starts_with("..."),
            ..Found::default()
        };
        let mut before = None;
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let next = letters.peek();
            let is_last_of_word = next.is_none_or(|next| matches!(next, ' ' | '\t'));
            found.indicators |= match (letter, before) {
                (':', _) | ('?' | '-', None) => is_last_of_word,
                ('#', Some(before)) => {
                    matches!(before, '\0' | ' ' | '\t') || Traits::is_break(before)
                }
                (letter, None) => "#,[]{}&*!|>'\"%@`".contains(letter),
                _ => false,
            };
            found.special_characters |= !is_printable(letter);
            let before_is_break = before.is_some_and(Traits::is_break);
            found.break_space |= letter == ' ' && before_is_break;
            found.space_break |= before == Some(' ') && Traits::is_break(letter);
            found.line_breaks |= Traits::is_break(letter);
            before = Some(letter);
        }
        found
    }
}

/// Returns the result of Go's `is_printable`, where emoji are not printable.
fn is_printable(letter: char) -> bool {
    matches!(
        letter,
        '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
    )
}
