//! Validates the security contexts of pods and containers.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes. Privileged containers are
//! allowed, as in nearly all clusters. Not checked: options of Windows, and fields that exclude an operating system.

use std::collections::BTreeSet;

use super::field::Field;
use super::internal::shown;
use super::report::Report;
use super::volume_path::check_relative;

/// Kubernetes' message about the name of a kernel parameter.
const SYSCTL: &str = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";

/// Checks the security context of the `spec` of a pod.
pub(super) fn check_pod_security(spec: &Field<'_, '_>, report: &mut Report) {
    let context = spec.at("securityContext");
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        check_id(&context.at(name), report);
    }
    for group in context.at("supplementalGroups").items() {
        check_id(&group, report);
    }
    let shares = *spec.at("shareProcessNamespace").value == true;
    if shares && *spec.at("hostPID").value == true {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        report.invalid(&context.path.child("shareProcessNamespace"), "true", why);
    }
    let mut names = BTreeSet::new();
    for parameter in context.at("sysctls").items() {
        let name = parameter.at("name");
        if name.is_empty() {
            name.required(report);
        } else if !is_sysctl(name.text()) {
            name.invalid(report, SYSCTL);
        } else if names.contains(name.text()) {
            name.duplicate(report);
        }
        names.insert(name.text());
    }
    check_policy(
        &context.at("fsGroupChangePolicy"),
        &["Always", "OnRootMismatch"],
        report,
    );
    check_seccomp(&context.at("seccompProfile"), report);
    check_app_armor(&context.at("appArmorProfile"), report);
    check_policy(
        &context.at("supplementalGroupsPolicy"),
        &["Merge", "Strict"],
        report,
    );
    check_policy(&context.at("seLinuxChangePolicy"), &["Recursive"], report);
}

/// Checks the security context of a container.
pub(super) fn check_container_security(
    container: &Field<'_, '_>,
    uses_host_users: bool,
    report: &mut Report,
) {
    let context = container.at("securityContext");
    if !context.exists() {
        return;
    }
    for name in ["runAsUser", "runAsGroup"] {
        check_id(&context.at(name), report);
    }
    let mount = context.at("procMount");
    check_policy(&mount, &["Default", "Unmasked"], report);
    if uses_host_users && mount.is("Unmasked") {
        mount.invalid(report, "`hostUsers` must be false to use `Unmasked`");
    }
    check_seccomp(&context.at("seccompProfile"), report);
    if *context.at("allowPrivilegeEscalation").value == false {
        let mut conflict = |with: &str| {
            let shown = shown("SecurityContext", context.value);
            let why = format!("cannot set `allowPrivilegeEscalation` to false and {with}");
            report.invalid(&context.path, shown, why);
        };
        if *context.at("privileged").value == true {
            conflict("`privileged` to true");
        }
        for added in context.at("capabilities").at("add").items() {
            if added.is("CAP_SYS_ADMIN") {
                conflict("`capabilities.Add` CAP_SYS_ADMIN");
            }
        }
    }
    check_app_armor(&context.at("appArmorProfile"), report);
}

/// Checks the number of a user or group, which can be absent.
fn check_id(id: &Field<'_, '_>, report: &mut Report) {
    if id.exists() && !(0..=i64::from(i32::MAX)).contains(&id.number()) {
        id.invalid(report, "must be between 0 and 2147483647, inclusive");
    }
}

fn check_policy(policy: &Field<'_, '_>, supported: &[&str], report: &mut Report) {
    if policy.exists() {
        policy.check_one_of(report, supported);
    }
}

fn is_sysctl(name: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_inner = |byte: u8| is_edge(byte) || matches!(byte, b'-' | b'_');
    name.len() <= 253
        && name.split(['.', '/']).all(|part| {
            let (first, last) = (part.bytes().next(), part.bytes().last());
            first.is_some_and(is_edge) && last.is_some_and(is_edge) && part.bytes().all(is_inner)
        })
}

fn check_seccomp(profile: &Field<'_, '_>, report: &mut Report) {
    if !profile.exists() {
        return;
    }
    let (kind, path) = (profile.at("type"), profile.at("localhostProfile"));
    if kind.is_empty() {
        report.required(&kind.path, "type is required when seccompProfile is set");
    } else {
        kind.check_one_of(report, &["Localhost", "RuntimeDefault", "Unconfined"]);
    }
    if !kind.is("Localhost") {
        if path.exists() {
            let shown = shown("SeccompProfile", profile.value);
            let why = "can only be set when seccomp type is Localhost";
            report.invalid(&path.path, shown, why);
        }
    } else if path.exists() {
        check_relative(&path, &path.path, report);
    } else {
        report.required(&path.path, "must be set when seccomp type is Localhost");
    }
}

fn check_app_armor(profile: &Field<'_, '_>, report: &mut Report) {
    if !profile.exists() {
        return;
    }
    let (kind, path) = (profile.at("type"), profile.at("localhostProfile"));
    let required = "must be set when AppArmor type is Localhost";
    match kind.text() {
        "Localhost" if !path.exists() => report.required(&path.path, required),
        "Localhost" if path.text().trim() != path.text() => {
            path.invalid(report, "must not be padded with whitespace");
        }
        "Localhost" if path.is_empty() => report.required(&path.path, required),
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            if path.exists() {
                path.invalid(report, "can only be set when AppArmor type is Localhost");
            }
        }
        "" => report.required(&kind.path, "type is required when appArmorProfile is set"),
        _ => kind.unsupported(report, &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::strategy::report::Path;

    /// No case shows this, since the kube-apiserver of the cases rejects every privileged container.
    #[test]
    fn a_privileged_container_can_escalate_its_privileges() {
        for (context, expected) in [
            (json!({"privileged": true}), 0),
            (
                json!({"allowPrivilegeEscalation": true, "privileged": true}),
                0,
            ),
            (
                json!({"allowPrivilegeEscalation": false, "privileged": false}),
                0,
            ),
            (
                json!({"allowPrivilegeEscalation": false, "privileged": true}),
                1,
            ),
        ] {
            let container = json!({"securityContext": context});
            let path = Path::root("container");
            let mut report = Report::default();
            check_container_security(
                &Field {
                    path,
                    value: &container,
                },
                false,
                &mut report,
            );
            let errors = report.into_errors();
            assert_eq!(errors.len(), expected, "{context}: {errors:?}");
        }
    }
}
