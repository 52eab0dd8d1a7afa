//! Records the acknowledged state and the pending write of each object that several managers write.
//!
//! Guarantees: [`Shared::done`] and [`Shared::restarted`] return an error unless the object as a whole, with its
//! managed fields, is that of the last acknowledged write, or that of the pending write. The latter is computed by
//! [`Ownership`]; open are only its revision, and the time of the write within the seconds in which it was pending.

use anyhow::{Result, bail, ensure};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    object::{KINDS, Key, revision},
    ownership::{MAPS, Ownership, is_between},
};

/// Indices in [`KINDS`] of the kinds of the objects that several managers write.
const SHARED: [usize; 3] = [CONFIG_MAP, CONFIG_MAP, NODE];

const CONFIG_MAP: usize = 0;
/// Index in [`KINDS`] of the kind whose objects have a status.
pub(crate) const NODE: usize = 2;

/// An object that several managers write. Only one of them has a pending write at a time.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) key: Key,
    /// The object in the last response, or after the last restart; `None` if the object did not exist.
    acknowledged: Option<Value>,
    pending: Option<Pending>,
}

/// A write whose response has not been received.
#[derive(Debug)]
struct Pending {
    /// The fields and owners after the write, or `None` for a deletion.
    result: Option<Ownership>,
    since: Timestamp,
}

/// Returns the identities of the objects that several managers write.
pub(crate) fn keys() -> impl Iterator<Item = Key> {
    let keys = SHARED.into_iter().enumerate();
    keys.map(|(nth, kind)| Key {
        kind,
        name: format!("shared-{nth}"),
    })
}

/// Returns whether several managers write the object.
pub(crate) fn is_shared(key: &Key) -> bool {
    keys().any(|shared| shared == *key)
}

impl Shared {
    /// Returns the state of an object that has not been written.
    pub(crate) fn new(key: Key) -> Self {
        Self {
            key,
            acknowledged: None,
            pending: None,
        }
    }

    /// Returns the object in its last acknowledged state, if it exists.
    pub(crate) fn object(&self) -> Option<&Value> {
        self.acknowledged.as_ref()
    }

    /// Returns the fields and the owners in the last acknowledged state.
    ///
    /// # Errors
    /// Returns an error if the object has invalid managed fields.
    pub(crate) fn ownership(&self) -> Result<Ownership> {
        let read = self.acknowledged.as_ref().map(Ownership::read);
        read.unwrap_or_else(|| Ok(Ownership::default()))
    }

    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Records a write before it is sent; `result` is `None` for a deletion.
    pub(crate) fn tried(&mut self, result: Option<Ownership>) {
        let since = Timestamp::now();
        self.pending = Some(Pending { result, since });
    }

    /// Records the response to the pending write; `answer` is `None` for a deletion.
    ///
    /// # Errors
    /// Returns an error if the response is not the result of the write.
    pub(crate) fn done(&mut self, answer: Option<Value>) -> Result<()> {
        self.check_written(answer.as_ref())?;
        self.acknowledged = answer;
        self.pending = None;
        Ok(())
    }

    /// Compares the object after a restart of the server, and records it as acknowledged.
    ///
    /// Returns whether the server has stored the pending write.
    ///
    /// # Errors
    /// Returns an error if the object is neither that of the last acknowledged write nor that of the pending write.
    pub(crate) fn restarted(&mut self, stored: Option<Value>) -> Result<bool> {
        let of = |object: &Option<Value>| object.as_ref().map(revision).transpose();
        let is_changed = of(&stored)? != of(&self.acknowledged)?;
        if is_changed {
            self.check_written(stored.as_ref())?;
        } else {
            self.check_unchanged(stored.as_ref())?;
        }
        self.acknowledged = stored;
        self.pending = None;
        Ok(is_changed)
    }

    fn check_unchanged(&self, stored: Option<&Value>) -> Result<()> {
        let (Some(stored), Some(acknowledged)) = (stored, &self.acknowledged) else {
            return Ok(());
        };
        let without_owners = |object: &Value| without(object, &[".metadata.managedFields"]);
        ensure!(
            without_owners(stored) == without_owners(acknowledged),
            "{} is {stored}, but was acknowledged as {acknowledged}",
            self.key
        );
        let owners = |object: &Value| object["metadata"]["managedFields"].clone();
        let (stored, acknowledged) = (owners(stored), owners(acknowledged));
        ensure!(
            stored == acknowledged,
            "the managed fields of {} are {stored}, but were acknowledged as {acknowledged}",
            self.key
        );
        Ok(())
    }

    /// Checks that an object is the result of the pending write.
    fn check_written(&self, written: Option<&Value>) -> Result<()> {
        let key = &self.key;
        let Some(pending) = &self.pending else {
            bail!("{key} is {written:?}, but no write of it was pending");
        };
        let (Some(result), Some(written)) = (&pending.result, written) else {
            let is_deletion = pending.result.is_none();
            ensure!(
                is_deletion == written.is_none(),
                "{key} is {written:?}, but whether a deletion was pending is {is_deletion}"
            );
            return Ok(());
        };
        let when = [pending.since, Timestamp::now()];
        let found = Ownership::read(written)?;
        ensure!(
            result.is(&found, when),
            "{key} has {found:?}, not {result:?}, although it was written in {when:?}"
        );
        let rest = rest(written);
        let expected = match &self.acknowledged {
            Some(before) => self::rest(before),
            None => created(key, written, when)?,
        };
        ensure!(rest == expected, "{key} has {rest} too, not {expected}");
        Ok(())
    }
}

