//! Bugs on purpose: a runner that does not find them is worth nothing.

use std::fmt;

/// A bug, and with it the target that has to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A list's chunk that ends with a backslash loses it.
    EscapeLostAtCut,
    /// A number that goes on in a watch's next chunk is taken for garbage.
    NumberCutIsGarbage,
    /// A label that is missing does not satisfy `notin`.
    NotInWantsLabel,
    /// A continue token is followed through all namespaces.
    TokenLeavesNamespace,
    /// A null in a merge patch is stored.
    NullIsStored,
    /// An index keeps an object's first value.
    StaleIndexValue,
    /// A path with an encoded slash is answered with an internal error.
    SlashIsFatal,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::EscapeLostAtCut,
        Self::NumberCutIsGarbage,
        Self::NotInWantsLabel,
        Self::TokenLeavesNamespace,
        Self::NullIsStored,
        Self::StaleIndexValue,
        Self::SlashIsFatal,
    ];

    /// The name of the target that finds it.
    pub fn target(self) -> &'static str {
        match self {
            Self::EscapeLostAtCut => "list",
            Self::NumberCutIsGarbage => "watch",
            Self::NotInWantsLabel => "label_selector",
            Self::TokenLeavesNamespace => "continue_token",
            Self::NullIsStored => "patch",
            Self::StaleIndexValue => "store",
            Self::SlashIsFatal => "request",
        }
    }
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EscapeLostAtCut => "an escape lost where a list is cut",
            Self::NumberCutIsGarbage => "a number cut in a watch, taken for garbage",
            Self::NotInWantsLabel => "notin that wants a label",
            Self::TokenLeavesNamespace => "a continue token that leaves its namespace",
            Self::NullIsStored => "a null of a merge patch that is stored",
            Self::StaleIndexValue => "a stale index value",
            Self::SlashIsFatal => "an encoded slash that is fatal",
        })
    }
}
