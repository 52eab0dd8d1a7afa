//! Runs the program `peer-kube-rs`, which measures kube's reflector with the allocator jemalloc.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