/// Returns an object without the members at some paths.
fn without(object: &Value, paths: &[&str]) -> Value {
    let mut object = object.clone();
    for path in paths {
        let (parent, name) = path.rsplit_once('.').unwrap_or_default();
        let parent = object.pointer_mut(&parent.replace('.', "/"));
        if let Some(parent) = parent.and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
    object
}

/// Returns what [`Ownership`] does not cover, without the revision.
fn rest(object: &Value) -> Value {
    let metadata = [".metadata.managedFields", ".metadata.resourceVersion"];
    without(object, &[&MAPS[..], &metadata].concat())
}

/// Returns the [`rest`] of an object that was created between two times, with the `uid` of `written`.
///
/// # Errors
/// Returns an error if the object has no `uid`, or was created at another time.
fn created(key: &Key, written: &Value, when: [Timestamp; 2]) -> Result<Value> {
    let metadata = &written["metadata"];
    let (uid, time) = (&metadata["uid"], &metadata["creationTimestamp"]);
    let is_then = |time: Timestamp| is_between(time, when);
    ensure!(
        uid.as_str().is_some_and(|uid| uid.len() == 36)
            && time
                .as_str()
                .is_some_and(|time| time.parse().is_ok_and(is_then)),
        "{key} was created in {when:?} with {metadata}"
    );
    let mut object = key.bare();
    object["metadata"]["uid"] = uid.clone();
    object["metadata"]["creationTimestamp"] = time.clone();
    if KINDS[key.kind].is_namespaced() {
        object["metadata"]["namespace"] = json!("default");
    }
    if key.kind == NODE {
        object["spec"] =
            json!({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]});
        let texts = [
            "machineID",
            "systemUUID",
            "bootID",
            "kernelVersion",
            "osImage",
            "containerRuntimeVersion",
            "kubeletVersion",
            "kubeProxyVersion",
            "operatingSystem",
            "architecture",
        ];
        let info = texts.map(|name| (name.to_owned(), json!("")));
        let info: Value = info.into_iter().collect();
        object["status"] =
            json!({"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": info});
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::{Fields, Manager, Operation};

    fn fields(value: &str) -> Fields {
        Fields::from([(".data.a".to_owned(), value.to_owned())])
    }

    fn result(live: &Ownership, value: &str) -> Ownership {
        let manager = Manager {
            name: "x".to_owned(),
            operation: Operation::Apply,
            subresource: String::new(),
        };
        live.apply(&manager, &fields(value), true).unwrap()
    }

    /// Returns an object as a server stores it now.
    fn object(revision: u64, value: &str) -> Value {
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": value},
            "metadata": {
                "name": "shared-0", "namespace": "default", "resourceVersion": revision.to_string(),
                "uid": "313553c2-b63a-473d-8a1f-c285a11250bb", "creationTimestamp": now.to_string(),
                "managedFields": [{
                    "manager": "x", "operation": "Apply", "apiVersion": "v1", "time": now.to_string(),
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
                }],
            },
        })
    }

    /// Returns an object that exists, and for which a write of the value 2 or a deletion is pending.
    fn pending(is_deletion: bool) -> (Shared, Value) {
        let mut shared = Shared::new(keys().next().unwrap());
        shared.tried(Some(result(&Ownership::default(), "1")));
        let stored = object(5, "1");
        shared.done(Some(stored.clone())).unwrap();
        let live = shared.ownership().unwrap();
        shared.tried((!is_deletion).then(|| result(&live, "2")));
        (shared, stored)
    }

    #[test]
    fn a_pending_write_is_stored_as_a_whole_or_not_at_all() {
        let (mut shared, before) = pending(false);
        let mut after = before.clone();
        after["data"]["a"] = json!("2");
        after["metadata"]["resourceVersion"] = json!("6");
        assert!(shared.restarted(Some(after.clone())).unwrap());
        assert!(!shared.is_pending());
        let (mut lost, stored) = pending(false);
        assert!(!lost.restarted(Some(stored)).unwrap());
        assert!(pending(false).0.restarted(None).is_err());
        let edits: [fn(&mut Value); 5] = [
            |object| object["data"]["a"] = json!("1"),
            |object| object["data"]["b"] = json!("1"),
            |object| object["metadata"]["managedFields"] = json!([]),
            |object| object["metadata"]["managedFields"][0]["time"] = json!("1970-01-01T00:00:05Z"),
            |object| object["metadata"]["uid"] = json!("x"),
        ];
        for edit in edits {
            let mut changed = after.clone();
            edit(&mut changed);
            let (mut shared, _) = pending(false);
            shared.acknowledged = Some(before.clone());
            assert!(
                shared.restarted(Some(changed.clone())).is_err(),
                "{changed}"
            );
        }
    }

    #[test]
    fn an_acknowledged_object_is_stored_with_its_managed_fields() {
        let (mut shared, before) = pending(true);
        let mut changed = before.clone();
        changed["metadata"]["managedFields"][0]["time"] = json!("1970-01-01T00:00:05Z");
        let error = shared.restarted(Some(changed)).unwrap_err();
        assert!(error.to_string().contains("the managed fields of"));
        let mut changed = before.clone();
        changed["metadata"]["labels"] = json!({"a": "1"});
        assert!(shared.restarted(Some(changed)).is_err());
        assert!(!shared.restarted(Some(before)).unwrap());
        let (mut deleted, _) = pending(true);
        assert!(deleted.restarted(None).unwrap());
        let mut returned = Shared::new(keys().next().unwrap());
        assert!(returned.restarted(Some(object(7, "1"))).is_err());
    }
}
