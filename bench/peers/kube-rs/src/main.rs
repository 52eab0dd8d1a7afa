//! `peer-kube-rs` with jemalloc, the allocator of `subject`.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
