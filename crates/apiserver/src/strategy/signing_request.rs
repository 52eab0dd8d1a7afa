//! Keeps what no client can change in a `CertificateSigningRequest`.

use super::{Hooks, Part};

pub(super) const HOOKS: Hooks = Hooks {
    prepare_update: |new, old, part| {
        if part != Part::All {
            new.set("spec", old.get("spec").cloned());
        }
    },
    ..Hooks::NONE
};
