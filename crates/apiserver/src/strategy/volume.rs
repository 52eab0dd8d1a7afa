//! Validates the volumes of a pod.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Checked is what is in volumes
//! of the kinds `emptyDir`, `hostPath`, `secret`, `configMap`, `persistentVolumeClaim`, `nfs`, `downwardAPI`, `projected`,
//! `ephemeral` (only that it has a template) and `image`. Of the others, only their number is checked.

use std::collections::BTreeSet;

use super::container::is_negative;
use super::field::Field;
use super::report::{Path, Report};
use super::volume_path::{check_no_backsteps, check_not_reserved};
use crate::name_syntax::label_faults;

/// The kinds of volumes, in the order in which Kubernetes checks them, with the name in the error about a second kind.
const KINDS: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];

/// The types of paths of a host. An empty one is not checked by the node.
const HOST_PATHS: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

/// The fields of a pod that can be in a file.
const FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Checks volumes, and returns the names of those without an error.
pub(super) fn check_volumes<'v>(volumes: &Field<'_, 'v>, report: &mut Report) -> BTreeSet<&'v str> {
    let mut names = BTreeSet::new();
    for volume in volumes.items() {
        let name = volume.at("name");
        let before = report.found();
        check_kinds(&volume, report);
        if name.is_empty() {
            name.required(report);
        } else {
            name.check_text(report, label_faults);
        }
        if names.contains(name.text()) {
            name.duplicate(report);
        }
        if report.found() == before {
            names.insert(name.text());
        }
    }
    names
}

fn check_kinds(volume: &Field<'_, '_>, report: &mut Report) {
    let mut has_kind = false;
    for (kind, shown) in KINDS {
        let source = volume.at(kind);
        if !source.exists() {
            continue;
        }
        if has_kind {
            let path = volume.path.child(shown);
            report.forbidden(&path, "may not specify more than 1 volume type");
            continue;
        }
        has_kind = true;
        check_kind(kind, &source, report);
    }
    if !has_kind {
        report.required(&volume.path, "must specify a volume type");
    }
}

fn check_kind(kind: &str, source: &Field<'_, '_>, report: &mut Report) {
    let required = |name: &str, report: &mut Report| {
        let field = source.at(name);
        if field.is_empty() {
            field.required(report);
        }
    };
    match kind {
        "emptyDir" => {
            let limit = source.at("sizeLimit");
            if is_negative(&limit) {
                limit.forbidden(report, "SizeLimit field must be a valid resource quantity");
            }
        }
        "hostPath" => {
            let (path, kind) = (source.at("path"), source.at("type"));
            if path.is_empty() {
                return path.required(report);
            }
            check_no_backsteps(&path, &path.path, report);
            if kind.exists() {
                kind.check_one_of(report, &HOST_PATHS);
            }
        }
        "secret" | "configMap" => {
            required(
                if kind == "secret" {
                    "secretName"
                } else {
                    "name"
                },
                report,
            );
            check_mode(&source.at("defaultMode"), report);
            for item in source.at("items").items() {
                check_item(&item, report);
            }
        }
        "persistentVolumeClaim" => required("claimName", report),
        "nfs" => {
            required("server", report);
            required("path", report);
            let path = source.at("path");
            if !path.text().starts_with('/') {
                let shown = crate::quote::Quoted(path.text());
                report.invalid(&path.path, shown, "must be an absolute path");
            }
        }
        "downwardAPI" => {
            check_mode(&source.at("defaultMode"), report);
            for file in source.at("items").items() {
                check_file(&file, &source.path, report);
            }
        }
        "projected" => check_projected(source, report),
        "ephemeral" => required("volumeClaimTemplate", report),
        "image" => {
            let policies = ["Always", "IfNotPresent", "Never"];
            source
                .at("pullPolicy")
                .check_required_one_of(report, &policies);
        }
        _ => {}
    }
}

