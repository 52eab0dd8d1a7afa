//! The table of `TestConflictingData` in `garbagecollector_test.go` of Kubernetes 1.36, with what must be
//! left.
//!
//! Two entries are missing: a version that is not preferred, which equals the preferred one here, and one
//! whose order only differs in requests.

use expect_test::expect;

use super::check;

/// `good child in ns1 -> cluster-scoped owner`
#[test]
fn a_dependent_in_a_namespace_of_an_owner_without() {
    check(
        "create owner; create n/child < owner",
        &expect![[r#"
            > create owner; create n/child < owner
            left: n/child(owner) owner
        "#]],
    );
}

/// `bad child in ns1 -> owner in ns2 (child first)`
#[test]
fn a_dependent_elsewhere_is_observed_first() {
    check(
        "create n/child < owner:m/owner; create m/owner",
        &expect![[r#"
            > create n/child < owner:m/owner; create m/owner
            report n/child < m/owner
            delete n/child Background
            left: m/owner
        "#]],
    );
}

/// `bad child in ns1 -> owner in ns2 (owner first)`
#[test]
fn a_dependent_elsewhere_is_observed_last() {
    check(
        "create m/owner; create n/child < owner:m/owner",
        &expect![[r#"
            > create m/owner; create n/child < owner:m/owner
            report n/child < m/owner
            delete n/child Background
            left: m/owner
        "#]],
    );
}

/// `bad cluster-scoped child -> owner in ns1 (child first)`
#[test]
fn a_dependent_without_namespace_is_observed_first() {
    check(
        "create child < cm/owner:n/owner; create n/owner",
        &expect![[r#"
            > create child < cm/owner:n/owner; create n/owner
            report child < n/owner
            left: child(n/owner) n/owner
        "#]],
    );
}

/// `bad cluster-scoped child -> owner in ns1 (owner first)`
#[test]
fn a_dependent_without_namespace_is_observed_last() {
    check(
        "create n/owner; create child < cm/owner:n/owner",
        &expect![[r#"
            > create n/owner; create child < cm/owner:n/owner
            report child < n/owner
            left: child(n/owner) n/owner
        "#]],
    );
}

/// `child -> existing owner with inaccessible API version (child first)`
#[test]
fn an_existing_owner_of_an_unserved_version_is_observed_last() {
    check(
        "create n/child < Unserved/owner:n/owner; create n/owner",
        &expect![[r#"
            > create n/child < Unserved/owner:n/owner; create n/owner
            left: n/child(n/owner) n/owner
        "#]],
    );
}

/// `child -> existing owner with inaccessible API version (owner first)`
#[test]
fn an_existing_owner_of_an_unserved_version_is_observed_first() {
    check(
        "create n/owner; create n/child < Unserved/owner:n/owner",
        &expect![[r#"
            > create n/owner; create n/child < Unserved/owner:n/owner
            left: n/child(n/owner) n/owner
        "#]],
    );
}

/// `child -> non-existent owner with inaccessible API version (inaccessible parent apiVersion first)`
#[test]
fn a_missing_owner_has_an_unserved_version_first() {
    check(
        "create n/one < Unserved/owner:n/owner; create n/two < n/owner",
        &expect![[r#"
            > create n/one < Unserved/owner:n/owner; create n/two < n/owner
            delete n/two Background
            left: n/one(n/owner)
        "#]],
    );
}

/// `child -> non-existent owner with inaccessible API version (accessible parent apiVersion first)`
#[test]
fn a_missing_owner_has_an_unserved_version_last() {
    check(
        "create n/two < n/owner; create n/one < Unserved/owner:n/owner",
        &expect![[r#"
            > create n/two < n/owner; create n/one < Unserved/owner:n/owner
            delete n/two Background
            left: n/one(n/owner)
        "#]],
    );
}

/// `bad child -> existing owner with incorrect API version (bad child, good child, bad parent delete, good parent)`
#[test]
fn a_wrong_kind_is_looked_up_before_the_owner_is_observed() {
    check(
        "create n/bad < Wrong/owner:n/owner; create n/good < n/owner; create n/owner",
        &expect![[r#"
            > create n/bad < Wrong/owner:n/owner; create n/good < n/owner; create n/owner
            delete n/bad Background
            left: n/good(n/owner) n/owner
        "#]],
    );
}

/// `bad child -> existing owner with incorrect API version (good child, bad child, good parent)`
#[test]
fn a_wrong_kind_is_observed_after_a_good_dependent() {
    check(
        "create n/good < n/owner; create n/bad < Wrong/owner:n/owner; create n/owner",
        &expect![[r#"
            > create n/good < n/owner; create n/bad < Wrong/owner:n/owner; create n/owner
            delete n/bad Background
            left: n/good(n/owner) n/owner
        "#]],
    );
}

/// `cluster-scoped bad child, namespaced good child, missing parent`
#[test]
fn a_missing_owner_of_dependents_with_and_without_namespace() {
    check(
        "create bad < cm/owner:n/owner; create n/good < n/owner",
        &expect![[r#"
            > create bad < cm/owner:n/owner; create n/good < n/owner
            delete n/good Background
            left: bad(n/owner)
        "#]],
    );
}

/// `cluster-scoped bad child, namespaced good child, late observed parent`
#[test]
fn an_owner_of_dependents_with_and_without_namespace_is_observed_late() {
    check(
        "create bad < cm/owner:n/owner; create n/good < n/owner; create n/owner",
        &expect![[r#"
            > create bad < cm/owner:n/owner; create n/good < n/owner; create n/owner
            report bad < n/owner
            left: bad(n/owner) n/good(n/owner) n/owner
        "#]],
    );
}

/// `namespaced good child, cluster-scoped bad child, missing parent`
#[test]
fn a_missing_owner_of_dependents_without_and_with_namespace() {
    check(
        "create n/good < n/owner; create bad < cm/owner:n/owner",
        &expect![[r#"
            > create n/good < n/owner; create bad < cm/owner:n/owner
            delete n/good Background
            left: bad(n/owner)
        "#]],
    );
}
