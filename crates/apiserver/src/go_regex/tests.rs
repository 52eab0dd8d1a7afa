//! Compares patterns, limits, properties and case folding with recorded results of Go.

use serde_json::Value;

use super::{PATTERN_BYTES_MAX, Pattern};

/// Returns the error of a pattern.
fn error(pattern: &str) -> String {
    Pattern::compile(pattern).expect_err("the pattern is invalid")
}

fn is_match(pattern: &str, text: &str) -> bool {
    Pattern::compile(pattern)
        .expect("the pattern is valid")
        .is_match(text)
}

#[test]
fn patterns_match_and_fail_as_in_go() {
    let cases = include_str!("tests/go1.26.jsonl").lines();
    let mut count = 0;
    for line in cases {
        let (pattern, text, expected): (String, String, Value) =
            serde_json::from_str(line).unwrap();
        let actual = match Pattern::compile(&pattern) {
            Ok(pattern) => Value::from(pattern.is_match(&text)),
            Err(error) => Value::from(error),
        };
        assert_eq!(actual, expected, "pattern {pattern:?}, text {text:?}");
        count += 1;
    }
    assert!(count > 300, "{count} cases");
}

#[test]
fn nesting_is_limited_as_in_go() {
    let groups = |depth: usize| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(is_match(&groups(999), "a"));
    assert_eq!(
        error(&groups(1000)),
        format!(
            "error parsing regexp: expression nests too deeply: `{}`",
            groups(1000)
        )
    );
    let repeated = |depth: usize| format!("{}a{}", "(?:".repeat(depth), "|c)*".repeat(depth));
    assert!(is_match(&repeated(499), "ac"));
    assert!(error(&repeated(998)).contains("expression nests too deeply"));
    // Groups without a capture are no nodes.
    let plain = format!("{}a{}", "(?:".repeat(9000), ")".repeat(9000));
    assert!(is_match(&plain, "a"));
}

#[test]
fn deep_patterns_need_little_stack() {
    let pattern = format!("{}a{}", "(?:".repeat(499), "|c)*".repeat(499));
    let thread = std::thread::Builder::new().stack_size(256 << 10);
    let compiled = thread.spawn(move || is_match(&pattern, "ac"));
    assert!(compiled.unwrap().join().unwrap());
}

#[test]
fn size_is_limited_as_in_go() {
    let sized = |count: usize| format!("x{{1000}}x{{1000}}(?:{}){{1000}}", "ab".repeat(count));
    assert!(
        error(&sized(1677)).starts_with("error parsing regexp: expression too large: `x{1000}")
    );
    // Go accepts one `ab` less. Its program is larger than the automaton here may be.
    assert!(!error(&sized(1676)).starts_with("error parsing regexp"));
}

#[test]
fn larger_patterns_are_errors_of_this_server() {
    let long = "a".repeat(PATTERN_BYTES_MAX + 1);
    assert_eq!(
        error(&long),
        "pattern is too large for this server: more than 65536 bytes"
    );
    assert!(!is_match(&long[1..], "a"));
    assert_eq!(
        error(&r"\pL".repeat(1000)),
        "pattern is too large for this server: more than 524288 ranges in classes"
    );
    assert_eq!(
        error(r"\pL{1000}\pL{1000}\pL{1000}"),
        "pattern is too large for this server: an automaton of more than 25165824 bytes"
    );
    assert!(is_match(r"^[\p{L}\p{N}_\-. ]{1,1000}$", &"ß".repeat(1000)));
}

#[test]
fn classes_of_any_length_use_bounded_memory() {
    let letters = format!("^[{}]$", r"\pL".repeat(1_000));
    assert!(is_match(&letters, "é"));
    assert!(!is_match(&letters, "1"));
}

#[test]
fn texts_that_need_many_states_match() {
    // The states that are determined exceed the cache, so the automaton is simulated.
    let pattern = Pattern::compile("(?:é|[ab])*a(?:é|[ab]){300}c$").unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut text: String = (0..20_000)
        .map(|_| if random.bool() { 'a' } else { 'b' })
        .collect();
    assert!(!pattern.is_match(&text));
    text.push('a');
    text.push_str(&"é".repeat(300));
    text.push('c');
    assert!(pattern.is_match(&text));
}

/// Returns a number for the set of code points that match.
fn fingerprint(pattern: &str) -> u64 {
    let pattern = Pattern::compile(pattern).unwrap();
    let mut buffer = [0; 4];
    ('\0'..='\u{1ffff}').fold(0xcbf2_9ce4_8422_2325, |hash: u64, letter| {
        let bit = u64::from(pattern.is_match(letter.encode_utf8(&mut buffer)));
        (hash ^ bit).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn properties_and_folding_have_the_code_points_of_go() {
    // Computed with Go 1.26, over the code points up to U+1FFFF except surrogates.
    for (pattern, expected) in FINGERPRINTS {
        assert_eq!(fingerprint(pattern), expected, "{pattern}");
    }
}

const FINGERPRINTS: [(&str, u64); 13] = [
    (r"(?i)\p{Lu}", 0x6d30_4d39_9700_bab3),
    (r"\p{Mn}", 0x6983_33be_85c8_a9e0),
    (r"\p{Mc}", 0x086e_0201_2601_621d),
    (r"\pC", 0x1574_9dae_5ec5_70a3),
    (r"\p{Cn}", 0x2af3_f6c2_260e_1e91),
    (r"\pS", 0x235e_8aca_3832_00fb),
    (r"\p{Common}", 0x3967_3b20_d2c3_e019),
    (r"(?i)\p{Greek}", 0x06db_40b6_7ac3_30e5),
    (r"\p{Han}", 0xf747_5aee_1a40_e879),
    (r"(?i)[\x{80}-\x{1e942}]", 0x7a2d_5fce_0b20_2389),
    (r"(?i)[α-ωꭰ-ꮿ]", 0x4b1f_f37d_9aed_205c),
    (r"\pL", 0x5f29_c8f2_d79e_71b3),
    (r"\pN", 0x7fcb_9547_ec5f_19ca),
];

#[test]
fn matches_are_found_as_by_go() {
    // The results are those of `FindAllString` of Go.
    for (pattern, text, all) in [
        ("[0-9]+", "ab123c45", &["123", "45"][..]),
        ("a*", "baac", &["", "aa", ""]),
        ("a|ab", "abab", &["a", "a"]),
        ("ab|a", "abaab", &["ab", "a", "ab"]),
        ("a+?", "aaa", &["a", "a", "a"]),
        ("^a", "aa", &["a"]),
        ("é*", "éxé", &["é", "é"]),
        ("x*$", "axx", &["xx"]),
        (r"\b", "ab c", &["", "", "", ""]),
        ("", "ab", &["", "", ""]),
        ("z", "ab", &[]),
    ] {
        let pattern = Pattern::compile(pattern).unwrap();
        assert_eq!(pattern.find_all(text, 100), all, "{pattern:?} in {text}");
        assert_eq!(pattern.find(text), all.first().copied());
        assert_eq!(pattern.find_all(text, 1).len(), all.len().min(1));
    }
}
