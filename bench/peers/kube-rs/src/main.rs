//! `peer-kube-rs`, with the allocator that ours is measured with.

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> anyhow::Result<()> {
    peer_kube_rs::run()
}
