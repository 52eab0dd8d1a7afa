//! Validates the probes and the lifecycle handlers of a container.
//!
//! Guarantees: the errors and their order are those of `pkg/apis/core/validation` in Kubernetes.

use super::field::Field;
use super::port::{check_port_number, port_name_faults};
use super::report::Report;
use crate::quote::Quoted;

/// Kubernetes' message about the name of an HTTP header.
const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";

/// The handlers of probes and of the lifecycle, in the order in which Kubernetes checks them.
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// Checks the handlers of the lifecycle and the probes of a container in a pod with this grace period.
pub(super) fn check_probes(container: &Field<'_, '_>, grace: Option<i64>, report: &mut Report) {
    let lifecycle = container.at("lifecycle");
    for name in ["postStart", "preStop"] {
        let handler = lifecycle.at(name);
        if handler.exists() {
            check_handler(&handler, grace, report);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.at(name);
        if !probe.exists() {
            continue;
        }
        check_probe(&probe, grace, report);
        let grace = probe.at("terminationGracePeriodSeconds");
        if name != "readinessProbe" {
            let threshold = probe.at("successThreshold");
            if threshold.number() != 1 {
                report.invalid(&threshold.path, threshold.number(), "must be 1");
            }
        } else if grace.exists() {
            grace.invalid(report, "must not be set for readinessProbes");
        }
    }
}

fn check_probe(probe: &Field<'_, '_>, grace: Option<i64>, report: &mut Report) {
    check_handler(probe, grace, report);
    for name in [
        "initialDelaySeconds",
        "timeoutSeconds",
        "periodSeconds",
        "successThreshold",
        "failureThreshold",
    ] {
        probe.at(name).check_not_negative(report);
    }
    let grace = probe.at("terminationGracePeriodSeconds");
    if grace.exists() && grace.number() <= 0 {
        grace.invalid(report, "must be greater than 0");
    }
}

/// Checks that there is one handler, and the first one.
fn check_handler(of: &Field<'_, '_>, grace: Option<i64>, report: &mut Report) {
    let mut has_handler = false;
    for name in HANDLERS {
        let handler = of.at(name);
        if !handler.exists() {
            continue;
        }
        if has_handler {
            handler.forbidden(report, "may not specify more than 1 handler type");
            continue;
        }
        has_handler = true;
        match name {
            "exec" => {
                let command = handler.at("command");
                if command.is_empty() {
                    command.required(report);
                }
            }
            "httpGet" => check_http(&handler, report),
            "sleep" => check_sleep(&handler, grace, report),
            _ => check_port(&handler.at("port"), report),
        }
    }
    if !has_handler {
        report.required(&of.path, "must specify a handler type");
    }
}

fn check_http(http: &Field<'_, '_>, report: &mut Report) {
    let path = http.at("path");
    if path.is_empty() {
        path.required(report);
    }
    check_port(&http.at("port"), report);
    http.at("scheme").check_one_of(report, &["HTTP", "HTTPS"]);
    let headers = http.at("httpHeaders");
    for header in headers.items() {
        let name = header.at("name");
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if name.is_empty() || !name.text().bytes().all(is_allowed) {
            report.invalid(&headers.path, Quoted(name.text()), HEADER);
        }
    }
}

/// Checks a port, which is a number or the name of a port.
fn check_port(port: &Field<'_, '_>, report: &mut Report) {
    if port.value.is_string() {
        port.check_text(report, port_name_faults);
    } else {
        check_port_number(port, report);
    }
}

fn check_sleep(sleep: &Field<'_, '_>, grace: Option<i64>, report: &mut Report) {
    let seconds = sleep.at("seconds").number();
    if let Some(grace) = grace.filter(|grace| !(0..=*grace).contains(&seconds)) {
        let why =
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        report.invalid(&sleep.path, seconds, why);
    }
}
