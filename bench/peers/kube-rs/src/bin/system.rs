//! Runs the program `peer-kube-rs-system`, which measures kube's reflector with the allocator of the system's
//! C library. The program `peer-kube-rs` makes the same measurement with jemalloc.

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
