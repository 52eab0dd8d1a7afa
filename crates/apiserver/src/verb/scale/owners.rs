//! Records the owners of fields that are written by a `Scale`.

use serde_json::{Value, json};

use crate::apply::{FieldManager, Force, Replicas, Set, Type, Versions, Write};
use crate::object::Object;
use crate::resource::Resource;
use crate::shared::Shared;
use crate::status::ApiError;
use crate::typed::ValueType;
use crate::verb::ownership::refused;

/// `apiVersion` and `kind` of a `Scale`.
const SCALE: (&str, &str) = ("autoscaling/v1", "Scale");

/// A write of the `Scale` of an object.
pub(super) enum ScaleWrite<'a> {
    /// The `Scale` is replaced by another one.
    Update(Value),
    Apply {
        patch: &'a Value,
        force: Force,
    },
}

/// The only version of `Scale`.
struct ScaleVersion;

/// Returns the `Scale` after a write, and the owners of the fields of the object.
///
/// `scale` is the `Scale` of the object before.
///
/// # Errors
///
/// Returns the error of the response.
pub(super) fn write_scale(
    shared: &Shared,
    resource: &Resource,
    (object, mut scale): (&Object, Value),
    write: ScaleWrite<'_>,
    name: &str,
) -> Result<(Value, Option<Value>), ApiError> {
    let api_version = resource.kind.api_version();
    let path_in = |version: &str| {
        let served = shared.registry();
        let served = served.by_kind(version, &resource.kind.kind);
        let is_version = version == api_version
            || served.is_some_and(|served| served.collection == resource.collection);
        let path = resource.kind.scale.as_ref();
        let path = path.map_or("spec.replicas", |paths| &paths.replicas);
        is_version.then(|| path.trim_start_matches('.').split('.').collect())
    };
    let replicas = Replicas {
        path_in: &path_in,
        api_version: &api_version,
    };
    let invalid = |why: String| ApiError::unexplained(&why);
    let before = object.clone().into_value();
    replicas.to_scale(&before, &mut scale).map_err(invalid)?;
    let now = shared.settings.clock.now();
    let manager = FieldManager {
        versions: &ScaleVersion,
        api_version: SCALE.0,
        kind: SCALE.1,
        subresource: "scale",
        ignored: &Set::default(),
        empty: &json!({"apiVersion": SCALE.0, "kind": SCALE.1, "metadata": {}, "spec": {}, "status": {"replicas": 0}}),
    };
    let write_by = Write { manager: name, now };
    let new = match write {
        ScaleWrite::Update(new) => manager.update(&scale, new, write_by),
        ScaleWrite::Apply { patch, force } => {
            let applied = manager.apply(&scale, patch, write_by, force);
            applied.map_err(refused)?
        }
    };
    let mut owners = json!({"metadata": {}});
    let converted = replicas.to_object(&before, &new, &mut owners);
    converted.map_err(invalid)?;
    let owners = owners["metadata"].get_mut("managedFields").map(Value::take);
    Ok((new, owners))
}

impl Versions for ScaleVersion {
    fn type_of(&self, api_version: &str) -> Option<Type<'_>> {
        let known = ValueType::named(SCALE.0, SCALE.1);
        (api_version == SCALE.0).then_some(Type::Builtin(known))
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }
}