fn check_mode(mode: &Field<'_, '_>, report: &mut Report) {
    if mode.exists() && !(0..=0o777).contains(&mode.number()) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        mode.invalid(report, why);
    }
}

fn check_item(item: &Field<'_, '_>, report: &mut Report) {
    for name in ["key", "path"] {
        let field = item.at(name);
        if field.is_empty() {
            field.required(report);
        }
    }
    let path = item.at("path");
    check_not_reserved(&path, &path.path, report);
    check_mode(&item.at("mode"), report);
}

/// Checks a file with a field of the pod. The errors have the path of the volume, as in Kubernetes.
fn check_file(file: &Field<'_, '_>, at: &Path<'_>, report: &mut Report) {
    let (path, field, resource) = (
        file.at("path"),
        file.at("fieldRef"),
        file.at("resourceFieldRef"),
    );
    let path_at = at.child("path");
    if path.is_empty() {
        report.required(&path_at, "");
    }
    check_not_reserved(&path, &path_at, report);
    if field.exists() {
        let name = field.at("fieldPath");
        let field_at = at.child("fieldRef");
        let name_at = field_at.child("fieldPath");
        if name.is_empty() {
            report.required(&name_at, "");
        } else if !name.text().ends_with("']") && !FIELDS.contains(&name.text()) {
            report.unsupported(&name_at, name.shown(), &FIELDS);
        }
        if resource.exists() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            report.invalid(at, "\"resource\"", why);
        }
    } else if !resource.exists() {
        report.required(at, "one of fieldRef and resourceFieldRef is required");
    } else if resource.at("containerName").is_empty() {
        let resource_at = at.child("resourceFieldRef");
        report.required(&resource_at.child("containerName"), "");
    }
    let mode = file.at("mode");
    if mode.exists() && !(0..=0o777).contains(&mode.number()) {
        let why = "must be a number between 0 and 0777 (octal), both inclusive";
        report.invalid(&at.child("mode"), mode.number(), why);
    }
}

fn check_projected(projected: &Field<'_, '_>, report: &mut Report) {
    check_mode(&projected.at("defaultMode"), report);
    let mut paths = BTreeSet::new();
    for source in projected.at("sources").items() {
        for kind in ["secret", "configMap"] {
            let of_kind = source.at(kind);
            if !of_kind.exists() {
                continue;
            }
            let name = of_kind.at("name");
            if name.is_empty() {
                name.required(report);
            }
            for item in of_kind.at("items").items() {
                check_item(&item, report);
                let path = item.at("path");
                if !path.is_empty() && !paths.insert(path.text()) {
                    let shown = crate::quote::Quoted(name.text());
                    report.invalid(&projected.path, shown, "conflicting duplicate paths");
                }
            }
        }
        let fields = source.at("downwardAPI");
        for file in fields.at("items").items() {
            check_file(&file, &fields.path, report);
            let path = file.at("path");
            if !path.is_empty() && !paths.insert(path.text()) {
                report.invalid(&projected.path, path.shown(), "conflicting duplicate paths");
            }
        }
        check_token(projected, &source.at("serviceAccountToken"), report);
    }
}

fn check_token(projected: &Field<'_, '_>, token: &Field<'_, '_>, report: &mut Report) {
    if !token.exists() {
        return;
    }
    let seconds = token.at("expirationSeconds");
    if seconds.number() < 600 {
        let why = "may not specify a duration less than 10 minutes";
        report.invalid(&seconds.path, seconds.number(), why);
    }
    if seconds.number() > 1 << 32 {
        seconds.invalid(
            report,
            "may not specify a duration larger than 2^32 seconds",
        );
    }
    // The path is that of the volume, as in Kubernetes.
    let (path, at) = (token.at("path"), projected.path.child("path"));
    if path.is_empty() {
        report.required(&at, "");
    } else {
        check_not_reserved(&path, &at, report);
    }
}
