//! Runs the program `peer-kube-rs-system`. It measures the same as the program `peer-kube-rs`, but uses the
//! allocator of the system's C library instead of jemalloc.

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
