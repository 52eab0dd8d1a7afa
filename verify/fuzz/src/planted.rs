//! Planted bugs: deliberate faults that prove that the fuzz targets find faults. Each bug names the fuzz
//! target that must find the bug by mutating the corpus.

use harness::bugs;

bugs! {
    pub enum Bug {
        EscapeLostAtCut in "list": "an escape lost at the boundary of two pieces of a list",
        NumberCutIsGarbage in "watch": "a number rejected because a piece of a watch ends in it",
        LongNumberHidesRest in "json": "bytes after a long number that are ignored",
        NotInWantsLabel in "label_selector": "notin that requires the label",
        TokenLeavesNamespace in "continue_token": "a continue token that lists other namespaces",
        NullIsStored in "patch": "a null of a merge patch that is stored",
        UnknownFieldEndsMessage in "message": "an unknown field that ends a message",
        StaleIndexValue in "store": "a stale index value",
        UnknownFieldIsShown in "custom": "an unknown field in the response to a create",
        UnknownNameIsFatal in "rule": "an unknown name in a rule that causes an internal error",
        NoIsUnquoted in "yaml": "a text that is written as a boolean",
        SlashIsFatal in "request": "an encoded slash that causes an internal error",
    }
}
