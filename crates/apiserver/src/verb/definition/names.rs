//! Decides which names of a `CustomResourceDefinition` are accepted.
//!
//! Guarantees: a name that another definition of the group has accepted is not accepted.
//!
//! While the server runs, callers hold the lock of the names until the accepted names are stored. This module
//! stores nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::definition::Names;
use crate::object::Object;
use crate::shared::{NamesInUse, Shared};
use crate::storage::Entry;
use crate::strategy::definition::{condition, is_true, set_condition};

/// Accepts the names of a definition that no other definition of the group uses.
///
/// Follows `calculateNamesAndConditions` in Kubernetes' `naming_controller.go`. `resources` and `kinds` are
/// the names that are in use in the group.
pub(super) fn accept(
    definition: &mut Object,
    resources: &BTreeSet<String>,
    kinds: &BTreeSet<String>,
    now: &str,
) {
    let requested = definition.part("spec")["names"].clone();
    let mut status = definition.part("status");
    // Values are not checked, so a client may have written anything.
    let old = match &status["acceptedNames"] {
        names @ Value::Object(_) => names.clone(),
        _ => json!({}),
    };
    let mut accepted = old.clone();
    let mut conflict = None;
    let is_used = |name: &Value, used: &BTreeSet<String>| {
        name.as_str().is_some_and(|name| used.contains(name))
    };
    let scalars = [
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ];
    for (member, reason, used) in scalars {
        let (wanted, has) = (&requested[member], &old[member]);
        let wanted_names = listed(wanted);
        let own: BTreeSet<&str> = listed(has).iter().filter_map(Value::as_str).collect();
        let is_own = |name: &Value| name.as_str().is_some_and(|name| own.contains(name));
        let refused = wanted_names
            .iter()
            .filter(|name| !is_own(name) && is_used(name, used));
        let refused: Vec<String> = refused
            .map(|name| format!("{name} is already in use"))
            .collect();
        match refused.as_slice() {
            [] => assign(&mut accepted, member, wanted),
            [only] => conflict = Some((reason, only.clone())),
            several => conflict = Some((reason, format!("[{}]", several.join(", ")))),
        }
    }
    assign(&mut accepted, "categories", &requested["categories"]);
    status["acceptedNames"] = accepted;
    definition.set("status", Some(status));
    let (state, reason, why) = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, why)) => ("False", *reason, &**why),
    };
    set_condition(definition, "NamesAccepted", (state, reason, why), now);
    if is_true(definition, "Established") {
        return;
    }
    if conflict.is_none() {
        let why = "the initial names have been accepted";
        set_condition(definition, "Established", ("False", "Installing", why), now);
    } else if condition(definition, "Established").is_none() {
        let why = "not all names are accepted";
        set_condition(
            definition,
            "Established",
            ("False", "NotAccepted", why),
            now,
        );
    }
}

/// Returns the values of an array, or one value that is not an array.
fn listed(value: &Value) -> &[Value] {
    value
        .as_array()
        .map_or(std::slice::from_ref(value), Vec::as_slice)
}

fn assign(names: &mut Value, member: &str, value: &Value) {
    if !value.is_null() {
        names[member] = value.clone();
    } else if let Some(names) = names.as_object_mut() {
        names.remove(member);
    }
}

/// Returns whether a definition, such as `widgets.example.com`, is in a group.
pub(super) fn is_of(definition: &str, group: &str) -> bool {
    definition
        .split_once('.')
        .is_some_and(|(_, of)| of == group)
}

/// Reads the names of new and changed definitions, and removes those of deleted definitions.
fn refresh(shared: &Shared, names: &mut NamesInUse) {
    let Some(definitions) = &shared.builtin.definitions else {
        return;
    };
    let state = shared.lock();
    let mut stored: Vec<_> = state
        .newest_below(definitions.collection, "")
        .cloned()
        .collect();
    drop(state);
    // Entries that are not durable yet follow the others.
    stored.sort_by(|one, other| one.name().cmp(other.name()));
    names.retain(|name, _| {
        stored
            .binary_search_by(|entry| entry.name().cmp(name))
            .is_ok()
    });
    for entry in stored {
        let is_known = |(known, _): &(Arc<Entry>, Names)| Arc::ptr_eq(known, &entry);
        if !names.get(entry.name()).is_some_and(is_known) {
            let read = Names::read(&entry);
            names.insert(entry.name().to_owned(), (entry, read));
        }
    }
}

/// Returns whether a definition requests a name that no definition has accepted.
pub(super) fn has_free_name(
    names: &Names,
    resources: &BTreeSet<String>,
    kinds: &BTreeSet<String>,
) -> bool {
    let is_free = |members: &[&str], used: &BTreeSet<String>| {
        let requested = members
            .iter()
            .flat_map(|member| listed(&names.requested[*member]));
        let mut requested = requested.filter_map(Value::as_str);
        requested.any(|name| !used.contains(name))
    };
    is_free(&["plural", "singular", "shortNames"], resources)
        || is_free(&["kind", "listKind"], kinds)
}

/// Returns the resource names and the kinds that definitions of a group have accepted.
pub(super) fn used_names(
    shared: &Shared,
    names: &mut NamesInUse,
    group: &str,
) -> (BTreeSet<String>, BTreeSet<String>) {
    refresh(shared, names);
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    let of_group = names.iter().filter(|(name, _)| is_of(name, group));
    for (_, (_, Names { accepted, .. })) in of_group {
        let texts = |members: &[&str]| -> Vec<String> {
            let values = members.iter().flat_map(|member| listed(&accepted[*member]));
            let texts = values
                .filter_map(Value::as_str)
                .filter(|name| !name.is_empty());
            texts.map(str::to_owned).collect()
        };
        resources.extend(texts(&["plural", "singular", "shortNames"]));
        kinds.extend(texts(&["kind", "listKind"]));
    }
    (resources, kinds)
}
