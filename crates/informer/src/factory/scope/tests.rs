//! Tests that a scope combines selectors and options as the precedence table of `InformerOptions` states.

use expect_test::expect;

use super::*;

fn labels(value: &str) -> Selection {
    Selection {
        labels: Some(value.parse().unwrap()),
        ..Selection::default()
    }
}

fn level(everywhere: Selection, namespaces: &[(&str, Selection)]) -> Level {
    let namespaces = namespaces.iter().cloned();
    let namespaces: BTreeMap<_, _> = namespaces
        .map(|(name, selection)| (name.to_owned(), selection))
        .collect();
    Level {
        everywhere,
        namespaces: Some(namespaces).filter(|namespaces| !namespaces.is_empty()),
    }
}

fn show(scope: &Scope) -> String {
    let sections = scope.sections.iter().map(|section| {
        let Section {
            namespace,
            labels,
            fields,
            requests: _,
        } = section;
        format!("{namespace:?} {labels} {fields}")
            .trim_end()
            .to_owned()
            + "\n"
    });
    sections.collect()
}

#[test]
fn the_most_specific_selection_applies_in_each_namespace() {
    let nothing = Selection::default();
    let all = level(
        labels("from=all"),
        &[("a", labels("from=all-in-a")), ("b", nothing.clone())],
    );
    let type_only = level(labels("from=type"), &[]);
    let type_in_a = level(
        nothing.clone(),
        &[("a", labels("from=type-in-a")), ("b", nothing.clone())],
    );
    let both = level(
        labels("from=type"),
        &[("a", labels("from=type-in-a")), ("b", nothing.clone())],
    );
    let rows = [
        ("nothing of the type", &nothing, Level::default()),
        ("of the type", &nothing, type_only.clone()),
        ("of the type in a", &nothing, type_in_a),
        ("of the type and in a", &nothing, both.clone()),
        ("own", &labels("from=own"), both.clone()),
        ("own says all", &labels(""), type_only),
    ];
    let mut table = String::new();
    for (what, own, of_type) in rows {
        let scope = Scope::resolve(&[&level(own.clone(), &[]), &of_type, &all], true);
        table += what;
        table += "\n";
        table += &show(&scope);
    }
    let own = level(labels("from=own"), &[("a", labels("from=own-in-a"))]);
    table += "own in a\n";
    table += &show(&Scope::resolve(&[&own, &both, &all], true));
    expect![[r#"
        nothing of the type
        "a" from=all-in-a
        "b" from=all
        of the type
        "a" from=type
        "b" from=type
        of the type in a
        "a" from=type-in-a
        "b" from=all
        of the type and in a
        "a" from=type-in-a
        "b" from=type
        own
        "a" from=own
        "b" from=own
        own says all
        "a"
        "b"
        own in a
        "a" from=own-in-a
    "#]]
    .assert_eq(&table);
}

#[test]
fn labels_and_fields_are_resolved_independently() {
    let fields = Selection {
        fields: Some("spec.nodeName=n".to_owned()),
        ..Selection::default()
    };
    let all = level(
        labels("from=all"),
        &[("a", fields.clone()), ("b", labels(""))],
    );
    let scope = Scope::resolve(&[&Level::default(), &Level::default(), &all], true);
    expect![[r#"
        "a" from=all spec.nodeName=n
        "b"
    "#]]
    .assert_eq(&show(&scope));
}

#[test]
fn namespaces_are_those_of_the_informer_or_of_its_type_or_of_all() {
    let of = |namespaces: &[&str]| {
        let namespaces = namespaces.iter();
        let namespaces: Vec<_> = namespaces
            .map(|name| (*name, Selection::default()))
            .collect();
        level(Selection::default(), &namespaces)
    };
    let names = |own: &Level, of_type: &Level, of_all: &Level| {
        let scope = Scope::resolve(&[own, of_type, of_all], true);
        let names = scope.sections.into_iter();
        names.map(|section| section.namespace).collect::<Vec<_>>()
    };
    let (a, b, nothing) = (of(&["a"]), of(&["b"]), of(&[]));
    let all = Level {
        namespaces: Some(BTreeMap::new()),
        ..Level::default()
    };
    assert_eq!(names(&of(&["c"]), &b, &a), ["c"]);
    assert_eq!(
        names(&all, &b, &a),
        [""],
        "an empty set means all namespaces"
    );
    assert_eq!(names(&nothing, &b, &a), ["b"]);
    assert_eq!(names(&nothing, &nothing, &a), ["a"]);
    assert_eq!(names(&nothing, &nothing, &nothing), [""]);
}

#[test]
fn all_namespaces_with_named_ones_exclude_the_named_ones() {
    let all = level(
        Selection {
            fields: Some("status.phase!=Failed".to_owned()),
            ..Selection::default()
        },
        &[
            ("", Selection::default()),
            ("b", labels("x=y")),
            ("a", Selection::default()),
        ],
    );
    let scope = Scope::resolve(&[&all], true);
    expect![[r#"
        ""  metadata.namespace!=a,metadata.namespace!=b,status.phase!=Failed
        "a"  status.phase!=Failed
        "b" x=y status.phase!=Failed
    "#]]
    .assert_eq(&show(&scope));
}

#[test]
fn namespaces_do_not_apply_to_a_cluster_scoped_kind() {
    let all = level(labels("from=all"), &[("a", labels("from=a"))]);
    let of_type = level(Selection::default(), &[("b", labels("from=b"))]);
    let own = level(Selection::default(), &[("c", labels("from=c"))]);
    let scope = Scope::resolve(&[&own, &of_type, &all], false);
    assert_eq!(show(&scope), "\"\" from=all\n");
}

#[test]
fn request_options_are_resolved_per_namespace_and_do_not_distinguish_informers() {
    let pages = |size| Selection {
        requests: RequestOptions {
            page_size: Some(size),
            ..RequestOptions::default()
        },
        ..Selection::default()
    };
    let all = level(pages(1), &[("a", pages(2)), ("b", Selection::default())]);
    let own = level(Selection::default(), &[("a", pages(3)), ("c", pages(4))]);
    let of_type = level(pages(5), &[]);
    let scope = |levels: &[&Level]| Scope::resolve(levels, true);
    let sizes = |scope: &Scope| {
        let sections = scope.sections.iter();
        let sizes: Vec<_> = sections
            .map(|section| section.requests.page_size())
            .collect();
        sizes
    };
    assert_eq!(sizes(&scope(&[&Level::default(), &all])), [2, 1]);
    assert_eq!(sizes(&scope(&[&own, &all])), [3, 4]);
    assert_eq!(sizes(&scope(&[&of_type, &all])), [5, 5]);
    assert_eq!(sizes(&Scope::resolve(&[&own, &all], false)), [1]);

    let other = level(Selection::default(), &[("a", pages(9)), ("c", pages(4))]);
    assert_eq!(scope(&[&own]), scope(&[&other]));
    assert_eq!(own.difference(&other), Some("page size"));
    assert_eq!(own.difference(&own), None);
    assert_eq!(of_type.difference(&Level::default()), Some("page size"));
}
