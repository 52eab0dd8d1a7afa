//! Draws applies of configurations.

use harness::draw::Choose as _;
use serde_json::json;

use super::{Draw, Kind, Request, Unit, objects};

impl Draw {
    pub(super) fn apply(&mut self, kind: &'static Kind) -> Unit {
        let name = objects::name(&mut self.random);
        let part = match self.random.u32(0..10) {
            0 if kind.has_status => "/status",
            1 if kind.has_scale => "/scale",
            _ => "",
        };
        let mut request = Request::new("PATCH", &format!("{}/{name}{part}", kind.path));
        if self.random.chance(97) {
            let manager = *self.random.one(&["x", "y", "z"]);
            request.query(&format!("fieldManager={manager}"));
        }
        if self.random.chance(40) {
            let force = *self.random.one(&["true", "true", "true", "false"]);
            request.query(&format!("force={force}"));
        }
        if self.random.chance(5) {
            request.query("dryRun=All");
        }
        request.header("Content-Type", "application/apply-patch+yaml");
        let mut object = match part {
            "/scale" => json!({
                "apiVersion": "autoscaling/v1", "kind": "Scale",
                "metadata": {"name": name}, "spec": {"replicas": self.random.u32(0..4)},
            }),
            _ => kind.object(&mut self.random, name),
        };
        if part == "/status" {
            object["status"] = objects::status(&mut self.random, kind);
        }
        if self.random.chance(60) {
            objects::thin(&mut self.random, &mut object);
        }
        if self.random.chance(5) {
            object["metadata"]["resourceVersion"] = "$rv1".into();
        }
        request.body(&object);
        self.stored(request)
    }
}
