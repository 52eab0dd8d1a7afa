//! Random graphs of owners, compared with a model of what must be left.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use fastrand::Rng;

use super::world::World;

/// Number of graphs of a run.
const GRAPHS: u64 = 2_000;

/// The owners of each object that is left.
type Left = BTreeMap<String, BTreeSet<String>>;

/// Removes an object and everything that has only removed owners. References to removed owners are removed.
fn remove(left: &mut Left, first: &str) {
    left.remove(first);
    loop {
        let mut garbage = None;
        for (name, owners) in left.iter() {
            if !owners.is_empty() && owners.iter().all(|owner| !left.contains_key(owner)) {
                garbage = Some(name.clone());
            }
        }
        let Some(garbage) = garbage else { break };
        left.remove(&garbage);
    }
    let names: BTreeSet<String> = left.keys().cloned().collect();
    for owners in left.values_mut() {
        owners.retain(|owner| names.contains(owner));
    }
}

/// Removes an object from the owners of its dependents, and then the object.
fn orphan(left: &mut Left, name: &str) {
    for owners in left.values_mut() {
        owners.remove(name);
    }
    left.remove(name);
}

/// Draws the creations of objects, whose owners precede them, as lines of a script.
fn draw(rng: &mut Rng) -> (Vec<String>, Left) {
    let name = |object: usize| {
        if object.is_multiple_of(4) {
            format!("o{object}")
        } else {
            format!("n/o{object}")
        }
    };
    let (mut script, mut left) = (Vec::new(), Left::new());
    for object in 0..rng.usize(2..12) {
        let own = name(object);
        let mut line = format!("create {own} <");
        let mut owners = BTreeSet::new();
        for owner in (0..object).map(name) {
            // An object without a namespace can't have an owner in one.
            let may_own = own.contains('/') || !owner.contains('/');
            if may_own && rng.u8(..3) == 0 {
                let blocks = if rng.bool() { "!" } else { "" };
                write!(line, " {owner}{blocks}").unwrap();
                owners.insert(owner);
            }
        }
        script.push(line);
        left.insert(own, owners);
    }
    (script, left)
}

/// Returns the objects of the model as [`World::left`] shows them.
fn shown(left: &Left) -> Vec<String> {
    let owned = left.iter().map(|(name, owners)| {
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        if owners.is_empty() {
            name.clone()
        } else {
            format!("{name}({})", owners.join(","))
        }
    });
    owned.collect()
}

/// Draws objects and deletions, and runs them on the graph and on the model.
fn run(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let mut world = World::default();
    let (mut script, mut left) = draw(&mut rng);
    for line in &script {
        world.command(line);
        assert_eq!(world.collect(), "", "seed {seed}: all owners exist");
    }
    while !left.is_empty() && rng.u8(..8) > 0 {
        let name = rng.choice(left.keys()).unwrap().clone();
        let policy = rng.choice(["background", "foreground", "orphan"]).unwrap();
        if rng.u8(..4) == 0 {
            script.push("restart".to_owned());
            world.restart();
        }
        let line = format!("delete {name} {policy}");
        world.command(&line);
        script.push(line);
        let trace = world.collect();
        match policy {
            "orphan" => orphan(&mut left, &name),
            _ => remove(&mut left, &name),
        }
        let found: Vec<String> = world.left().into_iter().map(sorted).collect();
        let script = script.join("\n");
        assert_eq!(found, shown(&left), "seed {seed}:\n{script}\n{trace}");
        assert_eq!(world.nodes_without_relations(), 0, "seed {seed}");
    }
}

/// Sorts the owners in the text of an object.
fn sorted(text: String) -> String {
    let Some((name, owners)) = text.trim_end_matches(')').split_once('(') else {
        return text;
    };
    let owners: BTreeSet<&str> = owners.split(',').collect();
    let owners: Vec<&str> = owners.into_iter().collect();
    format!("{name}({})", owners.join(","))
}

#[test]
fn what_is_left_of_random_graphs_is_what_has_an_owner_or_never_had_one() {
    let first = std::process::id();
    println!("seeds {first}.. ({GRAPHS} graphs)");
    for seed in 0..GRAPHS {
        run(u64::from(first) * GRAPHS + seed);
    }
}
