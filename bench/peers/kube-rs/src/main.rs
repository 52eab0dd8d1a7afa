//! Runs the program `peer-kube-rs`, which measures kube's reflector. It uses jemalloc, as does `subject`, the
//! measured program of this project.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
