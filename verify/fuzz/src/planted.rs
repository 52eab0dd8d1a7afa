//! Planted bugs, each of which its target must find by mutations.

use harness::bugs;

bugs! {
    pub enum Bug {
        EscapeLostAtCut in "list": "an escape lost at the boundary of two pieces of a list",
        NumberCutIsGarbage in "watch": "a number rejected because a piece of a watch ends in it",
        LongNumberHidesRest in "json": "invalid bytes accepted after a long number",
        NotInWantsLabel in "label_selector": "notin that requires the label",
        TokenLeavesNamespace in "continue_token": "a continue token that is accepted in another namespace",
        NullIsStored in "patch": "a null of a merge patch that is stored",
        StaleIndexValue in "store": "a stale index value",
        SlashIsFatal in "request": "an encoded slash that ends the server with a panic",
    }
}
