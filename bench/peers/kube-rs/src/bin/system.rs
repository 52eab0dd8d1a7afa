//! `peer-kube-rs-system`: the same program with the allocator of the system's C library.

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
