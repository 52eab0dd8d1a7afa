//! Runs the program `peer-kube-rs-system`: the same measurement as `peer-kube-rs`, but with the allocator of
//! the system's C library instead of jemalloc.

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
