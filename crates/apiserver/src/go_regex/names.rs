//! The names of general categories and scripts that Go 1.26 accepts in `\p{…}`, in its canonical form.

/// General categories: the keys of `unicode.Categories` that are canonical.
#[rustfmt::skip]
pub(super) const CATEGORIES: [&str; 37] = [
    "C", "Cc", "Cf", "Cn", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn",
    "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm",
    "So", "Z", "Zl", "Zp", "Zs",
];

/// Other names of general categories: `unicode.CategoryAliases` with canonical keys.
#[rustfmt::skip]
pub(super) const ALIASES: [(&str, &str); 42] = [
    ("Casedletter", "LC"), ("Closepunctuation", "Pe"), ("Cntrl", "Cc"), ("Combiningmark", "M"),
    ("Connectorpunctuation", "Pc"), ("Control", "Cc"), ("Currencysymbol", "Sc"),
    ("Dashpunctuation", "Pd"), ("Decimalnumber", "Nd"), ("Digit", "Nd"), ("Enclosingmark", "Me"),
    ("Finalpunctuation", "Pf"), ("Format", "Cf"), ("Initialpunctuation", "Pi"), ("Letter", "L"),
    ("Letternumber", "Nl"), ("Lineseparator", "Zl"), ("Lowercaseletter", "Ll"), ("Mark", "M"),
    ("Mathsymbol", "Sm"), ("Modifierletter", "Lm"), ("Modifiersymbol", "Sk"),
    ("Nonspacingmark", "Mn"), ("Number", "N"), ("Openpunctuation", "Ps"), ("Other", "C"),
    ("Otherletter", "Lo"), ("Othernumber", "No"), ("Otherpunctuation", "Po"), ("Othersymbol", "So"),
    ("Paragraphseparator", "Zp"), ("Privateuse", "Co"), ("Punct", "P"), ("Punctuation", "P"),
    ("Separator", "Z"), ("Spaceseparator", "Zs"), ("Spacingmark", "Mc"), ("Surrogate", "Cs"),
    ("Symbol", "S"), ("Titlecaseletter", "Lt"), ("Unassigned", "Cn"), ("Uppercaseletter", "Lu"),
];

/// Scripts: the keys of `unicode.Scripts` that are canonical.
#[rustfmt::skip]
pub(super) const SCRIPTS: [&str; 117] = [
    "Adlam", "Ahom", "Arabic", "Armenian", "Avestan", "Balinese", "Bamum", "Batak", "Bengali",
    "Bhaiksuki", "Bopomofo", "Brahmi", "Braille", "Buginese", "Buhid", "Carian", "Chakma", "Cham",
    "Cherokee", "Chorasmian", "Common", "Coptic", "Cuneiform", "Cypriot", "Cyrillic", "Deseret",
    "Devanagari", "Dogra", "Duployan", "Elbasan", "Elymaic", "Ethiopic", "Georgian", "Glagolitic",
    "Gothic", "Grantha", "Greek", "Gujarati", "Gurmukhi", "Han", "Hangul", "Hanunoo", "Hatran",
    "Hebrew", "Hiragana", "Inherited", "Javanese", "Kaithi", "Kannada", "Katakana", "Kawi",
    "Kharoshthi", "Khmer", "Khojki", "Khudawadi", "Lao", "Latin", "Lepcha", "Limbu", "Lisu",
    "Lycian", "Lydian", "Mahajani", "Makasar", "Malayalam", "Mandaic", "Manichaean", "Marchen",
    "Medefaidrin", "Miao", "Modi", "Mongolian", "Mro", "Multani", "Myanmar", "Nabataean",
    "Nandinagari", "Newa", "Nko", "Nushu", "Ogham", "Oriya", "Osage", "Osmanya", "Palmyrene",
    "Phoenician", "Rejang", "Runic", "Samaritan", "Saurashtra", "Sharada", "Shavian", "Siddham",
    "Sinhala", "Sogdian", "Soyombo", "Sundanese", "Syriac", "Tagalog", "Tagbanwa", "Takri", "Tamil",
    "Tangsa", "Tangut", "Telugu", "Thaana", "Thai", "Tibetan", "Tifinagh", "Tirhuta", "Toto",
    "Ugaritic", "Vai", "Vithkuqi", "Wancho", "Yezidi", "Yi",
];
