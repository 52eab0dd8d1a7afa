//! Planted bugs, each of which its target must find by mutations.

use harness::bugs;

bugs! {
    pub enum Bug {
        EscapeLostAtCut in "list": "an escape lost where a list is cut",
        NumberCutIsGarbage in "watch": "a number cut in a watch, taken for garbage",
        LongNumberHidesRest in "json": "bytes behind a long number that are accepted",
        NotInWantsLabel in "label_selector": "notin that wants a label",
        TokenLeavesNamespace in "continue_token": "a continue token that leaves its namespace",
        NullIsStored in "patch": "a null of a merge patch that is stored",
        StaleIndexValue in "store": "a stale index value",
        SlashIsFatal in "request": "an encoded slash that is fatal",
    }
}
