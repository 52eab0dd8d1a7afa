//! A checked expression in the form that is evaluated.

/// The index of a node in [`Expression::nodes`].
pub(super) type Id = u32;

/// The number of a local variable. Variables of inner scopes have higher numbers.
pub(super) type Slot = u32;

/// A checked expression.
///
/// The nodes of the operands of a node come before the node.
#[derive(Debug, Default)]
pub(super) struct Expression {
    pub(super) nodes: Vec<Node>,
    pub(super) root: Id,
    /// Count of variables that exist at the same time.
    pub(super) slots: Slot,
    pub(super) uses_old_self: bool,
}

/// A node, and whether its value is known before the evaluation, which then has no cost.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) is_constant: bool,
}

/// The operation of a node.
#[derive(Debug)]
pub(super) enum Kind {
    Literal(Literal),
    SelfValue,
    OldSelf,
    Local(Slot),
    /// A field of an object, or an entry of a map, by its name.
    Select(Access),
    /// An item of a list, or an entry of a map, by a computed key.
    Index(Access, Id),
    /// Whether a field or entry is present.
    Has(Id, String),
    And(Vec<Id>),
    Or(Vec<Id>),
    Conditional([Id; 3]),
    Call(Call),
    List(Vec<(Id, bool)>),
    Map(Vec<(Id, Id, bool)>),
    Fold(Box<Fold>),
    /// Evaluates the second node with a variable. The first node is evaluated when the variable is used.
    Bind(Slot, Id, Id),
}

/// The operand of a select or index operation, and whether absence is an empty optional value.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) operand: Id,
    pub(super) name: String,
    pub(super) is_optional: bool,
}

#[derive(Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
    Type(&'static str),
}

/// The call of a function or operator.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: &'static str,
    /// The overload, if the types of the arguments leave only one.
    pub(super) overload: Option<&'static str>,
    /// The target of a member function is the first argument.
    pub(super) arguments: Vec<Id>,
}

/// The evaluation of nodes for each item of a list, or each entry of a map.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) kind: FoldKind,
    pub(super) range: Id,
    /// The variables of the item, or of its index or key and itself.
    pub(super) variable: Slot,
    pub(super) second_variable: Option<Slot>,
    pub(super) filter: Option<Id>,
    pub(super) body: Id,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    /// A list of the values of the body.
    List,
    /// A map from the keys to the values of the body.
    Map,
    /// A map of the entries of the maps that the body returns.
    MapEntries,
}

/// Calls `visit` with the operands of a node.
pub(super) fn operands(kind: &Kind, mut visit: impl FnMut(Id)) {
    match kind {
        Kind::Literal(_) | Kind::SelfValue | Kind::OldSelf | Kind::Local(_) => {}
        Kind::Select(access) => visit(access.operand),
        Kind::Index(access, key) => [access.operand, *key].into_iter().for_each(visit),
        Kind::Has(operand, _) => visit(*operand),
        Kind::And(terms) | Kind::Or(terms) => terms.iter().copied().for_each(visit),
        Kind::Conditional(parts) => parts.iter().copied().for_each(visit),
        Kind::Call(call) => call.arguments.iter().copied().for_each(visit),
        Kind::List(items) => items.iter().for_each(|(item, _)| visit(*item)),
        Kind::Map(entries) => entries.iter().for_each(|(key, value, _)| {
            visit(*key);
            visit(*value);
        }),
        Kind::Fold(fold) => {
            visit(fold.range);
            fold.filter.into_iter().for_each(&mut visit);
            visit(fold.body);
        }
        Kind::Bind(_, value, body) => [*value, *body].into_iter().for_each(visit),
    }
}
